"""`holdfast worker`: all is checked and opened, Celery runs until it is told to stop, nothing is left."""

import gc
import logging
import os
import secrets
import signal
import socket
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from billiard.process import current_process
from celery import Celery, bootsteps, signals
from celery.worker import state

from holdfast import bootstrap
from holdfast.core.errors import BadRequestError, HoldfastError, NotReadyError
from holdfast.settings import Settings
from holdfast.worker import app as celery_app
from holdfast.worker import child, queue_repair, sender
from holdfast.worker.brokers import Broker
from holdfast.worker.health import HealthLimits, HealthServer, WorkerHealth
from holdfast.worker.parent_pipe import Tether
from holdfast.worker.preflight import consumed_brokers, waited_for_database
from holdfast.worker.shared_state import Board
from holdfast.worker.supervisor import Overseer, WorkerIdentity

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line decides."""

    lanes: tuple[str, ...]
    concurrency: int
    autoscale: tuple[int, int] | None = None
    name: str = ""
    # Called with the worker's name when it takes work.
    on_ready: Callable[[str], None] = lambda _: None


def run(settings: Settings, options: Options) -> int:
    """The exit code of a worker that has ended. Raises HoldfastError when it cannot begin."""
    waited_for_database(settings)
    pipelines = _pipelines(settings)
    brokers = consumed_brokers(settings)
    server = _server(settings)
    most = options.autoscale[0] if options.autoscale else options.concurrency
    name = options.name or f"{socket.gethostname()}-{os.getpid()}"
    card = WorkerIdentity(
        id=secrets.token_hex(8),
        name=name,
        broker=str(brokers[0]),
        lanes=options.lanes,
        pipelines=pipelines,
        processes=options.concurrency,
        health=server.url,
    )
    sending = sender.open_sender(settings)
    # A row too many costs nothing; a child without one would not be watched.
    birth = child.Birth(settings, name, options.lanes, Board(2 * most), Tether(), sending)
    overseer = Overseer(settings, card, birth.board, sending)
    log.info("health: %s", server.url)
    log.info("worker %s serves %s on %s", name, ", ".join(options.lanes), card.broker)
    try:
        return _consume(brokers, options, birth, overseer, server, settings)
    finally:
        sending.close()
        server.stop()
        overseer.stop()  # last: its watch ends this process if anything before it takes too long


def _pipelines(settings: Settings) -> tuple[str, ...]:
    """What the kinds of the setting KINDS can carry out; a mistake in the user's module is told in a line."""
    try:
        return bootstrap.pipelines_of(settings)
    except HoldfastError:
        raise
    except Exception as error:
        log.debug("the user's kinds cannot be loaded", exc_info=True)
        where = traceback.extract_tb(error.__traceback__)[-1]
        named = (
            f"HOLDFAST_KINDS names {', '.join(settings.kinds)}" if settings.kinds else "a package has kinds"
        )
        message = (
            f"{named}, which cannot be loaded "
            f"({type(error).__name__}: {error}, in {where.filename} line {where.lineno}); mend it"
        )
        raise BadRequestError(message, code="bad_kind") from error


def _server(settings: Settings) -> HealthServer:
    try:
        return HealthServer(settings.health_host, settings.health_port)
    except OSError as error:
        where = f"{settings.health_host}:{settings.health_port}"
        message = (
            f"health cannot be served on {where} ({error}); set HOLDFAST_HEALTH_PORT to a free port, or to 0"
        )
        raise NotReadyError(message, code="port_in_use") from error


def _consume(
    brokers: Sequence[Broker],
    options: Options,
    birth: child.Birth,
    overseer: Overseer,
    server: HealthServer,
    settings: Settings,
) -> int:
    app = celery_app.build(brokers, events=settings.events)

    def begin(**_: Any) -> None:
        child.born(birth, getattr(current_process(), "index", 0))

    def ready(**_: Any) -> None:
        options.on_ready(birth.name)

    def end(**_: Any) -> None:
        # Whoever stops the whole process group also ends the children; that is no news then.
        logging.getLogger("multiprocessing").setLevel(logging.CRITICAL)
        birth.rope.let_go()
        overseer.drain()

    app.steps["worker"].add(_beside(overseer, server, end))
    # Strong references: Celery keeps weak ones by default, and these functions have no other owner.
    signals.worker_process_init.connect(begin, weak=False)
    signals.worker_ready.connect(ready, weak=False)
    signals.worker_shutting_down.connect(end, weak=False)
    signals.setup_logging.connect(_keep_logging, weak=False)
    warnings.simplefilter("ignore")  # Celery warns about choices that are made on purpose here
    worker = _worker(app, options, birth.name)
    overseer.is_connected = lambda: _is_connected(worker)
    overseer.strangers = lambda: getattr(worker.consumer, "strangers", 0)
    overseer.reconnect = lambda: _reconnect(worker, brokers, options.lanes)
    gc.collect()
    gc.freeze()  # what is loaded now is shared with the children and is not copied by a collection
    worker.start()
    return _exit_code(worker)


def _worker(app: Celery, options: Options, name: str) -> Any:
    return app.Worker(
        hostname=f"holdfast@{name}",
        pool="prefork",
        concurrency=options.autoscale[1] if options.autoscale else options.concurrency,
        autoscale=options.autoscale,
        queues=[f"holdfast.{lane}" for lane in options.lanes],
        loglevel=logging.getLevelName(logging.getLogger().level),
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=not app.conf.worker_send_task_events,
        optimization="fair",
        purge=False,
    )


def _beside(
    overseer: Overseer, server: HealthServer, end: Callable[[], None]
) -> type[bootsteps.StartStopStep]:
    class Beside(bootsteps.StartStopStep):
        """Starts the side duties once the first children have been forked: threads do not survive a fork."""

        requires = ("celery.worker.components:Pool",)

        def start(self, parent: Any) -> None:
            del parent
            overseer.start()
            server.start(WorkerHealth(overseer, HealthLimits.of(overseer.settings.lease_ttl)))
            _listen_to_signals(end)

    return Beside


def _listen_to_signals(end: Callable[[], None]) -> None:
    """SIGTERM, SIGINT and SIGHUP drain; a second SIGINT does not wait, as Celery's SIGQUIT does not.

    Celery's own handlers answer 1 to Ctrl-C after a perfect drain, and start the program again on SIGHUP.
    """

    def drain(number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.getsignal(signal.SIGQUIT))
        end()
        state.should_stop = 0

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, drain)


def _is_connected(worker: Any) -> bool:
    connection = getattr(worker.consumer, "connection", None)
    return bool(connection is not None and connection.connected and worker.consumer.task_consumer)


def _reconnect(worker: Any, brokers: Sequence[Broker], lanes: Sequence[str]) -> None:
    """The consumer gives its connection up and makes another, at its next turn or where it stands waiting."""
    queue_repair.mend(brokers[:1], lanes)

    def lose() -> None:
        raise ConnectionResetError("nothing was heard from the broker while work was due")

    if worker.hub is not None:
        worker.hub.call_soon(lose)
        queue_repair.hang_up(worker.consumer.connection)


def _keep_logging(**_: Any) -> None:
    """Celery leaves logging alone when somebody listens to this signal."""


def _exit_code(worker: Any) -> int:
    return int(worker.exitcode or 0)
