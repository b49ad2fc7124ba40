"""An installation with real workers that are killed, and a runtime of its own to ask by."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import select

from holdfast import bootstrap, settings
from holdfast.chaos.worker_processes import WorkerProcess
from holdfast.core.states import CallState
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from holdfast.store.base.database import Database
from holdfast.store.base.schema import orders
from holdfast.worker import sender

Start = Callable[[str], WorkerProcess]


def in_flight(db: Database) -> int:
    """The inputs of orders that were sent and are not settled: what a kill just now may charge twice.

    The provider may have answered some of them. Until its answer is kept, the order is on its way.
    """
    sent = select(orders.c.call_keys).where(orders.c.state == CallState.SENT)
    return sum(len(row.call_keys) for row in db.read(lambda tx: tx.all(sent)))


@contextlib.contextmanager
def mill(
    monkeypatch: pytest.MonkeyPatch, folder: Path, uploads: Sequence[Upload], **mine: object
) -> Iterator[tuple[bootstrap.Runtime, Start]]:
    """The runtime, and what starts a worker; the collection `shelf` holds the uploads, indexed. The settings
    given are those of its workers, too, whose leases run out soon.
    """
    values = {"data_dir": folder / "data", "lease_ttl": 4, "sweep_interval": 1, **mine}
    for name, value in values.items():
        monkeypatch.setenv(f"HOLDFAST_{name.upper()}", str(value))
    loaded = settings.load()
    with contextlib.ExitStack() as undo:
        sending = sender.open_sender(loaded)
        undo.callback(sending.close)
        runtime = undo.enter_context(bootstrap.open_runtime(loaded, sender=sending))
        services = bootstrap.AppServices(runtime)
        services.collections.make(RequestContext(), "shelf")
        services.documents.add(RequestContext(), "shelf", uploads)
        runtime.engine.run_until_idle()

        def worker(name: str) -> WorkerProcess:
            started = WorkerProcess(name, dict(os.environ), folder, concurrency=loaded.worker_concurrency)
            undo.callback(started.clear)
            return started

        yield runtime, worker
