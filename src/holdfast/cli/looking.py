"""`holdfast status`: how things stand, at a glance."""

from dataclasses import dataclass

from rich.console import Console

from holdfast.cli import money, opening, queries, terminal
from holdfast.core.states import LANE_RANK, CallState, Status, shown
from holdfast.store import reads

MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Standing:
    """What `status` answers."""

    lanes: tuple[reads.LaneCount, ...]
    live: tuple[queries.Live, ...]
    unsettled: tuple[queries.OpenOrder, ...]
    bill: queries.Bill


def status(*, as_json: bool) -> None:
    """Lanes, live runs, orders that nobody heard of, and the bill."""
    with opening.runtime() as runtime:
        counted = reads.lanes(runtime.db)
        standing = Standing(
            tuple(counted.get(lane, reads.LaneCount(lane)) for lane in LANE_RANK),
            queries.live_runs(runtime.db),
            tuple(
                order
                for state in (CallState.IN_DOUBT, CallState.PARKED)
                for order in queries.open_orders(runtime.db, state)
            ),
            queries.bill(runtime.db),
        )
    if as_json:
        terminal.show_json(standing)
    else:
        _print(terminal.console(), standing)


def _print(console: Console, standing: Standing) -> None:
    numbers = ("queued", "waiting", "running", "oldest")
    lanes = terminal.table("lane", *numbers, numbers=numbers)
    for lane in standing.lanes:
        oldest = terminal.span(lane.oldest) if lane.queued else "-"
        lanes.add_row(*terminal.cells(lane.lane, lane.queued, lane.waiting, lane.running, oldest))
    console.print(lanes)
    console.print()
    if standing.live:
        _print_live(console, standing.live)
    else:
        console.print("no run is queued or running")
    doubtful = [order for order in standing.unsettled if order.state == CallState.IN_DOUBT]
    parked = len(standing.unsettled) - len(doubtful)
    if standing.unsettled:
        worth = terminal.money(sum(order.estimate for order in standing.unsettled))
        console.print(
            f"orders: {len(doubtful)} in doubt, {parked} parked, worth {worth}; see: holdfast orders",
            style="care",
        )
    else:
        console.print("no order is in doubt or parked")
    console.print(f"bill: {money.summary(standing.bill)}")


def _print_live(console: Console, live: tuple[queries.Live, ...]) -> None:
    numbers = ("gen", "slices", "age")
    table = terminal.table(
        "subject", "kind", "status", "gen", "slices", "lane", "age", "run", numbers=numbers
    )
    for run in live[:MOST_SHOWN]:
        slices = f"{run.done}/{run.slices}" if run.slices else "-"
        word = shown(run.kind, Status(run.status))
        age = terminal.span(run.age)
        table.add_row(
            *terminal.cells(run.subject, run.kind, word, run.generation, slices, run.lane, age, run.run_id)
        )
    console.print(table)
    if len(live) > MOST_SHOWN:
        console.print(f"... and {len(live) - MOST_SHOWN} more; --json has them", style="quiet")
    console.print()
