"""What is on record about the services, and the locks that keep two callers apart."""

import contextlib
import fcntl
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".services"
RECORD = FOLDER / "services.json"
# Present when a person said `up`: then the end of a test run leaves the services up.
KEPT = FOLDER / "kept"

Entry = dict[str, Any]

_threads = threading.Lock()


def read() -> dict[str, Entry]:
    """Every service on record, also those that have died since."""
    try:
        found: dict[str, Entry] = json.loads(RECORD.read_text())
    except FileNotFoundError:
        return {}
    return found


def put(name: str, entry: Entry) -> None:
    """The service is on record, readable by its owner only (it holds a password), replaced in one step."""
    with _threads:
        draft = RECORD.with_suffix(".draft")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as out:
            json.dump({**read(), name: entry}, out, indent=2)
        draft.replace(RECORD)


@contextlib.contextmanager
def changing() -> Iterator[None]:
    """Only this caller starts and stops services."""
    with _locked("lock", fcntl.LOCK_EX):
        yield


@contextlib.contextmanager
def using() -> Iterator[None]:
    """A run needs the services; others may too."""
    with _locked("users", fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def unused() -> Iterator[bool]:
    """Whether no run needs the services now; while True, a new one waits."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_locked("users", fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


@contextlib.contextmanager
def _locked(name: str, how: int) -> Iterator[None]:
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / name).open("a") as file:
        fcntl.flock(file, how)
        yield
