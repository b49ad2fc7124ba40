"""The simulated world: virtual time, actors, processes that die and freeze, and one seeded schedule.

Every actor is a greenlet. It runs until its next *step* (a database statement, a commit, a phase of an order,
a fault point, a sleep) and there hands over to the hub, which lets the actor with the earliest next event go
on. How long a step takes is drawn from the seed, so the seed alone decides every interleaving.
"""

import heapq
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from greenlet import getcurrent, greenlet

from holdfast.faults import Crash

BASE_TIME = 1_700_000_000.0
MOST_STEPS = 12_000


class Violation(BaseException):
    """A promise was broken; `oracle` names it, the message says how in a sentence."""

    def __init__(self, oracle: str, message: str) -> None:
        super().__init__(f"{oracle}: {message}")
        self.oracle = oracle
        self.message = message


class Actor(greenlet):
    """One thread of a simulated process."""

    def __init__(self, world: "World", process: "Process", name: str, body: Callable[[], Any]) -> None:
        super().__init__(self._live, parent=world.hub)
        self.world = world
        self.process = process
        self.name = name
        self.body = body
        self.ticket = 0
        self.woken = False
        self.verb = ""
        self.idle = False
        self.trouble: str | None = None
        self.seen_head: dict[int, tuple[Any, ...]] | None = None
        self.answer: Any = None
        self.error: BaseException | None = None
        self.on_end: Callable[[], None] | None = None

    def _live(self, *_: object) -> None:
        try:
            self.answer = self.body()
        except Crash:
            pass
        except BaseException as error:  # noqa: BLE001 - judged by whoever waits for it, or by the world
            self.error = error
        finally:
            self.process.actors.pop(self, None)
            self.world.locks.abandon(self)
        if self.on_end is not None:
            self.on_end()
        elif self.error is not None:
            self.world.found(self.error, self)


class Process:
    """A simulated operating-system process: it dies and freezes as a whole and has a clock of its own."""

    def __init__(self, world: "World", name: str, *, role: str) -> None:
        self.world = world
        self.name = name
        self.role = role
        self.actors: dict[Actor, None] = {}
        self.dead = False
        self.frozen_until = 0.0
        self.pace = world.rng.choice((0.4, 1.0, 1.0, 1.0, 2.5))
        self.clock_offset = world.rng.uniform(0.0, 1e6)
        self.clock_rate = 1.0 + world.rng.uniform(-0.03, 0.03)
        self.born_at = world.time
        self.place = 0
        self.parent = ""
        self.machine = world.rng.choice(world.scenario.machines)
        self.host: Any = None
        self.engine: Any = None
        self.main: Any = None
        # Of a relay: what carries, its lease, and the talks about orders.
        self.carrier: Any = None
        self.lease: Any = None
        self.talks: dict[str, Any] = {}
        self.is_up = self.is_draining = False

    def clock(self) -> float:
        """The boot-time clock of this process's machine."""
        return self.clock_offset + self.world.time * self.clock_rate

    def spawn(self, name: str, body: Callable[[], Any], delay: float = 0.0) -> Actor:
        """A new actor of this process, which starts after `delay`."""
        actor = Actor(self.world, self, name, body)
        self.actors[actor] = None
        self.world.schedule(actor, delay)
        return actor

    @property
    def frozen(self) -> bool:
        """True while nothing of this process runs."""
        return self.frozen_until > self.world.time


class World:
    """Time, the schedule and everything in it. One per seed."""

    def __init__(self, scenario: Any) -> None:
        self.scenario = scenario
        self.rng = random.Random(scenario.seed)
        self.calm = False
        self.over = False
        self.disturbed_until = 0.0
        self.check: Any = None
        self.pulse: Callable[[], None] = _nothing
        self.time = 0.0
        self.database_jump = 0.0
        self.hub = getcurrent()
        self.current: Actor | None = None
        self.steps = 0
        self.trace: list[tuple[Any, ...]] = []
        self.faults: Counter[str] = Counter()
        self.points: Counter[str] = Counter()
        self.crashed_at: list[str] = []
        self.lost_at: list[str] = []
        self.problem: BaseException | None = None
        self.problem_in = ""
        self.processes: list[Process] = []
        self.locks: Any = None
        self.on_point: Callable[[Actor, str], None] = lambda actor, name: None
        self.on_step: Callable[[Actor], None] = lambda actor: None
        self.on_death: Callable[[Process, str], None] = lambda process, why: None
        self.on_freeze: Callable[[Process], None] = lambda process: None
        self._events: list[tuple[float, int, Any, int]] = []
        self._number = 0
        self._reap: list[Process] = []
        self._until = 0.0
        self._tail = 0.02 if scenario.tight else 0.12
        self._unit = 0.002 if scenario.tight else 0.01

    def known(self, name: str) -> Process | None:
        """The process of this name, dead or alive."""
        return next((one for one in self.processes if one.name == name), None)

    # -- time and order -------------------------------------------------------------------------------

    def database_now(self) -> float:
        """The database clock."""
        return BASE_TIME + self.time + self.database_jump

    def schedule(self, actor: Actor, delay: float) -> None:
        """`actor` goes on `delay` seconds from now; an earlier appointment of it is void."""
        actor.ticket += 1
        self._number += 1
        heapq.heappush(self._events, (self.time + delay, self._number, actor, actor.ticket))

    def after(self, delay: float, action: Callable[[], None]) -> None:
        """`action` happens `delay` seconds from now, outside every process."""
        self._number += 1
        heapq.heappush(self._events, (self.time + delay, self._number, action, 0))

    def latency(self) -> float:
        """How long one step takes: mostly a moment, sometimes a while."""
        draw = self.rng.random()
        if draw < self._tail:
            return min(1.0, self.rng.expovariate(1 / 0.4))
        return self._unit * (0.05 + draw)

    def run(self, until: float, done: Callable[[], bool] | None = None) -> bool:
        """Let the world go on until `until`, or until `done`; True if it was done. Raises what was found."""
        self._until = until
        while self._events and self.problem is None:
            if self._reap:
                self._bury()
                continue
            at = self._events[0][0]
            if at > until or (done is not None and done()):
                break
            _, _, target, ticket = heapq.heappop(self._events)
            if isinstance(target, Actor):
                self._resume(target, ticket, at)
            else:
                self.time = max(self.time, at)
                target()
        if self.problem is not None:
            raise self.problem
        if self.steps >= MOST_STEPS:
            raise Violation("liveness", f"the schedule did not come to an end within {MOST_STEPS} steps")
        if done is not None and done():
            return True
        self.time = max(self.time, until)
        return False

    def _resume(self, actor: Actor, ticket: int, at: float) -> None:
        if ticket != actor.ticket or actor.dead:
            return
        process = actor.process
        if process.frozen_until > at:
            self.schedule(actor, process.frozen_until - self.time + self.rng.random() * 0.01)
            return
        self.time = max(self.time, at)
        self.current = actor
        actor.switch()
        self.current = None

    def found(self, error: BaseException, actor: Actor | None = None) -> None:
        """Something is wrong; the first finding ends the seed."""
        if self.problem is None:
            self.problem = error
            self.problem_in = f"{actor.process.name}/{actor.name}" if actor else ""

    # -- what actors do -------------------------------------------------------------------------------

    def wait(self, delay: float) -> None:
        """The current actor goes on after `delay`."""
        actor = self.current
        process = actor.process
        if process.dead:
            raise Crash
        at = self.time + delay
        if self._is_next(at) and process.frozen_until <= self.time:
            self.time = at
            return
        self.schedule(actor, delay)
        self._hand_over(actor)

    def _is_next(self, at: float) -> bool:
        return at <= self._until and not self._reap and (not self._events or self._events[0][0] > at)

    def block(self, timeout: float | None) -> bool:
        """The current actor waits to be woken; False if `timeout` passed first."""
        actor = self.current
        if actor.process.dead:
            raise Crash
        actor.woken = False
        if timeout is None:
            actor.ticket += 1
        else:
            self.schedule(actor, timeout)
        self._hand_over(actor)
        return actor.woken

    def wake(self, actor: Actor, delay: float = 0.0) -> None:
        """A blocked actor goes on."""
        actor.woken = True
        self.schedule(actor, delay)

    def _hand_over(self, actor: Actor) -> None:
        self.hub.switch()
        self.current = actor
        if actor.process.dead:
            raise Crash

    def step(self, what: str) -> None:
        """A scheduling point of the current actor: anything may happen elsewhere before it goes on."""
        actor = self.current
        if actor.process.dead:
            raise Crash
        self.steps += 1
        if self.steps >= MOST_STEPS:
            raise Violation("liveness", f"the schedule did not come to an end within {MOST_STEPS} steps")
        self.trace.append((self.time, actor.process.name, actor.name, what))
        self.on_step(actor)
        self.wait(self.latency() * actor.process.pace)

    def point(self, name: str) -> None:
        """A fault point was reached."""
        actor = self.current
        if actor is None:
            return
        if actor.process.dead:
            raise Crash
        self.points[name] += 1
        verb, _, moment = name.partition(".")
        if moment == "commit":
            actor.verb = verb
        self.on_point(actor, name)
        self.step(name)

    def note(self, what: str, *details: Any) -> None:
        """A line for the reader of the trace."""
        where = self.current.process.name if self.current else "-"
        who = self.current.name if self.current else "world"
        self.trace.append((self.time, where, who, what, *details))

    def disturbed(self, seconds: float = 0.0) -> None:
        """Until then recovery may take longer than promised."""
        self.disturbed_until = max(self.disturbed_until, self.time + seconds)

    # -- death and sleep ------------------------------------------------------------------------------

    def kill(self, process: Process, why: str) -> None:
        """The process is gone, with all that was in its memory. Raises Crash if it is the current one."""
        if process.dead:
            return
        self.note("KILLED", process.name, why)
        process.dead = True
        self.disturbed(self.scenario.sweep_every)  # its turn of the sweep goes to nobody
        self.on_death(process, why)
        if self.current is None:
            self._reap.append(process)
            self._bury()
            return
        self._reap.append(process)
        if self.current.process is process:
            raise Crash

    def _bury(self) -> None:
        for process in self._reap:
            while process.actors:
                actor = next(iter(process.actors))
                process.actors.pop(actor)
                actor.on_end = _nothing
                actor.ticket += 1
                if actor:  # begun: an actor that never ran has nothing to unwind
                    self.current = actor
                    actor.throw(Crash)
                    self.current = None
                self.locks.abandon(actor)
        self._reap.clear()

    def freeze(self, process: Process, seconds: float) -> None:
        """Nothing of the process runs for `seconds`; it does not notice."""
        self.note("FROZEN", process.name, round(seconds, 2))
        process.frozen_until = self.time + seconds
        self.on_freeze(process)

    def end(self) -> None:
        """Nothing is left running."""
        for process in self.processes:
            if not process.dead:
                process.dead = True
                self._reap.append(process)
        self.current = None
        self._bury()
        self._events.clear()


def _nothing() -> None:
    """A dead actor tells nobody."""
