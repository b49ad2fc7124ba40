"""G7: how long a task of a dead or frozen holder waits until another worker has it."""

from tests.simulation.oracles import OPEN, T_EPOCH, T_OWNER, T_STATE, Check, Row
from tests.simulation.processes import Cluster
from tests.simulation.world import Process, Violation, World


class Recovery:
    """Watches the tasks of lost holders. Time in which nobody could have helped is not counted."""

    def __init__(self, world: World, check: Check, town: Cluster) -> None:
        self._world = world
        self._check = check
        self._town = town
        self._lost: dict[int, tuple[float, int]] = {}
        self._had_idle = False
        self._none_idle_since = 0.0
        self._none_idle_until = 0.0
        self.clean: list[tuple[float, float]] = []
        self.slack = 4.0 if world.scenario.tight else 12.0

    def holder_lost(self, process: Process) -> None:
        """The process died or froze; whatever it holds must be taken over."""
        for task_id, task in self._check.tasks.items():
            if task[T_OWNER] == process.name and task[T_STATE] == "running" and task_id not in self._lost:
                self._lost[task_id] = (self._world.time, task[T_EPOCH])
        self.pulse()

    def pulse(self) -> None:
        """Somebody became idle or busy, froze or died."""
        now, ttl = self._world.time, self._world.scenario.terms.ttl
        idle = self._town.idle()
        if idle and not self._had_idle:
            self._none_idle_until = now
            if now - self._none_idle_since > ttl * 0.7:
                self._world.disturbed(ttl)
        elif self._had_idle and not idle:
            self._none_idle_since = now
        self._had_idle = idle

    def _grace_until(self) -> float:
        """When the grace after an outage ends, by the world's clock."""
        row = self._check.reader.execute(
            "SELECT grace_until FROM holdfast_duties WHERE name = 'leases'"
        ).fetchone()
        return row[0] - self._world.database_now() + self._world.time if row else 0.0

    def task_changed(self, was: Row, task: Row) -> None:
        """A task's row has changed."""
        lost = self._lost.get(task[0])
        if lost is None:
            return
        since, epoch = lost
        if task[T_STATE] not in OPEN or task[T_STATE] == "waiting":
            del self._lost[task[0]]
            return
        if task[T_STATE] != "running" or task[T_EPOCH] == epoch:
            return
        del self._lost[task[0]]
        # Whoever was the last to be idle was idle until it heard of this task, if it has not been busy since.
        now, ttl = self._world.time, self._world.scenario.terms.ttl
        helped = now if self._had_idle else self._none_idle_since
        last_trouble = max(self._world.disturbed_until, self._none_idle_until)
        # The sweep's own word for its grace is taken for one lease time after the last trouble, no longer.
        due = max(since + ttl, last_trouble, min(self._grace_until(), last_trouble + ttl))
        sweep = self._world.scenario.sweep_every
        if due == since + ttl and self._world.disturbed_until <= since + sweep and now - helped < 1.0:
            self.clean.append((now - since, now - due - sweep))
        if helped - due > sweep * 1.2 + self.slack:
            message = f"task {task[0]} was taken over {now - since:.1f} s after its holder was lost"
            raise Violation("G7", message)
