"""Requests: a hundred at once for the same thing; a replacement and a cancel while the work runs."""

import random
from collections import Counter
from collections.abc import Callable
from functools import partial

from holdfast.core.records import Ask
from holdfast.core.states import Disposition
from holdfast.testing.meter import Meter
from tests.acceptance import crowd, kinds
from tests.acceptance.evidence import Evidence
from tests.acceptance.figures import Figures
from tests.acceptance.oracle import Asked
from tests.acceptance.scene import CANCELLED, SUPERSEDED, Scene
from tests.acceptance.stacks import Stack
from tests.acceptance.workers import Worker

REQUESTS, PROCESSES = 100, 8


def duplicates(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """Of a hundred requests at once one is accepted; the other 99 are refused and name what is running."""
    with Scene(stack, meter, rng) as scene:
        scene.started(1)
        meter.hold("before")
        ask = Ask("paper", "document:wanted", "wanted", {"slices": 3, "batches": 2}, actor="acceptance")
        answers = crowd.storm(scene.environment, ask, processes=PROCESSES, requests=REQUESTS)
        meter.release()
        for answer in answers:
            scene.note(ask, answer)
        scene.wait_done()
        told = Counter(answer.disposition for answer in answers)
        assert told == {Disposition.ACCEPTED: 1, Disposition.DUPLICATE: REQUESTS - 1}, told
        assert len({answer.run_id for answer in answers}) == 1, "a refusal does not name the run in progress"
        return scene.judge(exact=True)


def replace_and_cancel(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """Replaced or cancelled work makes no further paid call, and what was published stays until replaced."""
    options = {"slices": 2, "batches": 6}
    with Scene(stack, meter, rng) as scene:
        [worker] = scene.started(1, concurrency=2)
        first = scene.ask("replaced", content="first", options=options)
        _stopped(scene, worker, first, lambda: scene.ask("replaced", content="second", options=options))
        scene.expect(first, SUPERSEDED)
        scene.wait_done()
        for subject in ("replaced", "new"):
            given_up = scene.ask(subject, content=f"third of {subject}", options=options)
            cancel = partial(scene.runtime.engine.cancel, given_up.answer.head_id or 0)
            _stopped(scene, worker, given_up, cancel)
            scene.expect(given_up, CANCELLED)
            scene.wait_done()
        return scene.judge(exact=True)


def _stopped(scene: Scene, worker: Worker, asked: Asked, stop: Callable[[], object]) -> None:
    """Once `stop` has been called with all slices in the middle of an order, none of them sends another."""
    scene.linger(0.0, 0.4)
    scene.hold_order(worker, charged=scene.rng.random() < 0.5, number=2)
    before = {entry["id"] for entry in scene.meter.log()}
    stop()
    scene.meter.release()
    old = set(kinds.all_texts(asked.ask.content, asked.ask.options))

    def later(found: Evidence) -> list[str]:
        entries = [entry for entry in found.log if entry["id"] not in before]
        return [text for entry in entries for text in entry["inputs"] if text in old]

    scene.after(later, "replaced or cancelled work was paid for")
