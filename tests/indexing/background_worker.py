"""Somebody who works while a command waits: a thread of this process that looks like a worker."""

import os
import threading

from holdfast import bootstrap, settings
from holdfast.store.protocol import workers
from holdfast.store.protocol.workers import Worker, WorkerState


class BackgroundWorker:
    """Works off what is due until it is told to stop."""

    def __init__(self):
        loaded = settings.load()
        bootstrap.migrated(loaded)
        self._runtime = bootstrap.open_runtime(loaded, owner="staff")
        self._over = threading.Event()
        self._report(WorkerState.WORKING)
        self._thread = threading.Thread(target=self._work, name="staff")
        self._thread.start()

    def _report(self, state):
        workers.report(
            self._runtime.db,
            Worker(
                id="staff",
                name="staff",
                host="here",
                pid=os.getpid(),
                version="0",
                broker="",
                health="",
                lanes=("bulk",),
                pipelines=tuple(self._runtime.engine.registry.pipelines),
                processes=1,
                busy=0,
                state=state,
            ),
        )

    def _work(self):
        with self._runtime.engine as engine:
            while not self._over.is_set():
                if not engine.work_off():
                    self._over.wait(0.02)

    def close(self):
        self._over.set()
        self._thread.join()
        self._report(WorkerState.STOPPED)
        self._runtime.engine.registry.get("index").run.__self__.close()
        self._runtime.close()
