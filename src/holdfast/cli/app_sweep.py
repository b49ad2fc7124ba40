"""`holdfast sweep --app`: the sweep of somebody's Celery application, outside its workers."""

import os
import signal
import sys
import threading

import typer

from holdfast.cli import terminal
from holdfast.core.errors import HoldfastError, StoreUnavailableError
from holdfast.guard import sweeping

INTERVAL = 2.0


def sweep(name: str, *, once: bool, as_json: bool) -> None:
    """One round, or rounds until SIGINT or SIGTERM. It waits for an unreachable database or broker."""
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - the application is where the command is run, as for celery -A
    stop = threading.Event()
    if not once:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
    guards = sweeping.guards_of(name)
    while True:
        try:
            for done in sweeping.sweep(guards):
                _show(done, once=once, as_json=as_json)
        except StoreUnavailableError as error:
            _complain(error, once=once)
        if once or stop.wait(INTERVAL):
            break
    for guard in guards:
        guard.close()


def _complain(error: HoldfastError, *, once: bool) -> None:
    if once:
        raise error
    terminal.complain(error.message, error.code)


def _show(done: sweeping.AppSwept, *, once: bool, as_json: bool) -> None:
    if as_json:
        terminal.show_json(done)
    elif once or done.published or done.swept.mended or done.swept.orders:
        typer.echo(
            f"swept: messages published {done.published}; orders repaired {done.swept.orders}; "
            f"runs repaired {done.swept.mended}"
        )
