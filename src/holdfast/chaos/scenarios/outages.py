"""Brokers that are flushed, stopped, missing, doubled or removed; databases that restart."""

import contextlib
import random
import shutil
import signal

from holdfast.chaos import databases, stacks
from holdfast.chaos.brokers import BrokerControl, FolderBroker, RabbitBroker
from holdfast.chaos.expectations import expect
from holdfast.chaos.figures import Figures
from holdfast.chaos.scene import SHORT_DEADLINE, Scene
from holdfast.chaos.stacks import EMBEDDED, RABBITMQ, REDIS, Stack
from holdfast.testing.meter import Meter

DOWN = 30.0
END_SOME = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.5"
)


def broker_flushed(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """The broker forgets everything in the middle of the work, several times: nothing is lost."""
    with Scene(stack, meter, rng) as scene:
        [worker, _] = scene.started(2)
        for number in range(3):
            scene.papers(4, name=f"flush-{number}", slices=3, batches=3)
            scene.hold_order(worker, charged=True, or_done=True)
            if isinstance(stack.broker, RabbitBroker) and number == 0:
                stack.broker.purge()
            else:
                stack.broker.flush()
            meter.release()
            scene.linger(0.0, 2.0)
            stack.broker.flush()
            scene.wait_done(60)
        return scene.judge(exact=True)


def broker_stopped(stack: Stack, meter: Meter, rng: random.Random, seconds: float = DOWN) -> Figures:
    """The broker is down for half a minute: what runs goes on, what is asked for waits and is done after."""
    server = stack.own_broker_server()
    with Scene(stack, meter, rng) as scene:
        [worker, _] = scene.started(2)
        scene.papers(4, slices=2, batches=4)
        scene.hold_order(worker, charged=True)
        server.stop()
        meter.release()
        scene.papers(3, name="meanwhile", batches=2)
        scene.linger(seconds, seconds)
        server.start()
        scene.wait_done(60)
        scene.papers(2, name="afterwards")
        scene.wait_done(40)
        return scene.judge(exact=True)


def broker_never_up(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """Workers that start without their broker wait for it; what was accepted meanwhile is done."""
    server = stack.own_broker_server()
    server.stop()
    with Scene(stack, meter, rng) as scene:
        workers = [scene.start() for _ in range(2)]
        scene.papers(3, batches=2)
        scene.linger(4.0, 10.0)
        expect(all(worker.running for worker in workers), f"a worker gave up\n{scene.said()}")
        server.start()
        scene.wait_done(60)
        return scene.judge(exact=True)


def two_brokers(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """Workers on either of two brokers are woken; one broker is taken away and the work goes on."""
    with contextlib.ExitStack() as undo:
        broker = _second(stack, undo)
        old, new = stack.broker.url, broker.url
        with Scene(stack, meter, rng, broker_url=None, broker_urls=f"{old},{new}") as scene:
            of_old = scene.start(broker_url=old)
            of_new = scene.start(broker_url=new)
            of_old.ready()
            of_new.ready()
            scene.papers(6, slices=2, batches=3)
            scene.wait_done(60)
            served = {row.actor.partition("/")[0] for row in scene.claims()}
            expect(served == {of_old.name, of_new.name}, f"only {served} were woken")
            scene.papers(4, name="during", slices=2, batches=3)
            scene.stop(of_old)
            _remove(stack)
            scene.broker = broker
            scene.papers(2, name="removed", slices=2, batches=3)
            scene.start(broker_url=new, broker_urls=new).ready()
            scene.wait_done(60)
            return scene.judge(exact=True)


def _second(stack: Stack, undo: contextlib.ExitStack) -> BrokerControl:
    """The other kind of broker; beside a folder, another folder."""
    if stack.name == EMBEDDED:
        return FolderBroker(stack.data_dir / "second")
    second = stacks.open_broker(stack.servers, RABBITMQ if stack.name == REDIS else REDIS)
    undo.callback(second.close)
    return second


def _remove(stack: Stack) -> None:
    if stack.server is None:
        shutil.rmtree(stack.data_dir / "broker")
    else:
        stack.server.stop()


def database_restarted(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """The database restarts in the middle of orders, in order and as by a power cut."""
    server = stack.own_database_server()
    with Scene(stack, meter, rng, order_deadline=SHORT_DEADLINE) as scene:
        [worker, _] = scene.started(2)
        for how in (signal.SIGINT, signal.SIGQUIT):
            scene.papers(4, name=how.name.lower(), slices=2, batches=4)
            scene.hold_order(worker, charged=rng.random() < 0.5)
            server.stop(how)
            if rng.random() < 0.5:
                meter.release()
            scene.linger(0.0, 2.0)
            server.start()
            meter.release()
            scene.wait_done(60)
        return scene.judge()


def database_connections_killed(stack: Stack, meter: Meter, rng: random.Random) -> Figures:
    """Connections to the database are killed at random while the work is done."""
    with Scene(stack, meter, rng, order_deadline=SHORT_DEADLINE) as scene:
        scene.started(2)
        scene.papers(8, slices=3, batches=5)
        ended = 0
        for _ in range(25):
            ended += databases.execute(stack.database_url, END_SOME)[0][0]
            scene.linger(0.1, 0.8)
        expect(ended, "no connection was there to be killed")
        scene.wait_done(60)
        return scene.judge(notes=[f"{ended} connections killed"])
