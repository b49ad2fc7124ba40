"""`holdfast status`: how things stand, at a glance."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from holdfast import extras
from holdfast.bootstrap import relays
from holdfast.cli import context, money, terminal
from holdfast.core.states import GUARDED_LANE, LANE_RANK, CallState, Skip, Status, shown
from holdfast.service import formatting
from holdfast.service.records import (
    Bill,
    Budget,
    DutyHealth,
    LaneCount,
    Lease,
    LiveRun,
    OpenOrder,
    Relay,
    Trouble,
    Worker,
    WorkerState,
)
from holdfast.settings import Settings

MOST_SHOWN = 20
# Seconds by which a duty of the sweep is late when that is worth a line.
SHOWN_LAG = 10.0


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """How many wake-ups of a lane wait at a broker; None when it does not answer."""

    broker: str
    lane: str
    messages: int | None


@dataclass(frozen=True, slots=True)
class Refusals:
    """What was delivered again or for nothing, added up over the workers of the last day."""

    redelivered: int
    spare_wake_ups: int
    skipped: Mapping[str, int]
    fenced_out: int
    leases_lost: int
    strange_messages: int


@dataclass(frozen=True, slots=True)
class StatusReport:
    """What `status` answers."""

    workers: tuple[Worker, ...]
    lanes: tuple[LaneCount, ...]
    queues: tuple[QueueDepth, ...]
    leases: tuple[Lease, ...]
    refusals: Refusals
    live: tuple[LiveRun, ...]
    unsettled: tuple[OpenOrder, ...]
    bill: Bill
    providers: tuple[Trouble, ...]
    budgets: tuple[Budget, ...]
    duties: tuple[DutyHealth, ...] = ()
    parsing: tuple[str, ...] = ()
    documents_with_gaps: int = 0
    relays: tuple[Relay, ...] = ()


def status(*, as_json: bool) -> None:
    """Workers, lanes, leases, live runs, orders that nobody heard of, and the bill."""
    with context.services() as services:
        operations, billing = services.operations, services.billing
        counted, known = operations.lanes(), operations.workers()
        standing = StatusReport(
            known,
            tuple(counted.get(lane, LaneCount(lane)) for lane in LANE_RANK)
            + tuple(counted[lane] for lane in (GUARDED_LANE,) if lane in counted),
            _queues(services.settings),
            operations.leases(),
            _refusals(known),
            operations.live_runs(),
            tuple(
                order
                for state in (CallState.IN_DOUBT, CallState.PARKED)
                for order in billing.open_orders(None, state)
            ),
            billing.bill(None),
            tuple(operations.troubles()),
            tuple(billing.budgets(None)),
            operations.duties(),
            services.runtime.parsers.measures(),
            operations.with_gaps(),
            tuple(operations.relays()),
        )
        advice = None if standing.relays else _relay_advice(services.settings)
    if as_json:
        terminal.show_json(standing)
    else:
        _print(terminal.console(), standing, advice)


def _relay_advice(loaded: Settings) -> str | None:
    """What to do if no relay runs; None if nothing is missing."""
    if not relays.is_useful(loaded):
        return None
    if loaded.relay == "require":
        return "no relay runs, which HOLDFAST_RELAY requires: paid work waits; start one with: holdfast relay"
    return (
        "no relay runs: a paid order in flight when its worker dies may be charged twice; start one with: "
        "holdfast relay"
    )


def _print_relays(console: Console, known: Sequence[Relay], advice: str | None) -> None:
    for each in known:
        silent = f", silent for {formatting.span(each.silence)}" if each.silence > 0 else ""
        carries = formatting.count(each.carrying, "order")
        said = f"relay {each.name}: {each.state}, carries {carries}{silent}"
        console.print(terminal.one_line(said), style="bad" if silent else None, markup=False)
    if advice is not None:
        console.print(advice, style="care")


def _queues(loaded: Settings) -> tuple[QueueDepth, ...]:
    if not extras.is_installed("celery"):
        return ()  # then nothing here sends messages either
    from holdfast.worker import queue_depths  # noqa: PLC0415 - Celery takes a moment to load

    return tuple(QueueDepth(*depth) for depth in queue_depths.measure(loaded))


def _refusals(known: Sequence[Worker]) -> Refusals:
    total: Counter[str] = Counter()
    for worker in known:
        total.update(worker.counts)
    skipped = {reason.value: total[f"skipped_{reason}"] for reason in Skip if total[f"skipped_{reason}"]}
    return Refusals(
        total["redelivered"],
        total["spare_wake_ups"],
        skipped,
        total["ended_fenced_out"],
        total["leases_lost"],
        total["strange_messages"],
    )


def _print(console: Console, standing: StatusReport, advice: str | None) -> None:
    _print_workers(console, standing)
    _print_relays(console, standing.relays, advice)
    _print_lanes(console, standing)
    _print_duties(console, standing.duties)
    if standing.live:
        _print_live(console, standing.live)
    else:
        console.print("nothing is queued or running")
    for trouble in standing.providers:
        said = f"{trouble.sentence}; work that needs it waits and continues by itself"
        console.print(terminal.one_line(said), style="bad", markup=False)
    doubtful = [order for order in standing.unsettled if order.state == CallState.IN_DOUBT]
    parked = len(standing.unsettled) - len(doubtful)
    if standing.unsettled:
        worth = formatting.money(sum(order.estimate for order in standing.unsettled))
        console.print(
            f"orders: {len(doubtful)} in doubt, {parked} parked, worth {worth}; see: holdfast orders",
            style="care",
        )
    else:
        console.print("no order is in doubt or parked")
    console.print(f"bill: {money.summary(standing.bill)}")
    if standing.documents_with_gaps:
        number = formatting.count(standing.documents_with_gaps, "document")
        said = f"gaps: {number} with pages that could not be read; see: holdfast documents list"
        console.print(said, style="care")
    for each in standing.budgets:
        if each.over_soft or each.over_hard:
            console.print(f"budget: {money.budget_line(each)}", style="bad" if each.over_hard else "care")
    said = terminal.one_line(f"document parsing: {'; '.join(standing.parsing)}")
    console.print(said, style="quiet", markup=False)


def _print_workers(console: Console, standing: StatusReport) -> None:
    shown_ones = [each for each in standing.workers if each.state is not WorkerState.STOPPED]
    if not shown_ones:
        if any(each.lane == GUARDED_LANE for each in standing.lanes):
            console.print("guarded tasks run in the workers of their application, which are not listed here")
        console.print("no worker is online; start one with: holdfast worker", style="care")
        console.print()
        return
    numbers = ("busy", "claims", "last seen")
    table = terminal.table(
        "worker", "state", "busy", "lanes", "claims", "last seen", "health", numbers=numbers
    )
    for each in shown_ones:
        style = {WorkerState.LOST: "bad", WorkerState.SICK: "bad", WorkerState.WORKING: None}
        cells = terminal.cells(
            each.name,
            each.state,
            f"{each.busy}/{each.processes}",
            ", ".join(each.lanes),
            each.counts.get("claims", 0),
            f"{formatting.span(each.silent)} ago",
            each.health,
        )
        table.add_row(*cells, style=style.get(each.state, "care"))
    console.print(table)
    refused = standing.refusals
    skipped = ", ".join(f"{number} {reason}" for reason, number in refused.skipped.items()) or "none"
    console.print(
        f"ignored: {formatting.count(refused.redelivered, 'redelivered message')}, "
        f"{formatting.count(refused.spare_wake_ups, 'surplus wake-up')}, "
        f"{formatting.count(refused.fenced_out, 'claim')} fenced out, "
        f"{formatting.count(refused.strange_messages, 'unrecognized message')}, messages skipped: {skipped}",
        style="quiet",
    )
    console.print()


def _print_duties(console: Console, known: Sequence[DutyHealth]) -> None:
    """One line when all is well; otherwise the duties of the sweep that are late or fail."""
    troubled = [each for each in known if each.failures or each.lag > SHOWN_LAG]
    if not known:
        return
    if not troubled:
        console.print(f"sweep: {formatting.count(len(known), 'duty', 'duties')} on time", style="quiet")
        return
    for each in troubled:
        late = f"{formatting.span(each.lag)} late" if each.lag > SHOWN_LAG else "on time"
        failed = f"; failed {formatting.count(each.failures, 'time')}: {each.error}" if each.failures else ""
        console.print(f"sweep: {each.name} is {late}{failed}", style="care" if each.failures else "bad")


def _print_lanes(console: Console, standing: StatusReport) -> None:
    numbers = ("queued", "waiting", "running", "oldest", "messages in broker")
    lanes = terminal.table("lane", *numbers, numbers=numbers)
    for lane in standing.lanes:
        oldest = formatting.span(lane.oldest) if lane.queued else "-"
        depths = [depth.messages for depth in standing.queues if depth.lane == lane.lane]
        messages = " + ".join("?" if depth is None else str(depth) for depth in depths)
        lanes.add_row(*terminal.cells(lane.lane, lane.queued, lane.waiting, lane.running, oldest, messages))
    console.print(lanes)
    for broker in dict.fromkeys(depth.broker for depth in standing.queues if depth.messages is None):
        said = f"the broker {broker} is not responding; work is accepted and waits until it is back"
        console.print(said, style="bad")
    expired = sum(lease.left < 0 for lease in standing.leases)
    held = len(standing.leases) - expired
    console.print(f"leases: {held} held, {expired} expired and due to be taken over")
    console.print()


def _print_live(console: Console, live: tuple[LiveRun, ...]) -> None:
    numbers = ("gen", "slices", "age")
    table = terminal.table(
        "subject", "title", "kind", "status", "gen", "slices", "lane", "age", "run", numbers=numbers
    )
    for run in live[:MOST_SHOWN]:
        slices = f"{run.done}/{run.slices}" if run.slices else "-"
        if run.phase:
            slices = f"phase {run.phase + 1}: {slices}"
        word = shown(run.kind, Status(run.status))
        age = formatting.span(run.age)
        table.add_row(
            *terminal.cells(
                run.subject,
                terminal.one_line(run.title or "-"),
                run.kind,
                word,
                run.generation,
                slices,
                run.lane,
                age,
                run.run_id,
            )
        )
    console.print(table)
    if len(live) > MOST_SHOWN:
        console.print(f"... and {len(live) - MOST_SHOWN} more; use --json to see all", style="quiet")
    console.print()
