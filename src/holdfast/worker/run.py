"""`holdfast worker`: checks everything, runs Celery until it is stopped, and cleans up."""

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
from holdfast.worker.parent_pipe import ParentPipe
from holdfast.worker.preflight import check_ocr, consumed_brokers, waited_for_database
from holdfast.worker.shared_state import PoolState
from holdfast.worker.supervisor import WorkerIdentity, WorkerSupervisor

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """Options from the command line."""

    lanes: tuple[str, ...]
    concurrency: int
    autoscale: tuple[int, int] | None = None
    name: str = ""
    # Called with the worker's name once it takes work.
    on_ready: Callable[[str], None] = lambda _: None


def run(settings: Settings, options: Options) -> int:
    """Run a worker and return its exit code. Raises HoldfastError if it cannot start."""
    check_ocr(settings)
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
    # A spare row costs nothing; a child without a row would not be watched.
    inputs = child.ChildInputs(settings, name, options.lanes, PoolState(2 * most), ParentPipe(), sending)
    supervisor = WorkerSupervisor(settings, card, inputs.pool_state, sending)
    log.info("health: %s", server.url)
    log.info("worker %s serves %s on %s", name, ", ".join(options.lanes), card.broker)
    try:
        return _consume(brokers, options, inputs, supervisor, server, settings)
    finally:
        sending.close()
        server.stop()
        supervisor.stop()  # last: its watch ends this process if an earlier step takes too long


def _pipelines(settings: Settings) -> tuple[str, ...]:
    """The pipelines of the kinds in KINDS; an error in the user's module is reported in one line."""
    try:
        return bootstrap.pipelines_of(settings)
    except HoldfastError:
        raise
    except Exception as error:  # the user's module may raise anything while it is imported
        log.debug("the user's kinds cannot be loaded", exc_info=True)
        where = traceback.extract_tb(error.__traceback__)[-1]
        named = (
            f"HOLDFAST_KINDS names {', '.join(settings.kinds)}" if settings.kinds else "a package has kinds"
        )
        message = (
            f"{named}, which cannot be loaded "
            f"({type(error).__name__}: {error}, in {where.filename} line {where.lineno}); fix the module"
        )
        raise BadRequestError(message, code="bad_kind") from error


def _server(settings: Settings) -> HealthServer:
    try:
        return HealthServer(settings.health_host, settings.health_port)
    except OSError as error:
        where = f"{settings.health_host}:{settings.health_port}"
        message = (
            f"cannot serve health checks on {where} ({error}); set HOLDFAST_HEALTH_PORT to a free port or 0"
        )
        raise NotReadyError(message, code="port_in_use") from error


def _consume(
    brokers: Sequence[Broker],
    options: Options,
    inputs: child.ChildInputs,
    supervisor: WorkerSupervisor,
    server: HealthServer,
    settings: Settings,
) -> int:
    app = celery_app.build(brokers, events=settings.events)

    def begin(**_: Any) -> None:
        child.born(inputs, getattr(current_process(), "index", 0))

    def ready(**_: Any) -> None:
        options.on_ready(inputs.name)

    def end(**_: Any) -> None:
        # Stopping the whole process group also ends the children: not worth a log line.
        logging.getLogger("multiprocessing").setLevel(logging.CRITICAL)
        inputs.pipe.close()
        supervisor.drain()

    app.steps["worker"].add(_beside(supervisor, server, end))
    # Strong references: Celery's are weak by default, and nothing else references these functions.
    signals.worker_process_init.connect(begin, weak=False)
    signals.worker_ready.connect(ready, weak=False)
    signals.worker_shutting_down.connect(end, weak=False)
    signals.setup_logging.connect(_keep_logging, weak=False)
    warnings.simplefilter("ignore")  # Celery warns about settings chosen on purpose
    worker = _worker(app, options, inputs.name)
    supervisor.is_connected = lambda: _is_connected(worker)
    supervisor.strangers = lambda: getattr(worker.consumer, "strangers", 0)
    supervisor.reconnect = lambda: _reconnect(worker, brokers, options.lanes)
    gc.collect()
    gc.freeze()  # keeps loaded objects shared with the children: a collection would copy them
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
    supervisor: WorkerSupervisor, server: HealthServer, end: Callable[[], None]
) -> type[bootsteps.StartStopStep]:
    class Beside(bootsteps.StartStopStep):
        """Starts the supervisor once the first children are forked: threads do not survive a fork."""

        requires = ("celery.worker.components:Pool",)

        def start(self, parent: Any) -> None:
            del parent
            supervisor.start()
            server.start(WorkerHealth(supervisor, HealthLimits.of(supervisor.settings.lease_ttl)))
            _listen_to_signals(end)

    return Beside


def _listen_to_signals(end: Callable[[], None]) -> None:
    """SIGTERM, SIGINT and SIGHUP drain; a second SIGINT stops at once, like Celery's SIGQUIT.

    Celery's own handlers exit with 1 on Ctrl-C after a clean drain, and restart the program on SIGHUP.
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
    """Make the consumer drop its connection and open another, even while it waits."""
    queue_repair.repair(brokers[:1], lanes)

    def lose() -> None:
        raise ConnectionResetError("the broker delivered nothing while work was due")

    if worker.hub is not None:
        worker.hub.call_soon(lose)
        queue_repair.hang_up(worker.consumer.connection)


def _keep_logging(**_: Any) -> None:
    """Celery leaves logging alone if this signal has a receiver."""


def _exit_code(worker: Any) -> int:
    return int(worker.exitcode or 0)
