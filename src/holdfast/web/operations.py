"""Operations: who works on what, what waits, and what is not as it should be."""

from collections import Counter

from fastapi import Request
from fastapi.responses import Response

from holdfast.core.states import LANE_RANK
from holdfast.service.access import Scope
from holdfast.store import events, reads
from holdfast.store.reads import LaneCount
from holdfast.web import glances, rendering
from holdfast.web.parts import ItsOf

DELIVERIES = 20
COUNTED = {
    "redelivered": "redelivered messages that did nothing",
    "spare_wake_ups": "spare wake-ups",
    "ended_fenced_out": "claims fenced out",
    "leases_lost": "leases lost",
    "strange_messages": "strange messages",
}

router = rendering.router()


@router.get("/operations")
def operations(request: Request, its: ItsOf, who: rendering.Who) -> Response:
    """Show the workers, the lanes, the leases and what was refused; of others only to the operator."""
    db, whole = its.runtime.db, who.may(Scope.ADMIN)
    known = glances.crew(its)
    counted = reads.lanes(db) if whole else _mine(events.live_counts(db, who.tenant))
    totals: Counter[str] = Counter()
    for each in known:
        totals.update(each.counts)
    depths = its.depths() if whole else ()
    return rendering.page(
        request,
        its,
        who,
        "operations.html",
        "Operations",
        health=glances.health(its, known),
        warnings=glances.warnings(its, who, known),
        workers=known if whole else (),
        lanes=[counted.get(lane, LaneCount(lane)) for lane in LANE_RANK],
        depths={lane: [said for _, of, said in depths if of == lane] for lane in LANE_RANK},
        leases=reads.leases(db)[:50] if whole else (),
        totals=[(label, totals[name]) for name, label in COUNTED.items()] if whole else [],
        refusals=glances.refusals(its, who),
        deliveries=its.deliveries.page(who.tenant, state=None, before=None, limit=DELIVERIES),
    )


def _mine(live: dict[str, dict[str, int]]) -> dict[str, LaneCount]:
    """The live runs of one tenant; how much others have to do is not told."""
    return {
        lane: LaneCount(lane, queued=each.get("queued", 0), running=each.get("running", 0))
        for lane, each in live.items()
    }
