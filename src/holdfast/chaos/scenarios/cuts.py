"""Connections that are cut or vanish: to the broker, to the database, to the provider."""

import random
import time
from collections.abc import Callable

from holdfast.chaos import stacks
from holdfast.chaos.evidence import Evidence
from holdfast.chaos.expectations import expect
from holdfast.chaos.figures import Figures
from holdfast.chaos.oracle import Kill, SentRequest
from holdfast.chaos.proxy import Proxy
from holdfast.chaos.scene import SHORT_DEADLINE, Scene
from holdfast.chaos.stacks import Stack
from holdfast.chaos.worker_processes import WorkerProcess
from holdfast.clock import boot_time
from holdfast.testing.meter import Meter

RESET, ENDED, HOLE = "reset", "ended", "black hole"


def broker(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """The connection to the broker goes between finish and acknowledgement: nothing is done or paid twice."""
    url = stack.broker.url
    with Proxy(*stacks.host_and_port(url)) as proxy, Scene(stack, meter, rng) as scene:
        near = stacks.through(url, proxy.port)
        worker = scene.start(broker_url=near, broker_urls=near).ready()
        ways = [RESET, ENDED, HOLE]
        rng.shuffle(ways)
        for way in ways:
            papers = scene.papers(2, name=way.replace(" ", "-"), batches=2)
            scene.hold_order(worker, charged=True)
            _break(proxy, way)
            meter.release()
            scene.wait_done(40)
            scene.after(_once(papers), f"{way}: tasks were carried out more than once")
            if way == HOLE:
                scene.papers(2, name="unheard-of")
                scene.linger(3.0, 8.0)
            proxy.heal()
        scene.papers(2, name="afterwards")
        scene.wait_done(60)
        return scene.judge(exact=True)


def _break(proxy: Proxy, way: str) -> None:
    if way == HOLE:
        proxy.black_hole()
    else:
        expect(proxy.cut(reset=way == RESET), "there was no connection to cut")


def _once(papers: list[SentRequest]) -> Callable[[Evidence], list[object]]:
    runs = {each.answer.run_id for each in papers}

    def again(evidence: Evidence) -> list[object]:
        claims = [row["task_id"] for row in evidence.noted("claim") if row["run_id"] in runs]
        return sorted({task for task in claims if claims.count(task) > 1})

    return again


def database(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """A worker loses the database in the middle of an order: it, or another, goes on, and pays no more."""
    with Proxy(*stacks.host_and_port(stack.database_url)) as proxy:
        near = stacks.through(stack.database_url, proxy.port)
        with Scene(stack, meter, rng, order_deadline=SHORT_DEADLINE) as scene:
            parted = scene.start(database_url=near)
            other = scene.start()
            parted.ready()
            other.ready()
            for way in (RESET, ENDED, HOLE):
                scene.papers(4, name=way.replace(" ", "-"), slices=2, batches=3)
                scene.hold_order(parted, charged=rng.random() < 0.5)
                if way == HOLE:
                    _part(scene, proxy, parted)
                else:
                    _break(proxy, way)
                meter.release()
                scene.wait_done(60)
            proxy.heal()
            scene.stop(other)
            scene.papers(2, name="afterwards")
            scene.wait_done(60)
            return scene.judge()


def _part(scene: Scene, proxy: Proxy, worker: WorkerProcess) -> None:
    """To everybody else a worker without a database is a dead one: it counts as killed."""
    open_now = {entry["id"] for entry in scene.open_orders(worker)}
    proxy.black_hole()
    held = {row.id: row.epoch for row in scene.held_by(worker)}
    scene.kills.append(Kill(time.time(), boot_time(), worker.name, held, open_now))


def provider(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """The connection to the provider goes with orders on it: each is in doubt, and settled in the end."""
    with Scene(stack, meter, rng, order_deadline=SHORT_DEADLINE) as scene:
        [worker] = scene.started(1)
        ways = [RESET, ENDED, HOLE]
        rng.shuffle(ways)
        for way in ways:
            scene.papers(2, name=way.replace(" ", "-"), batches=3)
            scene.hold_order(worker, charged=rng.random() < 0.5)
            doubts = len(scene.rows("journal", verb="doubt"))
            _break(scene.provider, way)
            meter.release()
            scene.wait(
                lambda: len(scene.rows("journal", verb="doubt")) > doubts,  # noqa: B023 - ends within the turn
                30,
                "the order is in doubt",
            )
            scene.provider.heal()
            scene.wait_done(60)
        return scene.judge()
