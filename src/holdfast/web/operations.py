"""Operations: workers, queues, leases, and what needs attention."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fastapi import Request
from fastapi.responses import Response

from holdfast.bootstrap import AppServices
from holdfast.core.states import GUARDED_LANE, LANE_RANK
from holdfast.doctor.findings import Finding, FindingState, Severity
from holdfast.service.access import Scope
from holdfast.service.records import LaneCount, Lease, Worker
from holdfast.web import dashboard, rendering, warnings
from holdfast.web.page_access import Services

DELIVERIES = 20
# The first examination of a process is waited for; from then on the last one is shown.
DOCTOR_PATIENCE = 1.5
LEVELS = {Severity.ERROR: "bad", Severity.WARNING: "care", Severity.NOTE: "good"}
LEASES = 50
COUNTED = {
    "redelivered": "redelivered messages ignored",
    "spare_wake_ups": "surplus wake-up messages",
    "ended_fenced_out": "claims fenced out",
    "leases_lost": "leases lost",
    "strange_messages": "unrecognized messages",
}

OF_OTHERS = {
    "document": "another tenant's document",
    "collection": "another tenant's job",
    "delivery": "webhook delivery",
}

router = rendering.router()


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A lease, with what is being done in words; `document` is its id, if that is the looker's."""

    lease: Lease
    doing: str
    document: str | None


@dataclass(frozen=True, slots=True)
class Post:
    """A worker, and what its processes are doing."""

    worker: Worker
    held: Sequence[HeldLease]


@router.get("/operations")
def operations(request: Request, services: Services, who: rendering.Who) -> Response:
    """Show the workers, the lanes, the leases and what was refused; of others only to the operator."""
    whole = who.may(Scope.ADMIN)
    known = dashboard.crew(services)
    counted = services.operations.lanes() if whole else _mine(services.operations.live_counts(who.tenant))
    # Guarded tasks run in the workers of their application, so that most installations have none.
    lanes = [*LANE_RANK, *(lane for lane in (GUARDED_LANE,) if lane in counted)]
    totals: Counter[str] = Counter()
    for each in known:
        totals.update(each.counts)
    depths = services.operations.depths() if whole else ()
    leases = services.operations.leases()[:LEASES] if whole else ()
    held = _held(services, who.tenant, leases)
    deliveries = services.deliveries.page(who.tenant, state=None, before=None, limit=DELIVERIES)
    needed = warnings.all_of(services, who, known, leases)
    return rendering.page(
        request,
        who,
        "operations.html",
        "Operations",
        health=dashboard.health(services, known, len(needed)),
        concerns=needed,
        posts=[Post(each, _of(each, held)) for each in known] if whole else (),
        relays=services.operations.relays() if whole else (),
        lanes=[counted.get(lane, LaneCount(lane)) for lane in lanes],
        depths={lane: [said for _, of, said in depths if of == lane] for lane in lanes},
        held=held,
        totals=[(label, totals[name]) for name, label in COUNTED.items() if totals[name]] if whole else [],
        refusals=dashboard.refusals(services, who),
        hooks=services.actions.hooks(who.tenant),
        titles={each.id: each.title for each in services.collections.all(who.tenant)},
        deliveries=deliveries,
        doctor=_examined(services) if whole else None,
        now=services.operations.moment(),
    )


@dataclass(frozen=True, slots=True)
class DoctorPanel:
    """What the doctor says of the installation; nothing until its first examination has ended."""

    examined: bool = False
    problems: Sequence[tuple[str, Finding]] = ()
    unreachable: Sequence[str] = ()
    harmless: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    unknown: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    summary: str = ""


def _examined(services: AppServices) -> DoctorPanel:
    report = services.examination.report(DOCTOR_PATIENCE)
    if report is None:
        return DoctorPanel()
    counts = {
        "harmless here": len(report.of(FindingState.HARMLESS)),
        "not known": len(report.of(FindingState.UNKNOWN)),
        "passed": len(report.of(FindingState.PASSED)),
    }
    return DoctorPanel(
        True,
        [(LEVELS[each.severity], each) for each in report.of(FindingState.PROBLEM)],
        report.unreachable,
        report.reasons(FindingState.HARMLESS),
        report.reasons(FindingState.UNKNOWN),
        ", ".join(f"{number} {words}" for words, number in counts.items() if number),
    )


def _mine(live: Mapping[str, Mapping[str, int]]) -> dict[str, LaneCount]:
    """The live runs of one tenant; how much others have to do is not told."""
    return {
        lane: LaneCount(lane, queued=each.get("queued", 0), running=each.get("running", 0))
        for lane, each in live.items()
    }


def _of(worker: Worker, held: Sequence[HeldLease]) -> list[HeldLease]:
    """What a worker holds: its processes are named after it."""
    return [each for each in held if (each.lease.owner or "").partition("/")[0] == worker.name]


def _held(services: AppServices, tenant: str, leases: Sequence[Lease]) -> list[HeldLease]:
    """The leases in words. Of another tenant's only the type is shown: names are private."""
    rows = []
    for lease in leases:
        subject_type, _, name = lease.subject.partition(":")
        if lease.tenant != tenant:
            rows.append(HeldLease(lease, OF_OTHERS.get(subject_type, "another tenant's work"), None))
            continue
        name, _, action = name.partition("#")
        document = services.documents.find(tenant, name) if subject_type == "document" else None
        title = document.title if document is not None else name
        match subject_type:
            case "document":
                doing = f"action on {title}" if action else title
            case "delivery":
                doing = "webhook delivery"
            case "collection":
                doing = f"job on {name}"
            case _:
                doing = lease.subject
        rows.append(HeldLease(lease, doing, document.id if document is not None else None))
    return rows
