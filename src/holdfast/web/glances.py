"""What several pages show at a glance: how much is under way, how the workers are, what was refused."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.core.states import LANE_RANK, CallState
from holdfast.service import explaining
from holdfast.service.access import Identity, Scope
from holdfast.service.billing import Billing
from holdfast.store import billing, budgets, documents, events, glance, reads, workers
from holdfast.store.billing import Bill, By
from holdfast.store.documents import Document
from holdfast.store.workers import Worker, WorkerState
from holdfast.web import words
from holdfast.web.parts import Its

STUCK_AFTER = 600.0
# A lost worker is shown for so long; its work went to others within seconds.
LOST_FOR = 600.0


@dataclass(frozen=True, slots=True)
class Strip:
    """The numbers at the top of the first page."""

    running: int
    queued: int
    today: glance.Today
    failed: int
    bill: Bill


@dataclass(frozen=True, slots=True)
class Health:
    """Whether work is carried out, in a sentence. `level` is good, care or bad."""

    level: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that was refused, as a sentence."""

    at: float
    sentence: str
    would_cost: int | None
    document: Document | None


def strip(its: Its, who: Identity, failed: int) -> Strip:
    """What of the tenant's is under way, ended today, and cost."""
    live = events.live_counts(its.runtime.db, who.tenant).values()
    return Strip(
        sum(each.get("running", 0) for each in live),
        sum(each.get("queued", 0) for each in live),
        glance.today(its.runtime.db, who.tenant, documents.KIND),
        failed,
        Billing(its.runtime.engine).bill(who.tenant, By.MODEL),
    )


def refusals(its: Its, who: Identity, most: int = glance.SHOWN) -> list[Refusal]:
    """What was refused or fenced out lately, the newest first; with the document, if that is still there."""
    db = its.runtime.db
    found = glance.refusals(db, who.tenant, most)
    subjects = {(each.subject or "").partition(":")[::2] for each in found}
    named = {
        f"document:{name}": documents.document(db, who.tenant, name)
        for sort, name in subjects
        if sort == "document"
    }
    return [
        Refusal(each.at, explaining.of(each), each.would_cost, named.get(each.subject or ""))
        for each in found
    ]


def crew(its: Its) -> tuple[Worker, ...]:
    """The workers that have not stopped, and were not lost long ago."""
    known = workers.known(its.runtime.db)
    return tuple(
        each
        for each in known
        if each.state is not WorkerState.STOPPED
        and (each.state is not WorkerState.LOST or each.silent < LOST_FOR)
    )


def health(its: Its, known: Sequence[Worker]) -> Health:
    """The one sentence about workers and broker."""
    silent = sorted({broker for broker, _, messages in its.depths() if messages is None})
    states = [each.state for each in known]
    at_work, lost = states.count(WorkerState.WORKING), states.count(WorkerState.LOST)
    if silent:
        return Health("bad", f"The broker {silent[0]} does not answer. Work is accepted, and waits for it.")
    if not at_work:
        return Health("bad", "No worker is at work. What is accepted waits; start one with: holdfast worker")
    told = f"{words.count(at_work, 'worker')} at work, the broker answers."
    if lost:
        return Health("care", f"{told} {words.count(lost, 'worker')} lost; others take the work over.")
    if WorkerState.SICK in states:
        return Health("care", f"{told} One says that it makes no progress.")
    return Health("good", told)


@dataclass(frozen=True, slots=True)
class Warning:  # noqa: A001 - the word of the page
    """Something that a person should know, and what to do about it."""

    level: str
    sentence: str
    remedy: str


def warnings(its: Its, who: Identity, known: Sequence[Worker]) -> list[Warning]:
    """What is not as it should be, the worst first."""
    found: list[Warning] = []
    stand = health(its, known)
    if stand.level == "bad":
        found.append(Warning("bad", stand.sentence, "Everything that was accepted is kept meanwhile."))
    for each in known:
        if each.state in {WorkerState.LOST, WorkerState.SICK}:
            told = f"Worker {each.name} is {each.state}: not heard of for {words.span(each.silent)}."
            found.append(Warning("care", told, "Its leases run out by themselves; look at its log."))
    found += _of_orders(its, who)
    for limit in budgets.of_tenant(its.runtime.db, who.tenant):
        if limit.over_hard:
            told = f"The budget of {_of(limit.scope)} is used up."
            found.append(
                Warning("bad", told, "Raise it on the page of the bill; waiting work goes on at once.")
            )
        elif limit.over_soft:
            found.append(
                Warning("care", f"The budget of {_of(limit.scope)} is nearly used up.", "Keep an eye on it.")
            )
    if who.may(Scope.ADMIN):
        found += _of_lanes(its)
    return sorted(found, key=lambda one: one.level)


def _of(scope: str) -> str:
    """Whose budget it is."""
    return "everything" if scope == budgets.TENANT else scope.replace(":", " ")


def _of_orders(its: Its, who: Identity) -> list[Warning]:
    open_ones = billing.open_orders(its.runtime.db, who.tenant)
    parked = sum(each.state == CallState.PARKED for each in open_ones)
    doubtful = sum(each.state == CallState.IN_DOUBT for each in open_ones)
    found = []
    if parked:
        told = f"{words.count(parked, 'paid order')} parked: nobody knows whether it was charged."
        found.append(Warning("bad", told, "Say so on the page of the bill; the work waits for you."))
    if doubtful:
        told = f"{words.count(doubtful, 'paid order')} in doubt after a crash or a cut."
        found.append(Warning("care", told, "It is sent again with its own key, by itself."))
    return found


def _of_lanes(its: Its) -> list[Warning]:
    counted = reads.lanes(its.runtime.db)
    return [
        Warning(
            "care",
            f"The oldest task in lane {lane} has been queued for {words.span(counted[lane].oldest)}.",
            "More workers, or more processes per worker, shorten that.",
        )
        for lane in LANE_RANK
        if lane in counted and counted[lane].oldest > STUCK_AFTER
    ]
