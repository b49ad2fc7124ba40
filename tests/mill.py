"""An installation with real workers that are killed, and a runtime of its own to ask by."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from holdfast import bootstrap, settings
from holdfast.service.library import Upload, Wish
from holdfast.worker import sender
from tests.acceptance.workers import Worker

Start = Callable[[str], Worker]


@contextlib.contextmanager
def mill(
    monkeypatch: pytest.MonkeyPatch, folder: Path, uploads: Sequence[Upload], **mine: object
) -> Iterator[tuple[bootstrap.Runtime, Start]]:
    """The runtime, and what starts a worker; the collection `shelf` holds the uploads, indexed. The settings
    given are those of its workers, too, whose leases run out soon.
    """
    given = {"data_dir": folder / "data", "lease_ttl": 4, "sweep_interval": 1, **mine}
    for name, value in given.items():
        monkeypatch.setenv(f"HOLDFAST_{name.upper()}", str(value))
    loaded = settings.load()
    with contextlib.ExitStack() as undo:
        sending = sender.open_sender(loaded)
        undo.callback(sending.close)
        runtime = undo.enter_context(bootstrap.open_runtime(loaded, sender=sending))
        library = bootstrap.library(runtime)
        library.make_collection(Wish(), "shelf")
        library.add(Wish(), "shelf", uploads)
        runtime.engine.run_until_idle()

        def worker(name: str) -> Worker:
            started = Worker(name, dict(os.environ), folder, concurrency=loaded.worker_concurrency)
            undo.callback(started.clear)
            return started

        yield runtime, worker
