"""`holdfast worker`: all is checked and opened, Celery runs until it is told to stop, nothing is left."""

import gc
import logging
import os
import secrets
import socket
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from billiard.process import current_process
from celery import Celery, bootsteps, signals

from holdfast import bootstrap
from holdfast.core.errors import BadRequestError, NotReadyError
from holdfast.engine.kinds import Registry
from holdfast.settings import Settings
from holdfast.worker import app as celery_app
from holdfast.worker import child, sender
from holdfast.worker.board import Board
from holdfast.worker.brokers import Broker
from holdfast.worker.health import Health, Server
from holdfast.worker.overseer import Card, Overseer
from holdfast.worker.starting import consumed_brokers, waited_for_database
from holdfast.worker.tether import Tether

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line decides."""

    lanes: tuple[str, ...]
    concurrency: int
    autoscale: tuple[int, int] | None = None
    name: str = ""


def run(settings: Settings, options: Options) -> int:
    """The exit code of a worker that has ended. Raises HoldfastError when it cannot begin."""
    waited_for_database(settings)
    kinds = bootstrap.load_kinds(settings, bootstrap.supplies_of(settings))
    pipelines = tuple(Registry(kinds).pipelines)
    if not pipelines:
        raise BadRequestError(
            "this worker would know no sort of work; name some with HOLDFAST_KINDS=module:name",
            code="no_kinds",
        )
    brokers = consumed_brokers(settings)
    server = _server(settings)
    most = options.autoscale[0] if options.autoscale else options.concurrency
    name = options.name or f"{socket.gethostname()}-{os.getpid()}"
    card = Card(
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
        overseer.stop()
        sending.close()
        server.stop()


def _server(settings: Settings) -> Server:
    try:
        return Server(settings.health_host, settings.health_port)
    except OSError as error:
        where = f"{settings.health_host}:{settings.health_port}"
        message = f"health cannot be served on {where} ({error}); set HEALTH_PORT to a free port, or to 0"
        raise NotReadyError(message, code="port_in_use") from error


def _consume(
    brokers: Sequence[Broker],
    options: Options,
    birth: child.Birth,
    overseer: Overseer,
    server: Server,
    settings: Settings,
) -> int:
    app = celery_app.build(brokers, events=settings.events)
    app.steps["worker"].add(_beside(overseer, server))

    def begin(**_: Any) -> None:
        child.born(birth, getattr(current_process(), "index", 0))

    def end(**_: Any) -> None:
        birth.rope.let_go()
        overseer.drain()

    # Strong references: Celery keeps weak ones by default, and these functions have no other owner.
    signals.worker_process_init.connect(begin, weak=False)
    signals.worker_shutting_down.connect(end, weak=False)
    signals.setup_logging.connect(_keep_logging, weak=False)
    warnings.simplefilter("ignore")  # Celery warns about choices that are made on purpose here
    worker = _worker(app, options, birth.name)
    overseer.is_connected = lambda: _is_connected(worker)
    overseer.strangers = lambda: getattr(worker.consumer, "strangers", 0)
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


def _beside(overseer: Overseer, server: Server) -> type[bootsteps.StartStopStep]:
    class Beside(bootsteps.StartStopStep):
        """Starts the side duties once the first children have been forked: threads do not survive a fork."""

        requires = ("celery.worker.components:Pool",)

        def start(self, parent: Any) -> None:
            del parent
            overseer.start()
            server.start(Health(overseer))

    return Beside


def _is_connected(worker: Any) -> bool:
    connection = getattr(worker.consumer, "connection", None)
    return bool(connection is not None and connection.connected and worker.consumer.task_consumer)


def _keep_logging(**_: Any) -> None:
    """Celery leaves logging alone when somebody listens to this signal."""


def _exit_code(worker: Any) -> int:
    return int(worker.exitcode or 0)
