"""A provider that refuses, fails, stalls, and charges without answering."""

import random

from holdfast.chaos.expectations import expect
from holdfast.chaos.figures import Figures
from holdfast.chaos.scene import FAILED, Scene
from holdfast.chaos.stacks import Stack
from holdfast.store.money import orders
from holdfast.testing.meter import Meter

DEADLINE = 3.0
GIVEN_UP = "provider_unavailable"


def misbehaves(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """Orders are put off, fail, stall or are charged and cut: each is paid once, or was in doubt.

    Where keys are not honoured an order may be charged once more for each time it was in doubt, and the bill
    shows it. A run that was given up is asked for again; an order that waits for a person is let go by one.
    """
    with Scene(stack, meter, rng, order_deadline=DEADLINE) as scene:
        scene.started(2)
        meter.plan(
            latency=0.05,
            rate_limit=0.3,
            retry_after=1.0,
            fail=0.1,
            fail_status=503,
            charge_then_cut=0.05,
            stall=0.02,
            stall_charged=0.02,
            stall_seconds=DEADLINE * 2,
            seed=rng.randrange(2**32),
        )
        scene.papers(3, slices=2, batches=4)
        scene.wait_done(150, meanwhile=lambda: _help(scene))
        doubts = sum(row.doubts for row in scene.rows("orders"))
        refused = sum(entry["status"] == 429 for entry in meter.log())
        expect(doubts, "no order was in doubt")
        expect(refused, "no order was put off")
        return scene.judge(notes=[f"{doubts} doubts, {refused} times 429"])


def _help(scene: Scene) -> None:
    for row in scene.rows("orders", state="parked"):
        orders.resolve(scene.db, row.id, charged=True, actor="chaos")
    known = {each.answer.run_id: each for each in scene.requests}
    for row in scene.rows("runs", status=FAILED, error_code=GIVEN_UP):
        request = known[row.id]
        if request.ends != FAILED:
            scene.expect_end(request, FAILED, GIVEN_UP)
            scene.note(request.ask, scene.runtime.engine.request(request.ask))
