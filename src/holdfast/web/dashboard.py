"""Figures shown on several pages: work in progress, workers, rejected duplicates and stale workers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.bootstrap import AppServices
from holdfast.service import explanations, formatting
from holdfast.service.access import Identity
from holdfast.service.records import Bill, By, Document, Today, Worker, WorkerState

# A lost worker is shown for so long; its work went to others within seconds.
LOST_FOR = 600.0


@dataclass(frozen=True, slots=True)
class Strip:
    """The numbers at the top of the first page."""

    running: int
    queued: int
    today: Today
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


def strip(services: AppServices, who: Identity, failed: int) -> Strip:
    """What of the tenant's is under way, ended today, and cost."""
    live = services.operations.live_counts(who.tenant).values()
    return Strip(
        sum(each.get("running", 0) for each in live),
        sum(each.get("queued", 0) for each in live),
        services.operations.today(who.tenant),
        failed,
        services.billing.bill(who.tenant, By.MODEL),
    )


def refusals(services: AppServices, who: Identity, most: int | None = None) -> list[Refusal]:
    """What was refused or fenced out lately, the newest first; with the document, if that is still there."""
    journal = services.operations.refusals(who.tenant)
    split = {(each.subject or "").partition(":")[::2] for each in journal}
    named = {
        f"document:{name}": services.documents.find(who.tenant, name)
        for subject_type, name in split
        if subject_type == "document"
    }
    grouped: list[Refusal] = []
    for each in journal:
        document, sentence = named.get(each.subject or ""), explanations.of(each, kind=each.kind)
        if grouped and (grouped[-1].document, grouped[-1].sentence) == (document, sentence):
            cost = (grouped[-1].would_cost or 0) + (each.would_cost or 0)
            grouped[-1] = replace(grouped[-1], times=grouped[-1].times + 1, would_cost=cost)
        else:
            grouped.append(Refusal(each.at, sentence, each.would_cost, document))
    return grouped[:most]


def crew(services: AppServices) -> tuple[Worker, ...]:
    """The workers that have not stopped, and were not lost long ago."""
    known = services.operations.workers()
    return tuple(
        each
        for each in known
        if each.state is not WorkerState.STOPPED
        and (each.state is not WorkerState.LOST or each.silent < LOST_FOR)
    )


def health(services: AppServices, known: Sequence[Worker], concerns: int = 0) -> HealthSummary:
    """The one sentence about workers and broker. All is good only when nothing needs attention."""
    silent = sorted({broker for broker, _, messages in services.operations.depths() if messages is None})
    states = [each.state for each in known]
    online, lost = states.count(WorkerState.WORKING), states.count(WorkerState.LOST)
    if silent:
        return HealthSummary(
            "bad", f"The broker {silent[0]} is not responding. Work is accepted and waits until it is back."
        )
    if not online:
        workers = f" {formatting.count(lost, 'worker')} lost." if lost else ""
        return HealthSummary(
            "bad", f"No worker is online.{workers} Accepted work is waiting. Start one with: holdfast worker"
        )
    troubles = services.operations.troubles()
    if troubles:
        trouble = troubles[0].sentence
        sentence = f"{trouble[:1].upper()}{trouble[1:]}. Work that needs it waits and continues by itself."
        return HealthSummary("bad", sentence)
    workers = f"{formatting.count(online, 'worker')} online, broker connected."
    if lost:
        whose = "its" if lost == 1 else "their"
        return HealthSummary(
            "care", f"{workers} {formatting.count(lost, 'worker')} lost; others take over {whose} tasks."
        )
    if WorkerState.SICK in states:
        return HealthSummary("care", f"{workers} One worker reports that it is stuck.")
    return HealthSummary("care", workers) if concerns else HealthSummary("good", f"All good: {workers}")
