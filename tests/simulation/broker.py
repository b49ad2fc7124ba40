"""A broker that loses, doubles, delays, reorders and forgets: a message is a wake-up, nothing may break."""

from tests.simulation.world import Actor, World


class Broker:
    """Messages on their way and messages that wait for a worker."""

    def __init__(self, world: World, loss: float) -> None:
        self._world = world
        self._loss = loss
        self._era = 0
        self._pending: list[tuple[str, int]] = []
        self._waiting: list[Actor] = []
        self.down_until = 0.0

    def wake(self, lane: str) -> None:
        """There is work in `lane` (the sender's side)."""
        self._send(("lane", 0))

    def wake_task(self, task_id: int, lane: str) -> None:
        """Try this very task (the sender's side)."""
        self._send(("task", task_id))

    def _send(self, message: tuple[str, int]) -> None:
        world, rng = self._world, self._world.rng
        if world.time < self.down_until:
            raise OSError("the broker is down")
        copies = 1
        if not world.calm:
            if rng.random() < self._loss:
                copies = 0
                world.faults["message lost"] += 1
                world.disturbed()
            elif rng.random() < 0.04:
                copies = 2
                world.faults["message doubled"] += 1
        for _ in range(copies):
            delay = rng.uniform(0.001, 0.05)
            if not world.calm and rng.random() < 0.06:
                delay = rng.uniform(0.5, 12.0)
                world.faults["message delayed"] += 1
                world.disturbed(delay)
            world.after(delay, lambda era=self._era: self._arrive(message, era))

    def _arrive(self, message: tuple[str, int], era: int) -> None:
        if era != self._era:
            return
        self._pending.append(message)
        free = [actor for actor in self._waiting if not actor.process.frozen and not actor.process.dead]
        if free:
            actor = self._world.rng.choice(free)
            self._waiting.remove(actor)
            self._world.wake(actor)

    def flush(self) -> None:
        """Everything on its way or waiting is gone."""
        self._era += 1
        self._pending.clear()

    def receive(self, actor: Actor, timeout: float) -> tuple[str, int] | None:
        """A message for this worker, in any order, or None after `timeout`."""
        if not self._pending:
            self._waiting.append(actor)
            actor.idle = True
            self._world.pulse()
            try:
                self._world.block(timeout)
            finally:
                actor.idle = False
                self._world.pulse()
                if actor in self._waiting:
                    self._waiting.remove(actor)
        if not self._pending:
            return None
        return self._pending.pop(self._world.rng.randrange(len(self._pending)))
