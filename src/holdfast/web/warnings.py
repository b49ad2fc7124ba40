"""The warnings of the operations page: what is wrong, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.bootstrap import AppServices
from holdfast.core.periods import Period
from holdfast.core.states import LANE_RANK, CallState
from holdfast.service import formatting
from holdfast.service.access import Identity, Scope
from holdfast.service.records import TENANT_SCOPE, Delivery, Lease, Worker, WorkerState

STUCK_AFTER = 600.0
# The sweep of any worker takes a lease that ran out within seconds.
NOT_SWEPT_AFTER = 30.0
# Deliveries are tried for a day; one that failed for good is worth a look for some days more.
GIVEN_UP_SHOWN = 4 * 86_400.0
MOST_DELIVERIES = 200


@dataclass(frozen=True, slots=True)
class Concern:
    """Something that a person should know, and what to do about it. `level` is bad or care."""

    level: str
    sentence: str
    remedy: str


def all_of(
    services: AppServices, who: Identity, known: Sequence[Worker], leases: Sequence[Lease] | None = None
) -> list[Concern]:
    """What the caller should know, the worst first. Only the operator sees those of other tenants."""
    concerns = [
        *_of_workers(known),
        *_of_orders(services, who),
        *_of_budgets(services, who),
        *_of_deliveries(services, who),
    ]
    if who.may(Scope.ADMIN):
        held = services.operations.leases() if leases is None else leases
        concerns += [*_of_leases(held), *_of_lanes(services)]
    return sorted(concerns, key=lambda one: one.level)


def _of_workers(known: Sequence[Worker]) -> list[Concern]:
    lost = [each for each in known if each.state is WorkerState.LOST]
    sick = [each for each in known if each.state is WorkerState.SICK]
    online = any(each.state is WorkerState.WORKING for each in known)
    takes = "Other workers take" if online else "The next worker you start takes"
    remedy = f"{takes} over its tasks. If it should be running, check its log."
    return [
        Concern(
            "care",
            f"Worker {each.name} is lost: it was last seen {formatting.span(each.silent)} ago.",
            remedy,
        )
        for each in lost
    ] + [
        Concern(
            "care",
            f"Worker {each.name} reports that it is stuck.",
            "Check its log, then restart it: other workers take over its tasks.",
        )
        for each in sick
    ]


def _of_orders(services: AppServices, who: Identity) -> list[Concern]:
    open_ones = services.billing.open_orders(who.tenant)
    parked = sum(each.state == CallState.PARKED for each in open_ones)
    doubtful = sum(each.state == CallState.IN_DOUBT for each in open_ones)
    concerns = []
    if parked:
        whether = "whether it was" if parked == 1 else "whether they were"
        sentence = f"{formatting.count(parked, 'paid order')} parked: it is unknown {whether} charged."
        concerns.append(Concern("bad", sentence, "Resolve this on the Bill page; the work waits for you."))
    if doubtful:
        sentence = f"{formatting.count(doubtful, 'paid order')} in doubt after a crash or a lost connection."
        remedy = (
            "Resent with its key when the work resumes; if the work has ended, resolve it on the Bill page."
        )
        concerns.append(Concern("care", sentence, remedy))
    return concerns


def _of_budgets(services: AppServices, who: Identity) -> list[Concern]:
    concerns = []
    for limit in services.billing.budgets(who.tenant):
        whose = "everything" if limit.scope == TENANT_SCOPE else limit.scope.replace(":", " ")
        whose += "" if limit.period is Period.TOTAL else f" this {limit.period}"
        if limit.over_hard:
            sentence, remedy = (
                f"The budget for {whose} is used up.",
                "Raise it on the Bill page to let work continue.",
            )
            concerns.append(Concern("bad", sentence, remedy))
        elif limit.over_soft:
            sentence = f"Spending for {whose} is above the soft limit of its budget."
            concerns.append(Concern("care", sentence, "Raise it on the Bill page before work has to wait."))
    return concerns


def _of_deliveries(services: AppServices, who: Identity) -> list[Concern]:
    """Webhooks that do not get through: those that are tried again, and those that were given up."""
    hooks = {each.id for each in services.actions.hooks(who.tenant)}
    pending, failed = (
        [
            each
            for each in services.deliveries.page(who.tenant, state=state, before=None, limit=MOST_DELIVERIES)
            if each.action_id is None or each.action_id in hooks
        ]
        for state in ("pending", "failed")
    )
    failing = [each for each in pending if each.last_error is not None]
    since = services.operations.moment() - GIVEN_UP_SHOWN
    given_up = [each for each in failed if each.created_at > since]
    concerns = []
    if failing:
        are = "is" if len(failing) == 1 else "are"
        concerns.append(
            Concern(
                "care",
                f"{_deliveries(failing)} {are} failing: {_reason(failing[0])}.",
                "Each is retried for a day. Fix the receiver, then choose Send again below.",
            )
        )
    if given_up:
        concerns.append(
            Concern(
                "care",
                f"{_deliveries(given_up)} failed permanently: {_reason(given_up[0])}.",
                "Fix the receiver, send a test, then choose Send again below.",
            )
        )
    return concerns


def _deliveries(some: Sequence[Delivery]) -> str:
    more = "more than " if len(some) == MOST_DELIVERIES else ""
    return f"{more}{formatting.count(len(some), 'webhook delivery', 'webhook deliveries')}".capitalize()


def _reason(delivery: Delivery) -> str:
    return (delivery.last_error or f"HTTP {delivery.last_status}").rstrip(".")


def _of_leases(leases: Sequence[Lease]) -> list[Concern]:
    late = [each for each in leases if each.left < -NOT_SWEPT_AFTER]
    if not late:
        return []
    sentence = f"{formatting.count(len(late), 'task')} lost its worker and no other worker has taken over."
    if len(late) > 1:
        sentence = sentence.replace("lost its worker", "lost their workers")
    return [Concern("bad", sentence, "Start a worker with: holdfast worker. It takes over.")]


def _of_lanes(services: AppServices) -> list[Concern]:
    counted = services.operations.lanes()
    return [
        Concern(
            "care",
            f"The oldest task in lane {lane} has been queued for {formatting.span(counted[lane].oldest)}.",
            "Add workers, or processes per worker, to shorten the queue.",
        )
        for lane in LANE_RANK
        if lane in counted and counted[lane].oldest > STUCK_AFTER
    ]
