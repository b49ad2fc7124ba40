"""Simulated processes around the real engine: workers with their watchdog and sweeper, and clients."""

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.core import decide
from holdfast.core.errors import BadRequestError, StoreUnavailableError
from holdfast.core.records import Skipped
from holdfast.core.states import Loss
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.engine.sweep import Duty, SweepRules
from holdfast.leases.sql import SqlLeases
from holdfast.store.protocol import losses
from holdfast.testing.prices import PRICES
from tests.simulation import kinds
from tests.simulation.broker import Broker
from tests.simulation.oracles import T_EPOCH, T_OWNER, T_STATE
from tests.simulation.provider import Line, Service
from tests.simulation.relays import RelayHouse, WorkersDoor
from tests.simulation.storage import Storage
from tests.simulation.world import Process, World

# Deaths that are the work's own doing: the parent lives and sees them.
DEADLY = ("poison", "hard time limit")


def _fail() -> int:
    """A duty that never succeeds: no other may be held up by it."""
    raise BadRequestError("this duty always fails")


class Host:
    """The engine's host in a simulated process: its clock drifts, its randomness is the seed's."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._world = process.world

    def clock(self) -> float:
        return self._process.clock()

    def sleep(self, seconds: float) -> None:
        self._world.steps += 1
        self._world.trace.append((self._world.time, self._process.name, "", f"sleep {seconds:.2f}"))
        self._world.wait(max(0.0, seconds) / self._process.clock_rate)

    def token(self) -> str:
        return f"{self._world.rng.getrandbits(128):032x}"

    def jitter(self) -> float:
        return self._world.rng.random()

    def process(self) -> str:
        return self._process.name

    def parent(self) -> str:
        return self._process.parent

    def has_died(self, process: str) -> bool:
        """Who is on the same machine can tell; others cannot."""
        known = self._world.known(process)
        return known is not None and known.dead and known.machine == self._process.machine

    def lock_is_free(self, lock: Any) -> bool:
        """The path of a lock names its process; the device is the machine of it."""
        known = self._world.known(lock.path)
        return known is not None and known.dead and lock.device == self._process.machine

    def gather(self, jobs: Sequence[Callable[[], Any]], limit: int) -> list[Any]:
        """The jobs as actors of this process, at most `limit` at once; all end before an error is raised."""
        if len(jobs) == 1:
            return [jobs[0]()]
        world, parent = self._world, self._world.current
        waiting, children = list(enumerate(jobs)), []
        running = 0

        def start() -> None:
            nonlocal running
            while waiting and running < limit:
                number, job = waiting.pop(0)
                running += 1
                child = self._process.spawn(f"{parent.name}.{number}", job, world.latency())
                child.on_end = ended
                children.append(child)

        def ended() -> None:
            nonlocal running
            running -= 1
            start()
            if not running:
                world.wake(parent)

        start()
        while running or waiting:
            world.block(None)
        for child in children:
            if child.error is not None:
                raise child.error
        return [child.answer for child in children]


class Cluster:
    """Everybody in the world: it starts workers, replaces the dead ones and counts what they did."""

    def __init__(self, world: World, storage: Storage) -> None:
        self.world = world
        self.storage = storage
        self.scenario = world.scenario
        self.broker = Broker(world, self.scenario.loss)
        self.service = Service(world, self.scenario.profile, self.scenario.moods)
        self.workers: list[Process] = []
        self.endings: Counter[str] = Counter()
        self.skips: Counter[str] = Counter()
        self._places = [(storage.borrow(), storage.borrow()) for _ in range(self.scenario.workers)]
        self._parent_databases = [storage.borrow() for _ in range(self.scenario.workers)]
        self._client_databases = [storage.borrow() for _ in range(self.scenario.clients)]
        self._born = 0
        self.relays = RelayHouse(world, storage, self.service, self._process) if self.scenario.relay else None
        self._kinds = kinds.make(world, lambda why: world.kill(world.current.process, why))

    def client(self, number: int) -> Process:
        """A client process with an engine that never works."""
        process = self._process(f"client{number}", "client")
        process.engine = self._engine(process, copy.copy(self._client_databases[number]), None)
        return process

    def _process(self, name: str, role: str) -> Process:
        self._born += 1
        process = Process(self.world, f"{name}.{self._born}", role=role)
        process.host = Host(process)
        self.world.processes.append(process)
        return process

    def _engine(self, process: Process, database: Any, watch: Any) -> Engine:
        scenario = self.scenario
        parts = EngineDependencies(
            kinds=self._kinds,
            providers={"sim": Line(self.service)},
            prices=PRICES,
            sender=self.broker,
            host=process.host,
            leases=SqlLeases(watch or database, scenario.terms),
            watched=process.role == "worker",
            watch=watch,
            policy=scenario.policy,
            patience=scenario.patience,
            rules=SweepRules(
                interval=scenario.sweep_every,
                tidy_every=scenario.tidy_every,
                history_every=10.0,
                history_retention=scenario.history_retention,
            ),
            lock_held_delay=scenario.lock_held_delay,
            lock_held_times=3,
            owner=process.name,
            relays=None if self.relays is None else WorkersDoor(self.relays, process),
            duties=[Duty("bad", 2.0, _fail)] if "bad_duty" in scenario.features else [],
        )
        return Engine(database, parts)

    def worker(self, place: int) -> Process:
        """A new worker process: one that works, one that watches, one that sweeps."""
        process = self._process(f"worker{place}", "worker")
        process.place = place
        parent = self._process(f"parent{place}", "parent")
        parent.machine, process.parent = process.machine, parent.name
        # A new process knows nothing of the old one; the engine beneath is shared: compiling is dear.
        database, watch = (copy.copy(one) for one in self._places[place])
        engine = process.engine = self._engine(process, database, watch)
        self.workers.append(process)
        main = process.spawn("main", lambda: self._work(process, engine))
        process.main = main
        process.spawn("watchdog", lambda: self._watch(process, engine))
        process.spawn("sweeper", lambda: self._sweep(process, engine), self.world.rng.uniform(0.0, 2.0))
        return process

    def _work(self, process: Process, engine: Engine) -> None:
        actor, rng = self.world.current, self.world.rng
        while not engine.draining.is_set():
            message = self.broker.receive(actor, self.scenario.poll)
            try:
                if message is not None and message[0] == "task":
                    self._count(engine.deliver(message[1]))
                else:
                    for done in engine.work_off(most=rng.choice((1, 3, 10))):
                        self._count(done)
            except StoreUnavailableError:
                self.world.note("the database is unreachable")
            except OSError:
                self.world.note("the broker is unreachable")
        self.world.note("DRAINED")
        self.world.after(0.1, lambda: self.world.kill(process, "drained"))

    def _count(self, done: Any) -> None:
        if isinstance(done, Skipped):
            self.skips[done.reason] += 1
        else:
            self.endings[done.ending] += 1
            self.world.note("ended", done.claim.task_id, str(done.ending), done.reason[:60])

    def _watch(self, process: Process, engine: Engine) -> None:
        while True:
            process.host.sleep(self.scenario.terms.renew_every)
            engine.watchdog.beat()

    def _sweep(self, process: Process, engine: Engine) -> None:
        while True:
            try:
                engine.sweep()
            except StoreUnavailableError:
                self.world.note("the database is unreachable")
            process.host.sleep(self.scenario.sweep_every * (0.9 + 0.2 * process.host.jitter()))

    def drain(self, process: Process) -> None:
        """A worker is told to stop: what waits for an answer goes to others, and the answer is kept."""
        process.engine.drain()

        def hand_over() -> None:
            if process.engine.carrier.orders:
                try:
                    process.engine.hand_over("draining")
                except (StoreUnavailableError, OSError):
                    self.world.note("not handed over")

        process.spawn("hand over", hand_over, self.world.latency())

    def bereave(self, process: Process, why: str) -> None:
        """A worker's process died: its parent dies with it, or tells what it had in hand."""
        world = self.world
        parent = world.known(process.parent)
        if process.role != "worker" or parent is None or parent.dead:
            return
        whole = not world.calm and why not in DEADLY and world.rng.random() < 0.5
        held = [
            (one[0], one[T_EPOCH])
            for one in world.check.tasks.values()
            if one[T_OWNER] == process.name and one[T_STATE] == "running"
        ]
        if whole or not held:
            parent.dead = True
            world.faults["whole worker lost"] += whole
            return
        database = copy.copy(self._parent_databases[process.place])
        parent.host = Host(parent)
        parent.spawn(
            "deaths", lambda: self._tell(parent, database, process, held), world.rng.uniform(0.0, 0.6)
        )

    def _tell(self, parent: Process, database: Any, process: Process, held: list[tuple[int, int]]) -> None:
        for task_id, epoch in held:
            output = {"loss": Loss.PROCESS_DIED, "caps": decide.Caps(), "process": process.name}
            while True:
                try:
                    losses.lose(database, task_id, epoch, **output)
                    break
                except StoreUnavailableError:
                    parent.host.sleep(1.0)
        self.world.after(0.0, lambda: self.world.kill(parent, "nothing left to watch over"))

    def living(self) -> list[Process]:
        """Workers that are neither dead nor draining."""
        return [one for one in self.workers if not one.dead and not one.engine.draining.is_set()]

    def replace(self, process: Process) -> None:
        """A dead worker is followed by a new one after a while, or never if another lives."""
        world = self.world
        if process.role != "worker":
            return
        others = [one for one in self.living() if one is not process]
        if others and not world.calm and world.rng.random() < 0.25:
            return
        delay = world.rng.choice((0.3, 2.0, 8.0))
        world.after(delay, lambda: None if world.over else self.worker(process.place))

    def idle(self) -> bool:
        """True when a worker could take a task at once."""
        return any(one.main.idle and not one.frozen for one in self.living())

    def settled(self) -> bool:
        """True when no worker is in the middle of anything and no order is on its way."""
        busy = any(not one.main.idle for one in self.workers if not one.dead)
        if self.relays is not None:
            busy = busy or any(one.talks for one in self.relays.relays if not one.dead)
        return not busy and not self.service.open
