"""What goes wrong, and when: the planned faults of a seed, carried out at steps, fault points and moments."""

import sqlite3

from tests.simulation.processes import Cluster
from tests.simulation.scenario import Fault
from tests.simulation.storage import lost
from tests.simulation.world import Actor, Process, World

FLAKY = 0.05


class FaultInjector:
    """Carries out the faults of a scenario until the world is calm."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.town: Cluster | None = None
        self.down_until = 0.0
        self._at_points: dict[str, list[Fault]] = {}
        self._at_steps: dict[int, Fault] = {}
        self._fail_commit: list[Actor] = []
        self._flaky = "flaky" in world.scenario.features
        for fault in world.scenario.faults:
            if fault.where == "step":
                self._at_steps[fault.nth] = fault
            elif fault.where:
                self._at_points.setdefault(fault.where, []).append(fault)
            else:
                world.after(fault.at, lambda fault=fault: self._in_time(fault))
        world.on_point = self.at_point
        world.on_step = self.at_step

    def at_point(self, actor: Actor, name: str) -> None:
        """A fault point is passed."""
        # Each of these happens once, so that even after the calm has begun they come to an end.
        if self.world.scenario.only_workers and actor.process.role != "worker":
            return
        for fault in self._at_points.get(name, ()):
            if fault.nth != self.world.points[name] or (self.world.calm and fault.what == "freeze"):
                continue
            self.world.faults[fault.what] += 1
            self.world.disturbed()
            if fault.what == "crash":
                self.world.crashed_at.append(name)
                self.world.kill(actor.process, name)
            elif fault.what == "freeze":
                self._freeze(actor.process, fault.seconds)
            elif fault.what == "commit_error":
                self._fail_commit.append(actor)
            elif fault.what == "lost_answer":
                self.world.note("ANSWER LOST", name)
                self.world.lost_at.append(name)
                raise lost("the answer to the commit was lost")

        if self._flaky and not self.world.calm and self.world.rng.random() < FLAKY:
            self._stumble(actor, name)

    def _stumble(self, actor: Actor, name: str) -> None:
        """A flaky database: now and then a commit fails, or happens and is not heard of."""
        moment = name.partition(".")[2]
        self.world.disturbed()
        if moment == "commit":
            self.world.faults["commit_error"] += 1
            self._fail_commit.append(actor)
        elif moment == "committed":
            self.world.faults["lost_answer"] += 1
            self.world.lost_at.append(name)
            self.world.note("ANSWER LOST", name)
            raise lost("the answer to the commit was lost")

    def at_step(self, actor: Actor) -> None:
        """A step is taken."""
        fault = self._at_steps.get(self.world.steps)
        if fault is None or self.world.calm:
            return
        if self.world.scenario.only_workers and actor.process.role != "worker":
            return
        self.world.faults[f"{fault.what} at a step"] += 1
        self.world.disturbed()
        if fault.what == "crash":
            self.world.kill(actor.process, "at a step")
        elif fault.what == "freeze":
            self._freeze(actor.process, fault.seconds)
        else:
            actor.trouble = fault.what

    def _freeze(self, process: Process, seconds: float) -> None:
        world = self.world
        world.freeze(process, seconds)
        world.disturbed(seconds)
        holder = world.locks.holder
        if holder is not None and holder.process is process and world.rng.random() < 0.6:
            world.faults["cut while frozen"] += 1
            connection = world.locks.connection
            patience = world.rng.uniform(0.2, 5.0)
            world.after(
                patience, lambda: world.locks.cut_holder() if world.locks.connection is connection else None
            )

    def _in_time(self, fault: Fault) -> None:  # noqa: C901 - a fault per branch
        world = self.world
        if world.calm:
            return
        world.faults[fault.what] += 1
        world.note(fault.what.upper(), round(fault.seconds, 1))
        world.disturbed(fault.seconds if fault.what in {"outage", "broker_down"} else 0.0)
        victims = self.town.living()
        if fault.what == "outage":
            self.down_until = max(self.down_until, world.time + fault.seconds)
            world.locks.cut_holder()
            world.disturbed(fault.seconds + world.scenario.terms.ttl)
        elif fault.what == "flush":
            self.town.broker.flush()
        elif fault.what == "broker_down":
            self.town.broker.down_until = world.time + fault.seconds
        elif fault.what == "jump":
            world.database_jump += world.rng.uniform(0.01, 0.4)
        elif fault.what == "cut_holder":
            world.locks.cut_holder()
        elif fault.what.endswith("_relay"):
            self._to_a_relay(fault)
        elif not victims:
            return
        elif fault.what == "drain":
            self.town.drain(world.rng.choice(victims))
        elif fault.what == "kill":
            world.kill(world.rng.choice(victims), "kill -9")
        elif fault.what == "stop":
            self._freeze(world.rng.choice(victims), fault.seconds)

    def _to_a_relay(self, fault: Fault) -> None:
        world, house = self.world, self.town.relays
        victims = house.living()
        if not victims:
            return
        victim = world.rng.choice(victims)
        if fault.what == "kill_relay":
            world.kill(victim, "kill -9")
        elif fault.what == "stop_relay":
            self._freeze(victim, fault.seconds)
        else:
            house.start()  # its successor runs meanwhile
            house.drain(victim)

    def before_statement(self, actor: Actor, connection: sqlite3.Connection, statement: str) -> None:
        """The statement may meet a database that is away, or a connection that breaks."""
        world = self.world
        if world.time < self.down_until:
            if connection.in_transaction:
                connection.rollback()
                world.locks.release(connection)
                raise lost("the database went away")
            raise sqlite3.OperationalError("unable to open database file")
        trouble = actor.trouble
        if trouble == "cut" and statement not in {"BEGIN", "BEGIN IMMEDIATE"}:
            actor.trouble = None
            connection.rollback()
            world.locks.release(connection)
            world.note("CONNECTION LOST")
            raise lost("the connection was reset")
        if trouble == "locked" and statement == "BEGIN IMMEDIATE":
            actor.trouble = None
            raise sqlite3.OperationalError("database is locked")

    def before_commit(self, actor: Actor, connection: sqlite3.Connection) -> None:
        """The commit may fail before it happens."""
        if self.world.time < self.down_until or actor in self._fail_commit:
            if actor in self._fail_commit:
                self._fail_commit.remove(actor)
            self.world.note("COMMIT FAILED")
            connection.rollback()  # as SQLite does by itself when a COMMIT fails for I/O
            self.world.locks.release(connection)
            raise sqlite3.OperationalError("disk I/O error")

    def clear(self) -> None:
        """The sky is blue from now on."""
        self.down_until = 0.0
        self._fail_commit.clear()
        self.town.broker.down_until = 0.0
