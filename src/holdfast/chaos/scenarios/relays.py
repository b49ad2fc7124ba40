"""Workers and relays that die while a relay carries the orders, at a provider without keys."""

import contextlib
import random
from collections.abc import Iterator
from typing import Any

from holdfast.chaos.evidence import Evidence
from holdfast.chaos.expectations import expect
from holdfast.chaos.figures import Figures
from holdfast.chaos.oracle import Kill
from holdfast.chaos.relay_processes import RelayProcess
from holdfast.chaos.scene import Scene
from holdfast.chaos.stacks import Stack
from holdfast.chaos.worker_processes import WorkerProcess
from holdfast.testing.meter import Meter

# Orders that are open when a worker is killed.
OPEN = 2


@contextlib.contextmanager
def relayed(stack: Stack, meter: Meter, rng: random.Random, **changes: object) -> Iterator["RelayedScene"]:
    """A scene whose workers send nothing themselves."""
    with RelayedScene(stack, meter, rng, relay="require", attempt_cap=20, **changes) as scene:
        try:
            yield scene
        finally:
            meter.release()
            for relay in scene.relays:
                relay.kill()


class RelayedScene(Scene):
    """A scene with relays; whose an order is, is known by the claim that holds it."""

    def __init__(self, *words: Any, **changes: Any) -> None:
        self.relays: list[RelayProcess] = []
        super().__init__(*words, **changes)

    def relay(self) -> RelayProcess:
        """A relay that is starting."""
        name = f"relay{len(self.relays) + 1}"
        relay = RelayProcess(name, self.environment, self.stack.folder)
        self.relays.append(relay)
        return relay

    def open_orders(self, worker: WorkerProcess) -> list[dict[str, Any]]:
        """The exchanges at the meter that a relay carries for this worker."""
        tokens = {row.token for row in self.held_by(worker)}
        keys = {row.idempotency_key for row in self.rows("orders", state="sent") if row.holder in tokens}
        return [entry for entry in self.open_exchanges() if entry["idempotency_key"] in keys]

    def hold_open(self, worker: WorkerProcess, number: int = 1) -> None:
        """So many orders of this worker are open at the meter, charged or not; `meter.release` lets them go.

        There must be tasks for everybody: what the others send is held too.
        """
        self.meter.hold("after" if self.rng.random() < 0.5 else "before")
        what = f"{number} orders of {worker.name} are open at the meter"
        self.wait(lambda: len(self.open_orders(worker)) >= number, 40, what)

    def open_exchanges(self) -> list[dict[str, Any]]:
        """All exchanges that are open at the meter."""
        return [
            entry
            for entry in self.meter.log()
            if entry["inputs"] and entry["replied_at"] is None and not entry["cut"]
        ]

    def said(self) -> str:
        """Also the last lines of every relay."""
        return "\n".join([super().said(), *(relay.said() for relay in self.relays)])


def _doubted(evidence: Evidence) -> list[object]:
    return [(row["id"], row["doubts"]) for row in evidence.orders if row["doubts"]]


def worker_kills(stack: Stack, meter: Meter, rng: random.Random, times: int = 6) -> Figures:
    """Whole workers are killed while their orders are open: each is settled, and nothing is paid twice."""
    with relayed(stack, meter, rng) as scene:
        relay = scene.relay().ready()
        workers = scene.started(2)
        meter.plan(latency=0.15)
        for _ in range(times):
            victim = rng.choice(workers).ready()
            scene.papers(4, slices=3, batches=4, inputs=3)
            scene.hold_open(victim, OPEN)
            scene.kill(victim)
            meter.release()
            workers.remove(victim)
            workers.append(scene.start())
            scene.linger(0.5, 2.0)
        scene.wait_done()
        for worker in workers:
            worker.ready()
        scene.after(_doubted, "orders were in doubt although no relay died")
        opened = sum(len(kill.open) for kill in scene.kills)
        figures = scene.judge(exact=True, notes=[f"{len(scene.kills)} kills, {opened} orders open"])
        _stop(relay)
        return figures


def relay_kills(stack: Stack, meter: Meter, rng: random.Random, times: int = 3) -> Figures:
    """The relay is killed with its workers: what it carried is in doubt, and only that is paid again."""
    with relayed(stack, meter, rng) as scene:
        relay = scene.relay().ready()
        workers = scene.started(2)
        meter.plan(latency=0.15)
        carried: set[str] = set()
        for _ in range(times):
            victim = rng.choice(workers).ready()
            scene.papers(4, slices=3, batches=4, inputs=3)
            scene.hold_open(victim)
            open_now = {entry["id"] for entry in scene.open_orders(victim)}
            relay.kill()
            carried |= {row.id for row in scene.rows("orders", state="sent")}
            at, since_boot = victim.kill()
            held = {row.id: row.epoch for row in scene.held_by(victim)}
            scene.kills.append(Kill(at, since_boot, victim.name, held, open_now))
            meter.release()
            workers.remove(victim)
            relay = scene.relay()
            workers.append(scene.start())
            relay.ready()
        scene.wait_done()

        def others(evidence: Evidence) -> list[object]:
            return [row["id"] for row in evidence.orders if row["doubts"] and row["id"] not in carried]

        scene.after(others, "orders were in doubt that no relay carried when it was killed")
        for worker in workers:
            worker.ready()
        figures = scene.judge(notes=[f"{times} kills of a relay, {len(carried)} orders in its hands"])
        _stop(relay)
        return figures


def rolling_deploy(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """Relay and workers are replaced one after another under load: no charge is repeated."""
    with relayed(stack, meter, rng) as scene:
        relay = scene.relay().ready()
        workers = scene.started(2)
        for worker in list(workers):
            scene.papers(4, slices=3, batches=4)
            scene.hold_open(worker)
            successor = scene.relay().ready()
            relay.terminate()
            fresh = scene.start()
            worker.terminate()
            scene.linger(0.1, 1.0)
            meter.release()
            code = worker.drained()
            expect(code == 0, f"{worker.name} ended with code {code}\n{worker.said()}")
            _stopped(relay)
            relay = successor
            fresh.ready()
        scene.wait_done()
        scene.after(_doubted, "orders were in doubt")
        figures = scene.judge(exact=True)
        _stop(relay)
        return figures


def _stop(relay: RelayProcess) -> None:
    relay.terminate()
    _stopped(relay)


def _stopped(relay: RelayProcess) -> None:
    code = relay.drained()
    expect(code == 0, f"{relay.name} ended with code {code}\n{relay.said()}")
