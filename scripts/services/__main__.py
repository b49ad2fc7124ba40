"""The command line: `python -m scripts.services up | down | status | env | run -- COMMAND`."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn, Protocol

from scripts.services import packages, postgresql, rabbitmq, redis, state
from scripts.services.process import Process, StartError, alive
from scripts.services.state import Entry


class Service(Protocol):
    """What each module of a server offers."""

    NAME: str

    def start(self, folder: Path, record: Callable[[Entry], None]) -> Entry: ...  # noqa: D102
    def healthy(self, entry: Entry) -> bool: ...  # noqa: D102
    def end(self, process: Process) -> None: ...  # noqa: D102
    def remove(self, folder: Path) -> None: ...  # noqa: D102


SERVICES: tuple[Service, ...] = (postgresql, redis, rabbitmq)
VARIABLES = {
    "postgresql": "HOLDFAST_DATABASE_URL",
    "redis": "HOLDFAST_REDIS_URL",
    "rabbitmq": "RABBITMQ_URL",
}


def up() -> bool:
    """Every service that can run here runs; whether that is all of them.

    Those already up are left as they are.
    """
    state.FOLDER.mkdir(exist_ok=True)
    state.FOLDER.chmod(0o711)  # PostgreSQL's user passes through; what is in it is not for others.
    with ThreadPoolExecutor() as pool:
        started = all([*pool.map(_up, SERVICES)])
    return _installed("chromium") and all(map(_installed, packages.LANGUAGES)) and started


def _installed(package: str) -> bool:
    """Whether the browser, or a language of OCR, that the tests need is installed."""
    try:
        packages.program(package)
    except StartError as error:
        print(f"services: NO {package.upper()}: {error}", flush=True)
        return False
    return True


def down() -> None:
    """What `up` started is stopped, its data removed."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(_down, SERVICES))
    state.RECORD.unlink(missing_ok=True)
    state.KEPT.unlink(missing_ok=True)


def status() -> bool:
    """Whether every service is up; printed one to a line."""
    record = state.read()
    for service in SERVICES:
        entry = record.get(service.NAME, {"missing": "down"})
        told = f"up, process {entry['pid']}, port {entry['port']}" if _is_up(service, entry) else None
        print(f"{service.NAME:<12} {told or entry.get('missing', 'down')}")
    return all(_is_up(service, record.get(service.NAME, {})) for service in SERVICES)


def environment() -> None:
    """The addresses as lines for a shell: eval "$(python -m scripts.services env)"."""
    for name, entry in state.read().items():
        if "url" in entry:
            print(f"export {VARIABLES[name]}={shlex.quote(entry['url'])}")


def run(command: list[str]) -> int:
    """The exit code of the command, run with the services up; the last run to end stops what runs started."""
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGHUP, _leave)
    try:
        with state.using():
            with state.changing():
                up()
            return _call(command)
    finally:
        with state.changing(), state.unused() as unused:
            if unused and not state.KEPT.exists():
                down()


def _call(command: list[str]) -> int:
    child = subprocess.Popen(command)
    # From here the command decides what a signal means; we only wait for it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: child.send_signal(received))
    code = child.wait()
    return code if code >= 0 else 128 - code


def _leave(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def _up(service: Service) -> bool:
    began = time.monotonic()
    entry = state.read().get(service.NAME, {})
    if _is_up(service, entry):
        return True
    _end(service, entry)
    folder = state.FOLDER / service.NAME
    folder.mkdir(exist_ok=True)
    try:
        entry = service.start(folder, lambda early: state.put(service.NAME, {**early, "starting": True}))
    except StartError as error:
        state.put(service.NAME, {"missing": str(error)})
        print(f"services: NO {service.NAME.upper()}: {error}", flush=True)
        return False
    state.put(service.NAME, entry)
    print(
        f"services: {service.NAME} up on port {entry['port']} ({time.monotonic() - began:.1f} s)", flush=True
    )
    return True


def _down(service: Service) -> None:
    _end(service, state.read().get(service.NAME, {}))
    service.remove(state.FOLDER / service.NAME)


def _end(service: Service, entry: Entry) -> None:
    for found in (entry, entry.get("companion", {})):
        if "pid" in found:
            service.end(Process(found["pid"], found["born"]))


def _is_up(service: Service, entry: Entry) -> bool:
    if "pid" not in entry or "starting" in entry:
        return False
    return alive(Process(entry["pid"], entry["born"])) and service.healthy(entry)


def main(words: list[str]) -> int:
    """The exit code for the words of the command line."""
    os.umask(0o022)  # Folders are passed through by PostgreSQL's user; what is secret has its own mode.
    match words:
        case ["up"]:
            with state.changing():
                up()
                state.KEPT.touch()
        case ["down"]:
            with state.changing():
                down()
        case ["status"]:
            return 0 if status() else 1
        case ["env"]:
            environment()
        case ["run", "--", *command] if command:
            return run(command)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
