"""The embedded broker: kombu's file transport, without its races.

kombu opens a message's file under its final name before writing it, and a reader may take it in between: an
empty message, which ends a worker. Here a message gets its name when it is complete, and is taken by a rename
within the same folder, which only one reader can win. A file that is not a message is removed.
"""

import contextlib
import json
import logging
import os
import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any

from kombu import transport
from kombu.transport import filesystem

NAME = "holdfast-files"
TAKEN = ".taken"

log = logging.getLogger(__name__)


def tidy(folder: Path, age: float = 60.0) -> None:
    """Remove files left by a killed sender or reader, if older than `age` seconds."""
    for path in folder.glob(".*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > age:
                path.unlink()


class Channel(filesystem.Channel):
    """A channel whose messages appear complete and are taken once."""

    def _put(self, queue: str, payload: Any, **_: Any) -> None:
        folder = Path(self.data_folder_out)
        name = f"{time.monotonic_ns() // 1_000_000}_{uuid.uuid4()}.{queue}.msg"
        draft = folder / f".{name}"
        try:
            draft.write_text(json.dumps(payload))
            draft.rename(folder / name)
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def _get(self, queue: str) -> Any:
        folder = Path(self.data_folder_in)
        ending = f"{queue}.msg"
        for path in sorted(folder.iterdir()):
            if path.name.startswith(".") or path.name.partition(".")[2] != ending:
                continue
            taken = folder / f".{os.getpid()}-{path.name}{TAKEN}"
            try:
                path.rename(taken)
            except OSError:
                continue  # another reader was quicker
            try:
                return json.loads(taken.read_text())
            except ValueError:
                log.warning("removed a file of the embedded broker that is not a message: %s", path.name)
            finally:
                taken.unlink()
        raise Empty


class Transport(filesystem.Transport):
    """The transport of `holdfast-files://`, polled by Celery's event loop.

    Without an event loop Celery's processes share one pipe and its lock: a process killed while waiting for
    work takes the lock with it, and no other process of that worker ever receives work again.
    """

    Channel = Channel
    # An unusable folder is like an unreachable server: Celery retries, where it would end the worker for an
    # error that it does not know.
    connection_errors = (*filesystem.Transport.connection_errors, OSError)
    implements = filesystem.Transport.implements.extend(asynchronous=True)
    _polling: Any = None

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        """The loop polls for messages every `polling_interval` seconds."""
        del connection
        if self._polling is not None:
            self._polling.cancel()
        self._polling = loop.call_repeatedly(self.polling_interval, self._poll)

    def _poll(self) -> None:
        try:
            while True:
                self.cycle.get(self._deliver, timeout=0)
        except Empty:
            return
        except FileNotFoundError:
            for channel in self.channels:
                for folder in (channel.data_folder_in, channel.control_folder):
                    Path(folder).mkdir(parents=True, exist_ok=True)
            log.warning("recreated the folder of the embedded broker, which was missing")


transport.TRANSPORT_ALIASES[NAME] = f"{__name__}:Transport"
