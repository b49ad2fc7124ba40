"""What several pages show at a glance: how much is under way, how the workers are, what was refused."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.core import subjects
from holdfast.service import explanations, formatting
from holdfast.service.access import Identity
from holdfast.service.billing import Billing
from holdfast.store.library import documents
from holdfast.store.library.documents import Document
from holdfast.store.money import provider_troubles
from holdfast.store.money.billing import Bill, By
from holdfast.store.protocol import workers
from holdfast.store.protocol.workers import Worker, WorkerState
from holdfast.store.views import dashboard, events
from holdfast.web.parts import Its

# A lost worker is shown for so long; its work went to others within seconds.
LOST_FOR = 600.0


@dataclass(frozen=True, slots=True)
class Strip:
    """The numbers at the top of the first page."""

    running: int
    queued: int
    today: dashboard.Today
    failed: int
    bill: Bill


@dataclass(frozen=True, slots=True)
class HealthSummary:
    """Whether work is carried out, in a sentence. `level` is good, care or bad."""

    level: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that was refused, as a sentence; `times` as often in a row, the last time at `at`."""

    at: float
    sentence: str
    would_cost: int | None
    document: Document | None
    times: int = 1


def strip(its: Its, who: Identity, failed: int) -> Strip:
    """What of the tenant's is under way, ended today, and cost."""
    live = events.live_counts(its.runtime.db, who.tenant).values()
    return Strip(
        sum(each.get("running", 0) for each in live),
        sum(each.get("queued", 0) for each in live),
        dashboard.today(its.runtime.db, who.tenant, subjects.INDEX),
        failed,
        Billing(its.runtime.engine).bill(who.tenant, By.MODEL),
    )


def refusals(its: Its, who: Identity, most: int = dashboard.SHOWN) -> list[Refusal]:
    """What was refused or fenced out lately, the newest first; with the document, if that is still there."""
    db = its.runtime.db
    found = dashboard.refusals(db, who.tenant, dashboard.SHOWN)
    split = {(each.subject or "").partition(":")[::2] for each in found}
    named = {
        f"document:{name}": documents.document(db, who.tenant, name)
        for sort, name in split
        if sort == "document"
    }
    told: list[Refusal] = []
    for each in found:
        document, sentence = named.get(each.subject or ""), explanations.of(each, kind=each.kind)
        if told and (told[-1].document, told[-1].sentence) == (document, sentence):
            cost = (told[-1].would_cost or 0) + (each.would_cost or 0)
            told[-1] = replace(told[-1], times=told[-1].times + 1, would_cost=cost)
        else:
            told.append(Refusal(each.at, sentence, each.would_cost, document))
    return told[:most]


def crew(its: Its) -> tuple[Worker, ...]:
    """The workers that have not stopped, and were not lost long ago."""
    known = workers.known(its.runtime.db)
    return tuple(
        each
        for each in known
        if each.state is not WorkerState.STOPPED
        and (each.state is not WorkerState.LOST or each.silent < LOST_FOR)
    )


def health(its: Its, known: Sequence[Worker], concerns: int = 0) -> HealthSummary:
    """The one sentence about workers and broker. All is good only when nothing needs attention."""
    silent = sorted({broker for broker, _, messages in its.depths() if messages is None})
    states = [each.state for each in known]
    online, lost = states.count(WorkerState.WORKING), states.count(WorkerState.LOST)
    if silent:
        return HealthSummary(
            "bad", f"The broker {silent[0]} is not responding. Work is accepted and waits until it is back."
        )
    if not online:
        told = f" {formatting.count(lost, 'worker')} lost." if lost else ""
        return HealthSummary(
            "bad", f"No worker is online.{told} Accepted work is waiting. Start one with: holdfast worker"
        )
    troubles = provider_troubles.all_of(its.runtime.db)
    if troubles:
        trouble = troubles[0].sentence
        sentence = f"{trouble[:1].upper()}{trouble[1:]}. Work that needs it waits and continues by itself."
        return HealthSummary("bad", sentence)
    told = f"{formatting.count(online, 'worker')} online, broker connected."
    if lost:
        whose = "its" if lost == 1 else "their"
        return HealthSummary(
            "care", f"{told} {formatting.count(lost, 'worker')} lost; others take over {whose} tasks."
        )
    if WorkerState.SICK in states:
        return HealthSummary("care", f"{told} One worker reports that it is stuck.")
    return HealthSummary("care", told) if concerns else HealthSummary("good", f"All good: {told}")
