"""`holdfast api`: the command's part, before the server takes over."""

import functools
import signal
import socket

from holdfast import bootstrap
from holdfast.api import app, server
from holdfast.cli import context, logs, ports, terminal
from holdfast.cli.exit_codes import CommandError, Exit
from holdfast.service.access import Access
from holdfast.settings import Settings
from holdfast.worker import examination, queue_depths, sender

# Clients wait meanwhile: if the database stays unreachable, the API answers 503, which can be retried.
PATIENCE = 6.0


def serve(host: str | None, port: int | None) -> None:
    """The API was served until SIGINT or SIGTERM. It wakes workers, and does no work itself."""
    loaded = context.loaded()
    host = loaded.host if host is None else host
    sending = sender.open_sender(loaded)
    pool = loaded.api_connections
    with bootstrap.open_runtime(
        loaded, sender=sending, owner="api", connections=pool, patience=PATIENCE
    ) as runtime:
        bootstrap.check_blobs(runtime)
        refuse_strangers(runtime, host, "API")
        listening = ports.bound(host, loaded.port if port is None else port)
        brokers = functools.partial(examination.facts, loaded)
        run(app.build(runtime, functools.partial(_depths, loaded), brokers), loaded, listening, "api")
    sending.close()


def refuse_strangers(runtime: bootstrap.Runtime, host: str, name: str) -> None:
    """Return if there are keys, or only this machine can reach what is bound to `host`."""
    if not Access(runtime.db).has_keys() and not server.is_local(host):
        message = (
            f"without API keys the {name} only serves this machine, not {host or 'other hosts'}; "
            "create a key with: holdfast keys create, or omit --host"
        )
        raise CommandError(message, Exit.USAGE, code="keys_needed")


def run(built: app.Built, loaded: Settings, listening: socket.socket, name: str) -> None:
    """It was served on this socket until SIGINT or SIGTERM."""
    logs.set_up(loaded)
    serving = server.ApiServer(built)
    for number in (signal.SIGINT, signal.SIGTERM):
        # For the time until the server listens to signals itself, and for after its end: it passes the signal
        # on then, which must not end us before the sender is closed.
        signal.signal(number, lambda *_: serving.end())
    at, taken = listening.getsockname()[:2]
    shown = f"[{at}]" if ":" in at else at
    terminal.announce(f"holdfast {name}: http://{shown}:{taken}")
    bootstrap.settle_down()
    with listening:
        serving.run(sockets=[listening])


def _depths(loaded: Settings) -> list[tuple[str, str, int | None]]:
    return list(queue_depths.measure(loaded))
