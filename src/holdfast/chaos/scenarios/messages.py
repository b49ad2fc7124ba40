"""Messages that come again and again, in the right lane and for the right tenant."""

import random

from holdfast.chaos.evidence import Evidence
from holdfast.chaos.expectations import expect
from holdfast.chaos.figures import Figures
from holdfast.chaos.scene import CANCELLED, Scene
from holdfast.chaos.stacks import Stack
from holdfast.core.records import Landed
from holdfast.core.states import LANE_RANK, Lane, Skip
from holdfast.testing.meter import Meter

TIMES = 5
LONG = 20.0
THOUSAND = 1000
STARTS_WITHIN = 5.0


def redelivery_storm(stack: Stack, meter: Meter, rng: random.Random, seconds: float = LONG) -> Figures:
    """Long tasks whose wake-ups and named messages come over and over are still carried out once."""
    early = {"broker_visibility_timeout": 2, "broker_restore_interval": 1}
    with Scene(stack, meter, rng, **early) as scene:
        scene.started(2, concurrency=3)  # two processes are free for what comes again
        scene.papers(4, batches=6, seconds=rng.uniform(seconds * 0.9, seconds))
        scene.wait_done(meanwhile=lambda: _storm(scene))
        _name_every_task(scene)
        scene.wait(
            lambda: (
                {row.task_id for row in scene.rows("journal", verb="skip", reason=Skip.FINISHED.value)}
                == {row.id for row in scene.rows("tasks")}
            ),
            60,
            "deliveries of finished tasks are skipped",
        )
        scene.after(_claimed_again, "tasks were carried out more than once")
        scene.after(_no_lock_held, "no delivery of a held task was skipped")
        return scene.judge(exact=True)


def _storm(scene: Scene) -> None:
    for lane in LANE_RANK:
        for _ in range(TIMES):
            scene.sender.wake(lane)
    _name_every_task(scene)
    scene.linger(0.3, 1.3)


def _name_every_task(scene: Scene) -> None:
    for task in scene.rows("tasks"):
        for _ in range(TIMES):
            scene.sender.wake_task(task.id, task.lane)


def _claimed_again(evidence: Evidence) -> list[object]:
    claims = [row["task_id"] for row in evidence.noted("claim")]
    return sorted({task for task in claims if claims.count(task) > 1})


def _no_lock_held(evidence: Evidence) -> list[object]:
    return [] if evidence.noted("skip", reason=Skip.LOCK_HELD.value) else [len(evidence.noted("skip"))]


def fair_turns(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """Behind a thousand tasks of one tenant, another's starts within seconds, and an interactive one next."""
    with Scene(stack, meter, rng) as scene:
        crowd = [
            scene.ask(
                f"crowd-{number}",
                kind="nap",
                tenant="A",
                options={"seconds": round(rng.uniform(0.1, 1.0), 2)},
            )
            for number in range(THOUSAND)
        ]
        scene.started(1, concurrency=2)
        scene.wait(lambda: len(scene.claims(tenant="A")) > 10, 30, "some of the thousand have begun")
        other = scene.ask("other", kind="nap", content="b", tenant="B", options={"seconds": 0.2})
        waited = _started(scene, other.answer.run_id) - _asked_at(scene, other.answer.run_id)
        expect(waited <= STARTS_WITHIN, f"the other tenant's task waited {waited:.1f} s")
        urgent = scene.ask(
            "urgent", kind="nap", content="c", tenant="A", lane=Lane.INTERACTIVE, options={"seconds": 0.2}
        )
        asked_at = _asked_at(scene, urgent.answer.run_id)
        urgent_at = _started(scene, urgent.answer.run_id)
        passed = [row for row in scene.claims(since=asked_at) if row.at < urgent_at]
        expect(not passed, f"{len(passed)} bulk tasks were begun before the interactive one")
        for each in crowd:
            if isinstance(scene.runtime.engine.cancel(each.answer.head_id or 0), Landed):
                scene.expect_end(each, CANCELLED)
        scene.wait_done(30)
        waits = f"other tenant after {waited:.1f} s, interactive after {urgent_at - asked_at:.1f} s"
        return scene.judge(exact=True, notes=[waits])


def _started(scene: Scene, run_id: str | None) -> float:
    claims = scene.wait(lambda: scene.claims(run_id=run_id), 30, "the task begins")
    return float(claims[0].at)


def _asked_at(scene: Scene, run_id: str | None) -> float:
    """When the request was committed, by the clock of the database."""
    [run] = scene.rows("runs", id=run_id)
    return float(run.queued_at)
