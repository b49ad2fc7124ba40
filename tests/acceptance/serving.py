"""The service under steady load while everything behind its API goes away, one after another and together."""

import random
import signal
from collections.abc import Callable

from holdfast.chaos import oracle
from holdfast.chaos.figures import Figures
from holdfast.chaos.stacks import Stack
from holdfast.testing.meter import Meter
from tests.acceptance.load import Clients
from tests.acceptance.service import Service

TURNS = 6
AWAY = (1.0, 25.0)


def faults(stack: Stack, meter: Meter, rng: random.Random, turns: int = TURNS) -> Figures:
    """Servers stop and start, connections are cut, workers are killed; every accepted upload ends well."""
    with Service(stack, meter) as service:
        for each in [service.worker(), service.worker()]:
            each.ready()
        ways: list[Callable[[], None]] = [lambda: _kill(service, rng)]
        if stack.server is None or stack.database_server is None:
            ways.append(stack.broker.flush)
        else:
            ways += [lambda: _restart_broker(service, rng), lambda: _restart_database(service, rng)]
        with Clients(service) as clients:
            for step in range(turns):
                before = clients.count()
                ways[step % len(ways)]()
                service.wait(lambda: clients.count() > before + 9, "clients are answered")  # noqa: B023 - ends here
        clients.judge()
        taken = oracle.charges(meter.log())
        text = f"{len(clients.accepted)} uploads, {clients.count(503)} times 503"
        return Figures(taken.total(), len(taken), notes=(text,))


def _kill(service: Service, rng: random.Random) -> None:
    """A worker is gone, and another one begins."""
    service.workers.pop(rng.randrange(len(service.workers))).clear()
    service.worker()


def _restart_broker(service: Service, rng: random.Random) -> None:
    server = service.stack.own_broker_server()
    server.stop()
    _pause(service, rng)
    server.start()


def _restart_database(service: Service, rng: random.Random) -> None:
    server = service.stack.own_database_server()
    server.stop(rng.choice([signal.SIGINT, signal.SIGQUIT]))
    _pause(service, rng)
    server.start()


def _pause(service: Service, rng: random.Random) -> None:
    """A while in which a server is down; sometimes a worker goes as well."""
    if rng.random() < 0.5:
        _kill(service, rng)
    service.linger(rng.uniform(*AWAY))
