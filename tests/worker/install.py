"""An installation of its own: database, broker and folder, the processes on it, and a way to ask for work."""

import contextlib
import functools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import select

from holdfast import bootstrap
from holdfast.chaos.waiting import until
from holdfast.core.records import Ask, RequestResult
from holdfast.core.states import LIVE
from holdfast.engine import wakeups
from holdfast.settings import Settings
from holdfast.store.base.database import Database
from holdfast.store.base.schema import journal
from holdfast.store.features import open_database
from holdfast.store.views import reads
from holdfast.worker import sender
from tests.statements.recording import python_path
from tests.worker.programs import PROGRAM, ROOT, Program

KINDS = "tests.worker.kinds:kinds"
QUICK = {"HOLDFAST_SWEEP_INTERVAL": "0.3"}


class WorkerInstall:
    """Where a test lives. Everything that it started is gone at its end."""

    def __init__(self, folder: Path, database_url: str, broker_url: str | None = None) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.data_dir.mkdir()
        self.database_url = database_url
        self.broker_url = broker_url or f"filesystem://{self.data_dir}/broker"
        self.programs: list[Program] = []

    def environment(self, **changes: str) -> dict[str, str]:
        """What points a process at this installation; `changes` are settings."""
        saved = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        mine = {
            "PYTHONPATH": python_path(ROOT),
            "HOLDFAST_DATA_DIR": str(self.data_dir),
            "HOLDFAST_DATABASE_URL": self.database_url,
            "HOLDFAST_BROKER_URL": self.broker_url,
            "HOLDFAST_KINDS": KINDS,
            "HOLDFAST_PORT": "0",
            **QUICK,
        }
        return saved | mine | {f"HOLDFAST_{name.upper()}": str(value) for name, value in changes.items()}

    def settings(self, **changes: Any) -> Settings:
        """The same for this process."""
        values = {
            "data_dir": self.data_dir,
            "database_url": self.database_url,
            "broker_url": self.broker_url,
            "kinds": KINDS,
        }
        return Settings(**values | changes)

    def start(self, *words: str, **changes: str) -> Program:
        """The command was started; it may not be ready yet."""
        log = self.folder / f"{len(self.programs)}.log"
        program = Program(words, self.environment(**changes), log)
        self.programs.append(program)
        return program

    def worker(self, *words: str, **changes: str) -> Program:
        """A worker that is ready."""
        return self.start("worker", *words, **changes).ready()

    def command(self, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
        """What a command that ends by itself has said."""
        return subprocess.run(
            [str(PROGRAM), *words],
            env=self.environment(**changes),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @contextlib.contextmanager
    def engine(self, **changes: Any) -> Iterator[Any]:
        """An engine of this process, which wakes the workers."""
        settings = self.settings(**changes)
        sending = sender.open_sender(settings)
        try:
            with bootstrap.open_runtime(settings, sender=sending) as runtime:
                yield runtime.engine
        finally:
            sending.close()

    def ask(
        self, kind: str, subject: str = "document:1", *, wakes: bool = True, **options: Any
    ) -> RequestResult:
        """What became of a request for work of this kind."""
        with self.engine() as engine:
            if not wakes:
                object.__setattr__(engine.parts, "sender", wakeups.Nobody())
            return engine.request(Ask(kind=kind, subject=subject, content=subject, options=options))

    @functools.cached_property
    def db(self) -> Database:
        """The database, for a look at what was written."""
        return open_database(self.database_url)

    def run(self, answer: RequestResult) -> Any:
        """The run as it stands."""
        return reads.run(self.db, answer.run_id).run

    def done(self, answer: RequestResult, seconds: float = 30.0) -> Any:
        """The run, once it has ended."""

        def ended() -> Any:
            run = self.run(answer)
            return None if run.status in LIVE else run

        return until(ended, seconds, f"run {answer.run_id} does not end", every=0.1)

    def journal(self, answer: RequestResult) -> list[tuple[str, str]]:
        """Verb and reason of everything that was decided about the run."""
        query = select(journal.c.verb, journal.c.reason).where(journal.c.run_id == answer.run_id)
        return [tuple(row) for row in self.db.read(lambda tx: tx.all(query.order_by(journal.c.id)))]

    def tasks(self, answer: RequestResult) -> list[Any]:
        """The tasks of the run as they stand."""
        return [one.task for one in reads.tasks_of(self.db, answer.run_id)]

    def clear(self) -> None:
        """Nothing of it runs."""
        for program in self.programs:
            program.clear()
        self.db.close()
