"""Clients: what people and programs ask for, and the check of each answer against what was committed (G6)."""

from collections import Counter
from typing import Any

from holdfast.core.errors import StoreUnavailableError
from holdfast.core.records import Ask, RequestResult
from holdfast.store.follow_ups import actions
from holdfast.store.money import budgets, orders
from holdfast.store.views import reads
from tests.simulation.kinds import chunks_of
from tests.simulation.processes import Cluster
from tests.simulation.scenario import ClientAction
from tests.simulation.world import Process, Violation, World

PRICE = 15_000  # of one call: three tokens of an unknown model, in nano-dollars
TIGHT, LOOSE = 2 * PRICE, 10_000 * PRICE


class Clients:
    """Carries out the deeds of a scenario, each as an actor of a client process."""

    def __init__(self, world: World, town: Cluster) -> None:
        self.world = world
        self.town = town
        self.dispositions: Counter[str] = Counter()
        self.accepted: dict[str, str] = {}
        self.pending = len(world.scenario.deeds)
        self._processes: dict[int, Process] = {}
        self.actions: list[tuple[str, int]] = []
        self._asked = 0
        for deed in world.scenario.deeds:
            world.after(deed.at, lambda deed=deed: self._begin(deed))
        if "deliver" in world.scenario.features:
            for _ in range(4):
                world.after(world.rng.uniform(0.3, 15.0), self._stray_delivery)

    def _begin(self, deed: ClientAction) -> None:
        process = self._processes.get(deed.client)
        if process is None or process.dead:
            process = self._processes[deed.client] = self.town.client(deed.client)
        actor = process.spawn(deed.what, lambda: self._carry_out(process, deed))
        actor.on_end = lambda: self._ended(actor)

    def _ended(self, actor: Any) -> None:
        self.pending -= 1
        if actor.error is not None:
            self.world.found(actor.error, actor)

    def died(self, process: Process) -> None:
        """The deeds of a dead client are over."""
        if process.role == "client":
            self.pending -= sum(1 for actor in process.actors if actor is not self.world.current)

    def _carry_out(self, process: Process, deed: ClientAction) -> None:
        self.world.note(deed.what, deed.tenant, deed.subject, deed.content)
        try:
            getattr(self, f"_{deed.what}")(process, deed)
        except StoreUnavailableError:
            self.world.note("gave up: the database is unreachable")

    # -- deeds ----------------------------------------------------------------------------------------

    def _request(self, process: Process, deed: ClientAction) -> None:
        self._asked += 1
        ask = Ask(
            kind="index",
            subject=deed.subject,
            content=deed.content,
            tenant=deed.tenant,
            collection=deed.collection,
            lane=deed.lane,
            force=deed.force,
            expect_generation=deed.expect,
            actor=f"ask{self._asked}",
        )
        self._judge(process.engine.request(ask), ask.actor, ask)

    def _again(self, process: Process, deed: ClientAction) -> None:
        self._asked += 1
        name = f"ask{self._asked}"
        answer = process.engine.again(deed.tenant, "index", deed.subject, force=deed.force, actor=name)
        if answer.reason != "unknown_subject":
            self._judge(answer, name, None)

    def _judge(self, answer: RequestResult, actor: str, ask: Ask | None) -> None:
        """G6: what the answer says is what was committed, once, and a refusal made nothing."""
        self.dispositions[answer.disposition] += 1
        self.world.note("answer", str(answer.disposition), answer.reason, answer.generation)
        reader = self.world.check.reader
        created = reader.execute("SELECT id FROM holdfast_runs WHERE actor = ?", (actor,)).fetchall()
        noted = reader.execute(
            "SELECT reason, run_id FROM holdfast_journal WHERE verb = 'request' AND actor = ?", (actor,)
        ).fetchall()
        pruned = self.world.scenario.history_retention is not None
        if answer.created:
            if [row[0] for row in created] != [answer.run_id] and not (pruned and not created):
                raise Violation("G6", f"{actor} was told {answer.disposition} but made the runs {created}")
            self.accepted[answer.run_id or ""] = ask.content if ask else ""
        else:
            if created:
                raise Violation("G6", f"{actor} was told {answer.disposition} but made a run")
            seen = self.world.current.seen_head or {}
            head = seen.get(answer.head_id)
            if head is not None and answer.run_id != head[1]:
                raise Violation("G6", f"{actor}'s refusal names {answer.run_id}, active is {head[1]}")
        # A refusal whose answer was lost may be followed by another verdict; the last one is the answer.
        reasons = [row[0] for row in noted]
        once = len(set(reasons)) == len(reasons)
        right = reasons and once and reasons[-1].startswith(f"{answer.disposition}:")
        if not right and not (pruned and not noted):
            raise Violation("G6", f"{actor} was told {answer.disposition}, the journal says {noted}")

    def _head_of(self, process: Process, deed: ClientAction) -> Any:
        return reads.head(process.engine.db, deed.tenant, "index", deed.subject)

    def _cancel(self, process: Process, deed: ClientAction) -> None:
        head = self._head_of(process, deed)
        if head is not None:
            self.world.note("cancelled", str(process.engine.cancel(head.id, actor="a client")))

    def _delete(self, process: Process, deed: ClientAction) -> None:
        process.engine.delete(deed.tenant, deed.subject, actor="a client")
        head = self._head_of(process, deed)
        self.world.note("deleted", head.generation if head else None)

    def _look(self, process: Process, deed: ClientAction) -> None:
        """G3, as a reader has it: two statements in one snapshot, anything between them."""
        head = self._head_of(process, deed)
        if head is None:
            return
        seen = reads.visible_chunks(process.engine.db, head.id)
        if seen is None:
            return
        items = sorted((one.slice, one.chunk.position, one.chunk.text) for one in seen.chunks)
        contents = {one[2].split("|")[1] for one in items}
        if (
            len(contents) != 1
            or set(items) != chunks_of(deed.subject, contents.pop())
            or len(items) != len(set(items))
        ):
            raise Violation("G3", f"a reader of {deed.subject} saw generation {seen.generation} as {items}")

    def _add_action(self, process: Process, deed: ClientAction) -> None:
        token = process.host.token()
        created = actions.add_action(
            process.engine.db,
            tenant=deed.tenant,
            collection="col1",
            kind="note",
            options={},
            pipeline="note@1",
            token=token,
        )
        self.actions.append((deed.tenant, created))

    def _remove_action(self, process: Process, deed: ClientAction) -> None:
        if self.actions:
            actions.remove_action(process.engine.db, *self.world.rng.choice(self.actions))

    def _move(self, process: Process, deed: ClientAction) -> None:
        head = self._head_of(process, deed)
        if head is not None:
            actions.move(process.engine.db, head.id, self.world.rng.choice(("col1", "col2")))

    def _tighten(self, process: Process, deed: ClientAction) -> None:
        scope = self.world.rng.choice((budgets.TENANT, "collection:col1"))
        budgets.set_budget(process.engine.db, deed.tenant, scope, hard=TIGHT)

    def _loosen(self, process: Process, deed: ClientAction) -> None:
        budgets.set_budget(process.engine.db, deed.tenant, budgets.TENANT, hard=LOOSE)

    # -- others ---------------------------------------------------------------------------------------

    def _stray_delivery(self) -> None:
        """A message that names some task, of any run and generation, arrives out of nowhere."""
        ids = sorted(self.world.check.tasks)
        if ids and not self.world.calm:
            self.town.broker._arrive(("task", self.world.rng.choice(ids)), self.town.broker._era)
            self.world.faults["stray delivery"] += 1

    def help(self) -> None:
        """A person looks after what waits for one: budgets are raised, parked orders resolved."""
        world = self.world
        if world.over:
            return
        parked = world.check.parked()
        tight = world.check.tight_budgets() if world.calm else []
        if parked or tight:
            process = self.town.client(0)
            self.pending += 1
            actor = process.spawn("person", lambda: self._look_after(process, parked, tight))
            actor.on_end = lambda: self._ended(actor)
        world.after(3.0, self.help)

    def _look_after(self, process: Process, parked: list[str], tight: list[tuple[str, str]]) -> None:
        try:
            for order_id in parked:
                service = self.town.service
                under_way = any(parcel.order_id == order_id for parcel in service.open)
                charged = bool(service.order_charges[order_id]) or under_way
                self.world.note("resolved", order_id[:8], charged)
                orders.resolve(process.engine.db, order_id, charged=charged, actor="a person")
            for tenant, scope in tight:
                budgets.set_budget(process.engine.db, tenant, scope, hard=LOOSE)
        except StoreUnavailableError:
            self.world.note("gave up: the database is unreachable")
