"""The promises, tested after every commit, every first byte and every charge. State changes nowhere else.

A raw connection reads the rows of the tables that the transaction touched and compares them with what they
were just before. Whoever committed is known, so a write can be held against the right to make it.
"""

import sqlite3
from typing import Any

from tests.simulation import transition_checks
from tests.simulation.kinds import chunks_of, key_of
from tests.simulation.provider import Parcel, Service
from tests.simulation.world import Actor, Violation, World

LIVE = ("queued", "running")
OPEN = ("waiting", "queued", "running")
READ = {
    "heads": "SELECT id, run_id, tenant, kind, subject, generation, status, published_generation, visible,"
    " collection FROM holdfast_heads",
    "runs": "SELECT id, head_id, generation, status, slices, content, error_code, subject, kind, phase"
    " FROM holdfast_runs",
    "tasks": "SELECT id, run_id, head_id, generation, ordinal, state, epoch, token, owner, lease_until, done,"
    " phase"
    " FROM holdfast_tasks",
    "orders": "SELECT id, tenant, state, holder, task_id, sends, doubts, estimate, keyed, scopes, call_keys,"
    " carrier, deadline_at"
    " FROM holdfast_orders",
    "relays": "SELECT id, name, state, lease_until, gone_by FROM holdfast_relays",
    "collections": "SELECT tenant || '/' || id, publish_seq FROM holdfast_collections",
    "budgets": "SELECT tenant || '/' || scope, tenant, scope, hard_limit, spent, reserved"
    " FROM holdfast_budgets",
}
H_RUN, H_TENANT, H_KIND, H_SUBJECT, H_GENERATION, H_STATUS, H_PUBLISHED, H_VISIBLE, H_COLLECTION = range(
    1, 10
)
R_HEAD, R_GENERATION, R_STATUS, R_SLICES, R_CONTENT, R_ERROR, R_SUBJECT, R_KIND, R_PHASE = range(1, 10)
T_RUN, T_HEAD, T_GENERATION, T_ORDINAL, T_STATE, T_EPOCH, T_TOKEN, T_OWNER, T_LEASE, T_DONE, T_PHASE = range(
    1, 12
)
O_TENANT, O_STATE, O_HOLDER, O_TASK, O_SENDS, O_DOUBTS, O_ESTIMATE, O_KEYED, O_SCOPES, O_KEYS = range(1, 11)
O_CARRIER, O_DEADLINE = 11, 12
L_NAME, L_STATE, L_LEASE, L_GONE_BY = range(1, 5)
B_TENANT, B_SCOPE, B_LIMIT, B_SPENT, B_RESERVED = range(1, 6)
RESERVING = ("intend", "send_at_once")

Row = tuple[Any, ...]


class Check:
    """The state of the database as of the last commit, and the oracles over each change of it."""

    def __init__(self, world: World, reader: sqlite3.Connection) -> None:
        self.world = world
        self.reader = reader
        self.heads: dict[int, Row] = {}
        self.runs: dict[str, Row] = {}
        self.tasks: dict[int, Row] = {}
        self.orders: dict[str, Row] = {}
        self.relays: dict[str, Row] = {}
        self.budgets: dict[str, Row] = {}
        self.collections: dict[str, Row] = {}
        self.chunks: dict[Row, str] = {}
        self.versions = 0
        self.service: Service | None = None
        self.recovery: Any = None
        self._leases: dict[str, float] = {}
        self._marks: dict[tuple[str, str], str] = {}
        self._sent: set[tuple[str, int]] = set()

    def after_commit(self, actor: Actor, touched: list[str]) -> None:
        """Whatever the transaction of `actor` changed, it was allowed to change."""
        self.versions += 1
        before: dict[str, dict[Any, Row]] = {}
        for name in touched:
            if name in READ:
                before[name] = getattr(self, name)
                setattr(self, name, {row[0]: row for row in self.reader.execute(READ[name])})
        old = {name: before.get(name, getattr(self, name)) for name in READ}
        transition_checks.check(old, {name: getattr(self, name) for name in READ})
        if "heads" in before or "runs" in before:
            self._winners(old)
        if "tasks" in before:
            self._holders(actor, old)
        if "chunks" in touched:
            self._staged(actor, old)
        if "orders" in before:
            self._marked(actor, old)
        self._relays_left(old)
        if "budgets" in before:
            self._money(actor, old["budgets"])
        if "heads" in before or "chunks" in touched:
            self._readers()
        if "heads" in before:
            self._told(old)
        actor.seen_head = self.heads

    # -- G1 -------------------------------------------------------------------------------------------

    def _winners(self, old: dict[str, dict[Any, Row]]) -> None:  # noqa: C901 - a promise per line
        live: dict[int, Row] = {}
        for run_id, run in self.runs.items():
            was = old["runs"].get(run_id)
            if was is not None and was[R_STATUS] not in LIVE and run[R_STATUS] != was[R_STATUS]:
                raise Violation(
                    "G1", f"an ended run of {run[R_SUBJECT]} went from {was[R_STATUS]} to {run[R_STATUS]}"
                )
            if run[R_STATUS] not in LIVE:
                continue
            head = self.heads[run[R_HEAD]]
            if run[R_HEAD] in live:
                raise Violation("G1", f"{run[R_SUBJECT]} has two live runs")
            if head[H_GENERATION] != run[R_GENERATION] or head[H_RUN] != run_id:
                message = (
                    f"{run[R_SUBJECT]} is at generation {head[H_GENERATION]}, yet {run[R_GENERATION]} is live"
                )
                raise Violation("G1", message)
            live[run[R_HEAD]] = run
        for head_id, head in self.heads.items():
            was = old["heads"].get(head_id)
            if was is None:
                continue
            if head[H_GENERATION] < was[H_GENERATION]:
                raise Violation("G1", f"the generation of {head[H_SUBJECT]} fell to {head[H_GENERATION]}")
            if head[H_PUBLISHED] < was[H_PUBLISHED]:
                raise Violation(
                    "G3", f"the published generation of {head[H_SUBJECT]} fell to {head[H_PUBLISHED]}"
                )
            if head[H_STATUS] in LIVE and head_id not in live:
                raise Violation(
                    "G1", f"{head[H_SUBJECT]} is shown as {head[H_STATUS]} but nothing of it is live"
                )
            if head_id in live and head[H_STATUS] != live[head_id][R_STATUS]:
                raise Violation(
                    "G1",
                    f"{head[H_SUBJECT]} is shown as {head[H_STATUS]}, its run is {live[head_id][R_STATUS]}",
                )

    # -- G2 -------------------------------------------------------------------------------------------

    def _may_write(self, actor: Actor, task: Row | None, old: dict[str, dict[Any, Row]], what: str) -> None:
        if task is None:
            raise Violation("G2", f"{actor.process.name} wrote {what} for a task that is not there")
        head, run = old["heads"].get(task[T_HEAD]), old["runs"].get(task[T_RUN])
        # A relay marks under the claim of the worker that handed the order over.
        is_mine = task[T_OWNER] == actor.process.name or actor.process.role == "relay"
        if task[T_STATE] != "running" or not is_mine:
            state = f"{task[T_STATE]} and held by {task[T_OWNER] or 'nobody'}"
            raise Violation("G2", f"{actor.process.name} wrote {what} of task {task[0]}, which is {state}")
        if run is None or run[R_STATUS] not in LIVE:
            raise Violation("G2", f"{actor.process.name} wrote {what} for a run that has ended")
        if head is None or head[H_GENERATION] != task[T_GENERATION]:
            raise Violation("G2", f"{actor.process.name} wrote {what} for a generation that is not current")

    def _holders(self, actor: Actor, old: dict[str, dict[Any, Row]]) -> None:  # noqa: C901 - a promise per line
        now = self.world.database_now()
        for task_id, task in self.tasks.items():
            was = old["tasks"].get(task_id)
            if was is None or was == task:
                if was is None:
                    self._planned(actor, task, old)
                continue
            if task[T_EPOCH] < was[T_EPOCH]:
                raise Violation(
                    "G2", f"the epoch of task {task_id} fell from {was[T_EPOCH]} to {task[T_EPOCH]}"
                )
            if task[T_TOKEN] != was[T_TOKEN] and task[T_EPOCH] == was[T_EPOCH]:
                raise Violation("G2", f"task {task_id} changed hands without a new epoch")
            if was[T_STATE] not in OPEN and task[T_STATE] != was[T_STATE]:
                raise Violation("G2", f"task {task_id} went from {was[T_STATE]} to {task[T_STATE]}")
            if task[T_STATE] in OPEN and self.runs[task[T_RUN]][R_STATUS] not in LIVE:
                raise Violation("G1", f"task {task_id} is open but its run has ended")
            if task[T_DONE] < was[T_DONE]:
                raise Violation("G2", f"the progress of task {task_id} fell")
            if task[T_DONE] != was[T_DONE]:
                self._may_write(actor, was, old, "progress")
            if task[T_STATE] == "done" and was[T_STATE] != "done":
                self._may_write(actor, was, old, "a finish")
            if task[T_STATE] == "running":
                self._leased(actor, was, task, now)
            self.recovery.task_changed(was, task)

    def _planned(self, actor: Actor, task: Row, old: dict[str, dict[Any, Row]]) -> None:
        if task[T_ORDINAL] == 0:
            return
        run = self.runs[task[T_RUN]]
        siblings = [one for one in self.tasks.values() if one[T_RUN] == task[T_RUN]]
        begins = not any(one[T_PHASE] == task[T_PHASE] for one in siblings if one[0] in old["tasks"])
        # The slices of a phase are inserted by its plan, the plan by the last task of the phase before.
        ended = [
            was
            for one in siblings
            if (was := old["tasks"].get(one[0])) is not None and was[T_STATE] != one[T_STATE] == "done"
        ]
        self._may_write(actor, ended[0] if ended else None, old, "a phase" if begins else "slices")
        if run[R_PHASE] != task[T_PHASE] or any(
            one[T_PHASE] < task[T_PHASE] and one[T_STATE] != "done" for one in siblings
        ):
            raise Violation("G3", f"phase {task[T_PHASE]} of {run[R_SUBJECT]} began before the one before")
        if len(siblings) != (run[R_SLICES] or 0) + 1 + begins:
            raise Violation("G3", f"a run has {len(siblings)} tasks but says {run[R_SLICES]} slices")

    def _leased(self, actor: Actor, was: Row, task: Row, now: float) -> None:
        self._leases[task[T_TOKEN]] = task[T_LEASE]
        if task[T_EPOCH] == was[T_EPOCH]:
            then = task[T_LEASE] - self.world.scenario.terms.ttl
            if task[T_LEASE] > was[T_LEASE] and (was[T_LEASE] <= then or was[T_OWNER] != actor.process.name):
                raise Violation(
                    "G2", f"{actor.process.name} renewed a lease of task {task[0]} that had ended"
                )
        elif was[T_STATE] == "running" and was[T_LEASE] > now:
            message = f"{actor.process.name} claimed task {task[0]} whose lease by {was[T_OWNER]} still runs"
            raise Violation("G2", message)

    def _staged(self, actor: Actor, old: dict[str, dict[Any, Row]]) -> None:
        rows = self.reader.execute(
            "SELECT head_id, generation, slice, epoch, position, text FROM holdfast_chunks"
        )
        now = {row[:5]: row[5] for row in rows}
        tasks: dict[Row, Row] | None = None
        for position in now:
            if position in self.chunks:
                continue
            if tasks is None:
                tasks = {
                    (one[T_HEAD], one[T_GENERATION], one[T_ORDINAL]): one for one in old["tasks"].values()
                }
            task = tasks.get(position[:3])
            self._may_write(actor, task, old, "chunks")
            if task is not None and task[T_EPOCH] != position[3]:
                message = (
                    f"{actor.process.name} staged under epoch {position[3]}, the task is at {task[T_EPOCH]}"
                )
                raise Violation("G2", message)
        self.chunks = now

    # -- G3 -------------------------------------------------------------------------------------------

    def _told(self, old: dict[str, dict[Any, Row]]) -> None:
        """Whoever keeps a copy of a collection is told in the very commit that changes what is visible."""
        for head_id, head in self.heads.items():
            was = old["heads"].get(head_id)
            if was is None or head[H_KIND] != "index" or was[H_PUBLISHED:] == head[H_PUBLISHED:]:
                continue
            seen = {one[H_COLLECTION] for one in (was, head) if one[H_VISIBLE] and one[H_COLLECTION]}
            for name in sorted(f"{head[H_TENANT]}/{one}" for one in seen):
                if old["collections"].get(name, (name, 0)) == self.collections.get(name, (name, 0)):
                    raise Violation("G3", f"{head[H_SUBJECT]} changed in {name}, whose publish_seq did not")

    def _readers(self) -> None:
        for head_id, head in self.heads.items():
            if not head[H_VISIBLE] or head[H_KIND] != "index":
                continue
            run = next(
                (
                    one
                    for one in self.runs.values()
                    if one[R_HEAD] == head_id and one[R_GENERATION] == head[H_PUBLISHED]
                ),
                None,
            )
            if run is None or run[R_STATUS] != "success":
                raise Violation(
                    "G3", f"{head[H_SUBJECT]} shows generation {head[H_PUBLISHED]}, whose run did not succeed"
                )
            seen = [
                (position[2], position[4], text)
                for position, text in self.chunks.items()
                if position[0] == head_id and position[1] == head[H_PUBLISHED]
            ]
            if len(seen) != len(set(seen)) or set(seen) != chunks_of(head[H_SUBJECT], run[R_CONTENT]):
                raise Violation("G3", f"readers of {head[H_SUBJECT]} see {sorted(seen)} of {run[R_CONTENT]}")

    # -- G5 -------------------------------------------------------------------------------------------

    def _marked(self, actor: Actor, old: dict[str, dict[Any, Row]]) -> None:
        self._doubted(actor, old)
        for order_id, order in self.orders.items():
            was = old["orders"].get(order_id)
            if was is not None and was[O_STATE] == "settled" and order[O_STATE] != "settled":
                raise Violation("G5", f"order {order_id[:8]} was settled and is {order[O_STATE]}")
            if order[O_SENDS] == (0 if was is None else was[O_SENDS]):
                continue
            task = old["tasks"].get(order[O_TASK])
            self._may_write(actor, task, old, "a mark")
            relay = self.relays.get(order[O_CARRIER])
            if actor.process.role == "relay" and (relay is None or relay[L_STATE] == "gone"):
                raise Violation("G5", f"{actor.process.name} marked order {order_id[:8]} though it is gone")
            if task is not None and task[T_TOKEN] != order[O_HOLDER]:
                raise Violation(
                    "G2", f"{actor.process.name} marked order {order_id[:8]} under a token that is gone"
                )
            self._marks[actor.process.name, order_id] = order[O_HOLDER]

    def _doubted(self, actor: Actor, old: dict[str, dict[Any, Row]]) -> None:
        """Nobody doubts what a relay carries that is not gone, long before it must have ended."""
        now = self.world.database_now()
        for order_id, order in self.orders.items():
            was = old["orders"].get(order_id)
            if was is None or was[O_STATE] != "sent" or order[O_STATE] != "in_doubt":
                continue
            relay = self.relays.get(was[O_CARRIER])
            if relay is None or relay[L_STATE] == "gone" or relay[L_NAME] == actor.process.name:
                continue
            if now - was[O_DEADLINE] < 59.0:
                raise Violation(
                    "G5", f"{actor.process.name} doubts order {order_id[:8]}, which {relay[L_NAME]} carries"
                )

    def _relays_left(self, old: dict[str, dict[Any, Row]]) -> None:
        """A relay that leaves carries nothing; one that is gone stays so, and one that lives is not dead."""
        if old["relays"] is self.relays:
            return
        for relay_id, relay in self.relays.items():
            was = old["relays"].get(relay_id)
            if was is None or was[L_STATE] == relay[L_STATE]:
                continue
            if was[L_STATE] == "gone":
                raise Violation("G5", f"the relay {relay[L_NAME]} was gone and is {relay[L_STATE]}")
            process = self.world.known(relay[L_NAME])
            if relay[L_GONE_BY] == "lock" and not process.dead:
                raise Violation("G5", f"the relay {relay[L_NAME]} lives and was buried as dead")
            carried = [each[0] for each in self.orders.values() if each[O_CARRIER] == relay_id]
            left = [each for each in carried if self.orders[each][O_STATE] == "sent"]
            if relay[L_GONE_BY] == "itself" and left:
                raise Violation("G5", f"the relay {relay[L_NAME]} left {len(left)} orders behind")

    def order_state(self, order_id: str) -> str:
        """The state of an order as of the last commit."""
        return str(self.orders[order_id][O_STATE])

    def _money(self, actor: Actor, old: dict[Any, Row]) -> None:
        for name, budget in self.budgets.items():
            was = old.get(name)
            if budget[B_RESERVED] < 0:
                raise Violation("G5", f"the reservation of {name} is negative")
            limit = budget[B_LIMIT]
            if was is None or limit is None or actor.verb not in RESERVING:
                continue
            if budget[B_RESERVED] > was[B_RESERVED] and budget[B_SPENT] + budget[B_RESERVED] > limit:
                raise Violation("G5", f"an order was reserved in {name} above its hard limit")

    def order_of(self, key: str) -> tuple[str, str]:
        """The order that carries this idempotency key, and its tenant."""
        order_id = key.removeprefix("hf-")
        return order_id, self.orders[order_id][O_TENANT]

    def before_byte(self, actor: Actor, key: str, checked_at: float) -> None:
        """Only what this process marked as sent, once, and while it could trust its lease, is sent."""
        order_id, _ = self.order_of(key)
        token = self._marks.pop((actor.process.name, order_id), None)
        if token is None:
            raise Violation("G2", f"{actor.process.name} sent order {order_id[:8]} without having marked it")
        then = self.world.database_now() - (self.world.time - checked_at)
        order = self.orders[order_id]
        if (order_id, order[O_SENDS]) in self._sent:
            raise Violation("G5", f"order {order_id[:8]} has two first bytes of one send")
        self._sent.add((order_id, order[O_SENDS]))
        relay = self.relays.get(order[O_CARRIER])
        if actor.process.role == "relay" and (relay is None or relay[L_STATE] == "gone"):
            raise Violation("G5", f"{actor.process.name} sent order {order_id[:8]} after its burial")
        lease_until = self._leases.get(token, 0.0) if relay is None else relay[L_LEASE]
        if then > lease_until:
            late = then - lease_until
            raise Violation(
                "G2", f"{actor.process.name} passed the gate {late:.2f} s after its lease had ended"
            )

    def after_charge(self, parcel: Parcel) -> None:
        """G5: at most one charge per input, plus one for every doubt that was recorded before."""
        for text in dict.fromkeys(parcel.texts):
            count = self.service.charges[parcel.tenant, text]
            if count == 1:
                continue
            if self.service.profile.honours_keys:
                raise Violation("G5", f"{parcel.tenant} paid {count} times for {text!r}")
            key = key_of(parcel.tenant, text)
            doubts = sum(one[O_DOUBTS] for one in self.orders.values() if key in one[O_KEYS])
            if count > 1 + doubts:
                raise Violation(
                    "G5", f"{parcel.tenant} paid {count} times for {text!r} with {doubts} doubts recorded"
                )

    # -- for others -----------------------------------------------------------------------------------

    def parked(self) -> list[str]:
        """Orders that wait for a person."""
        return sorted(order_id for order_id, order in self.orders.items() if order[O_STATE] == "parked")

    def tight_budgets(self) -> list[tuple[str, str]]:
        """Budgets that keep work waiting."""
        return [(one[B_TENANT], one[B_SCOPE]) for one in self.budgets.values() if one[B_LIMIT] < 1_000_000]
