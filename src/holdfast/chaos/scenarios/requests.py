"""Requests: a hundred at once for the same thing; a replacement and a cancel while the work runs."""

import random
from collections import Counter
from collections.abc import Callable
from functools import partial

from holdfast.chaos import crowd, kinds
from holdfast.chaos.evidence import Evidence
from holdfast.chaos.expectations import expect
from holdfast.chaos.figures import Figures
from holdfast.chaos.oracle import SentRequest
from holdfast.chaos.scene import CANCELLED, SUPERSEDED, Scene
from holdfast.chaos.stacks import Stack
from holdfast.chaos.worker_processes import WorkerProcess
from holdfast.core.records import Ask
from holdfast.core.states import Disposition
from holdfast.testing.meter import Meter

REQUESTS, PROCESSES = 100, 8


def duplicates(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """Of a hundred requests at once one is accepted; the other 99 are refused and name what is running."""
    with Scene(stack, meter, rng) as scene:
        scene.started(1)
        meter.hold("before")
        ask = Ask("paper", "document:popular", "popular", {"slices": 3, "batches": 2}, actor="chaos")
        answers = crowd.storm(scene.environment, ask, processes=PROCESSES, requests=REQUESTS)
        meter.release()
        for answer in answers:
            scene.note(ask, answer)
        scene.wait_done()
        dispositions = Counter(answer.disposition for answer in answers)
        expected = {Disposition.ACCEPTED: 1, Disposition.DUPLICATE: REQUESTS - 1}
        expect(dispositions == expected, f"the answers were {dispositions}")
        expect(len({answer.run_id for answer in answers}) == 1, "a refusal does not name the run in progress")
        return scene.judge(exact=True)


def replace_and_cancel(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """Replaced or cancelled work makes no further paid call, and what was published stays until replaced."""
    options = {"slices": 2, "batches": 6}
    with Scene(stack, meter, rng) as scene:
        [worker] = scene.started(1, concurrency=2)
        first = scene.ask("replaced", content="first", options=options)
        _stopped(scene, worker, first, lambda: scene.ask("replaced", content="second", options=options))
        scene.expect_end(first, SUPERSEDED)
        scene.wait_done()
        for subject in ("replaced", "new"):
            given_up = scene.ask(subject, content=f"third of {subject}", options=options)
            cancel = partial(scene.runtime.engine.cancel, given_up.answer.head_id or 0)
            _stopped(scene, worker, given_up, cancel)
            scene.expect_end(given_up, CANCELLED)
            scene.wait_done()
        return scene.judge(exact=True)


def _stopped(scene: Scene, worker: WorkerProcess, request: SentRequest, stop: Callable[[], object]) -> None:
    """Once `stop` has been called with all slices in the middle of an order, none of them sends another."""
    scene.linger(0.0, 0.4)
    scene.hold_order(worker, charged=scene.rng.random() < 0.5, number=2)
    before = {entry["id"] for entry in scene.meter.log()}
    stop()
    scene.meter.release()
    old = set(kinds.all_texts(request.ask.content, request.ask.options))

    def later(evidence: Evidence) -> list[str]:
        entries = [entry for entry in evidence.log if entry["id"] not in before]
        return [text for entry in entries for text in entry["inputs"] if text in old]

    scene.after(later, "replaced or cancelled work was paid for")
