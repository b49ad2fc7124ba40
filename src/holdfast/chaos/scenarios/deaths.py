"""Workers that die, freeze, are poisoned or told to stop."""

import random
import time

from holdfast.chaos.evidence import Evidence
from holdfast.chaos.expectations import expect
from holdfast.chaos.figures import Figures
from holdfast.chaos.oracle import Kill
from holdfast.chaos.scene import FAILED, SHORT_DEADLINE, Scene
from holdfast.chaos.stacks import Stack
from holdfast.chaos.worker_processes import WorkerProcess
from holdfast.clock import boot_time
from holdfast.testing.meter import Meter

ATTEMPT_CAP = 3
# Seconds: an order at a slow provider, and the life of a worker in a storm.
SLOW, LIFE = 6.0, 16.0
# What a holder may have on record after it has lost its task; `claim` is a new right, not an old one.
HARMLESS = {"claim", "skip", "void", "doubt"}


def kills(stack: Stack, meter: Meter, rng: random.Random, times: int = 7) -> Figures:
    """Whole workers are killed in the middle of orders, again and again, until the work is done."""
    with Scene(stack, meter, rng, order_deadline=SHORT_DEADLINE, attempt_cap=20) as scene:
        workers = scene.started(2)
        meter.plan(latency=0.15)
        scene.papers(4, slices=3, batches=4, inputs=3)
        for _ in range(times):
            victim = rng.choice(workers).ready()
            scene.papers(2, slices=3, batches=4, inputs=3)
            scene.hold_order(victim, charged=rng.random() < 0.5)
            scene.kill(victim)
            meter.release()
            workers.remove(victim)
            workers.append(scene.start())
            scene.linger(0.5, 3.0)
        scene.wait_done()
        for worker in workers:
            worker.ready()
        return scene.judge(notes=[f"{len(scene.kills)} kills"])


def storm(stack: Stack, meter: Meter, rng: random.Random, times: int = 5) -> Figures:
    """Two long papers, a provider that takes 6 s an order, and the only worker is killed every 16 s.

    More kills than a task has attempts, and no life is long enough for a paper: both end well all the same.
    """
    with Scene(stack, meter, rng, order_deadline=60) as scene:
        meter.plan(latency=SLOW)
        scene.papers(2, batches=3 * times, inputs=3)
        for _ in range(times):
            worker = scene.start().ready()
            dies_at = time.monotonic() + LIFE

            def is_time(worker: WorkerProcess = worker, dies_at: float = dies_at) -> bool:
                return time.monotonic() > dies_at and bool(scene.open_orders(worker))

            scene.wait(is_time, 120, f"{worker.name} has an order in flight {LIFE:g} s after its start")
            scene.kill(worker)
        scene.start().ready()
        scene.wait_done(60 + 3 * times * (SLOW + 1))

        def blamed(evidence: Evidence) -> list[object]:
            return [row["attempts"] for row in evidence.tasks if row["attempts"]]

        scene.after(blamed, "deaths of a whole worker counted as attempts of its tasks")
        # Nobody is there between a kill and the start of the next worker.
        return scene.judge(within=120, notes=[f"{len(scene.kills)} kills"])


def freeze(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """A worker frozen beyond its lease and thawed writes nothing, and sends at most what it was about to."""
    with Scene(stack, meter, rng, order_deadline=SHORT_DEADLINE) as scene:
        frozen, other = scene.started(2)
        scene.papers(6, slices=2, batches=5)
        scene.hold_order(frozen, charged=rng.random() < 0.5)
        _freeze(scene, frozen)
        meter.release()
        taken_over = scene.kills[-1]
        scene.wait(
            lambda: all(
                scene.claims(task_id=task)[-1].epoch > epoch for task, epoch in taken_over.held.items()
            ),
            40,
            "another worker takes over what the frozen one held",
        )
        if rng.random() < 0.5:
            scene.wait_done()
        thawed_at, since_boot = time.time(), boot_time()
        unheard = _unheard(scene, taken_over)
        frozen.thaw()
        _check_thawed(scene, frozen, taken_over, thawed_at, since_boot, unheard)
        scene.wait_done()
        scene.stop(other)
        scene.papers(2, name="afterwards", slices=2)
        scene.wait_done(40)
        return scene.judge()


def _freeze(scene: Scene, worker: WorkerProcess) -> None:
    """To everybody else a frozen worker is a dead one: it counts as killed."""
    while True:
        open_now = {entry["id"] for entry in scene.open_orders(worker)}
        at, since_boot = time.time(), worker.freeze()
        if scene.stack.writable():
            break
        # Frozen inside a write transaction: SQLite's lock then stops everybody, and nobody can take over.
        worker.thaw()
        scene.linger(0.0, 0.1)
    held = {row.id: row.epoch for row in scene.held_by(worker)}
    expect(held, "the frozen worker held nothing")
    scene.kills.append(Kill(at, since_boot, worker.name, held, open_now))


def _unheard(scene: Scene, lost: Kill) -> list[str]:
    """The orders that the frozen worker had marked as sent and whose first byte it had not written."""
    arrived = {entry["idempotency_key"] for entry in scene.meter.log()}
    return [
        row.idempotency_key
        for row in scene.rows("orders")
        if row.task_id in lost.held and row.state == "sent" and row.idempotency_key not in arrived
    ]


def _check_thawed(
    scene: Scene, worker: WorkerProcess, lost: Kill, thawed_at: float, since_boot: float, unheard: list[str]
) -> None:
    def wrote(evidence: Evidence) -> list[object]:
        return [
            (row["verb"], row["reason"], row["task_id"])
            for row in evidence.journal
            if row["task_id"] in lost.held
            and row["epoch"] == lost.held[row["task_id"]]
            and worker.owns(row["actor"])
            and row["at"] >= thawed_at
            and row["verb"] not in HARMLESS
            and not row["reason"].startswith("fenced_out")  # a refusal on record is no write
        ]

    def sent(evidence: Evidence) -> list[object]:
        again = {
            row["task_id"]
            for row in evidence.noted("claim")
            if worker.owns(row["actor"]) and row["at"] >= thawed_at
        }
        task_of = {row["idempotency_key"]: row["task_id"] for row in evidence.orders}
        late = [
            entry["idempotency_key"]
            for entry in evidence.log
            if entry["client"] in scene.clients(worker)
            and entry["arrived_at"] >= since_boot
            and task_of.get(entry["idempotency_key"]) in set(lost.held) - again
        ]
        return late if len(late) > len(unheard) else []

    scene.after(wrote, "the thawed worker wrote")
    scene.after(sent, "the thawed worker sent orders that it had not begun")


def poison(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """A task that kills or hangs its process every time is abandoned at its cap; neighbours never notice."""
    with Scene(stack, meter, rng, lease_ttl=4, sweep_interval=0.5, attempt_cap=ATTEMPT_CAP) as scene:
        scene.started(1, concurrency=4)
        neighbours = scene.papers(2, batches=8, seconds=rng.uniform(14, 18))
        bad = [scene.ask(kind, kind=kind, content=kind) for kind in ("poison", "hang")]
        for request in bad:
            scene.expect_end(request, FAILED, "abandoned")
        scene.wait_done()

        def claims(evidence: Evidence) -> list[object]:
            due = {each.answer.run_id: 1 for each in neighbours} | {
                each.answer.run_id: ATTEMPT_CAP for each in bad
            }
            counted = {run: len(evidence.noted("claim", run_id=run)) for run in due}
            return [] if counted == due else [counted, due]

        scene.after(claims, "claims per run, and how many there should be")
        scene.papers(2, name="afterwards", batches=2)
        scene.wait_done(30)
        return scene.judge(exact=True)


def rolling_restart(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """Workers are replaced one by one under load: no charge is repeated, and no lease has to run out."""
    with Scene(stack, meter, rng) as scene:
        workers = scene.started(3, concurrency=1)
        scene.papers(2, slices=2, batches=6)
        for worker in workers:
            scene.papers(3, slices=2, batches=6)
            fresh = scene.start(concurrency=1)
            scene.hold_order(worker, charged=rng.random() < 0.5)
            worker.terminate()
            scene.linger(0.1, 1.0)
            meter.release()
            code = worker.drained()
            expect(code == 0, f"{worker.name} ended with code {code}\n{worker.said()}")
            fresh.ready()
        scene.wait_done()
        scene.after(lambda evidence: evidence.noted("expire"), "leases had to run out")
        return scene.judge(exact=True)
