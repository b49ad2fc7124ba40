"""`holdfast index`: files and folders in, a progress bar meanwhile, a summary at the end."""

import contextlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from holdfast import bootstrap
from holdfast.cli import opening, supervising, terminal
from holdfast.cli.exits import Exit
from holdfast.core.errors import NotReadyError
from holdfast.kinds import index as kind
from holdfast.service import folder
from holdfast.service.library import Wish
from holdfast.store import following, workers
from holdfast.store.database import Database
from holdfast.store.workers import WorkerState
from holdfast.worker import sender

LOOK_EVERY = 0.1
WORKERS_EVERY = 2.0
WATCH_EVERY = 2.0


@dataclass(frozen=True, slots=True)
class Summary:
    """What one pass over the files came to. Money is in nano-dollars."""

    documents: int
    new: int
    changed: int
    unchanged: int
    running: int
    same_bytes: int
    removed: int
    failed: int
    pages: int
    chunks: int
    paid: int
    reused: int
    tokens: int
    money: int
    saved: int
    seconds: float
    refused: dict[str, str]
    failures: tuple[following.Failure, ...]

    def tells_more_than(self, last: "Summary") -> bool:
        """True when something happened since: a watch is silent otherwise."""
        happened = self.new + self.changed + self.removed + self.failed
        return bool(happened) or self.refused != last.refused


def index(
    paths: Sequence[Path],
    *,
    collection: str,
    tenant: str,
    watch: bool,
    wait: bool,
    prune: bool,
    as_json: bool,
) -> Exit:
    """Every file is a document of the collection, and indexed unless nobody waited for it."""
    loaded = opening.loaded()
    if bootstrap.sqlite_file(loaded.database_url.get_secret_value()) is not None:
        bootstrap.migrated(loaded)
    console = terminal.console(quiet=as_json)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_ended_by_a_signal())
        sending = sender.open_sender(loaded)
        stack.callback(sending.close)
        runtime = stack.enter_context(bootstrap.open_runtime(loaded, sender=sending))
        library = bootstrap.library(runtime)
        wish = Wish(tenant=tenant, actor=opening.actor())
        library.make_collection(wish, collection)
        helper = stack.enter_context(_Helper(runtime.db, console))
        last: Summary | None = None
        while True:
            began = time.monotonic()
            found = folder.files(paths)
            intake = folder.take_in(
                runtime.db, library, wish, collection, found, prune=prune, retry=last is None
            )
            if wait and intake.run_ids:
                helper.wait(intake.run_ids)
            summary = _summary(runtime.db, tenant, intake, time.monotonic() - began)
            if last is None or summary.tells_more_than(last):
                _show(console, summary, waited=wait, as_json=as_json)
            if not watch:
                return Exit.FAILED if summary.failed or summary.refused else Exit.OK
            last = summary
            time.sleep(WATCH_EVERY)


def _show(console: Console, summary: Summary, *, waited: bool, as_json: bool) -> None:
    if as_json:
        terminal.show_json(summary)
        sys.stdout.flush()
    else:
        _print(console, summary, waited=waited)


@contextlib.contextmanager
def _ended_by_a_signal() -> Iterator[None]:
    """SIGTERM unwinds like Ctrl-C, so that a worker of our own is not left behind."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _summary(db: Database, tenant: str, intake: folder.Intake, seconds: float) -> Summary:
    tally = following.tally(db, intake.run_ids)
    return Summary(
        documents=len(intake.claimed),
        new=intake.new,
        changed=intake.changed,
        unchanged=intake.unchanged + intake.failed_before,
        running=intake.running,
        same_bytes=intake.same_bytes,
        removed=intake.removed,
        failed=tally.statuses.get("failed", 0),
        pages=following.pages(db, tenant, intake.documents),
        chunks=tally.chunks,
        paid=tally.paid_calls,
        reused=tally.reused_calls,
        tokens=tally.tokens,
        money=tally.paid,
        saved=tally.saved,
        seconds=seconds,
        refused=intake.refused,
        failures=tally.failures,
    )


class _Helper:
    """Waits for runs, and sees to it that somebody works: a worker of its own where nobody else does."""

    def __init__(self, db: Database, console: Console) -> None:
        self._db = db
        self._console = console
        self._own: _OwnWorker | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.end()

    def wait(self, run_ids: Sequence[str]) -> None:
        """Return when all of these have ended. Whoever works may go away meanwhile."""
        left = following.live(self._db, run_ids)
        columns = (
            TextColumn("indexing"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("documents"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console, disable=not self._console.is_terminal) as bar:
            job = bar.add_task("indexing", total=len(run_ids))
            look_at = 0.0
            while left:
                bar.update(job, completed=len(run_ids) - len(left))
                if time.monotonic() >= look_at:
                    self._see_to_it()
                    look_at = time.monotonic() + WORKERS_EVERY
                time.sleep(LOOK_EVERY)
                left = following.live(self._db, left)
            bar.update(job, completed=len(run_ids))

    def _see_to_it(self) -> None:
        if self._own is not None:
            self._own.check()
        elif not _somebody_works(self._db):
            self._console.print("no worker is up; starting one for the time being", style="quiet")
            self._own = _OwnWorker()


def _somebody_works(db: Database) -> bool:
    wanted = f"{kind.NAME}@{kind.VERSION}"
    return any(
        each.state in {WorkerState.WORKING, WorkerState.STARTING} and wanted in each.pipelines
        for each in workers.known(db)
    )


class _OwnWorker:
    """A worker for as long as this command runs, where nobody else works."""

    def __init__(self) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the worker
        self._process = subprocess.Popen(
            [sys.executable, "-m", "holdfast.cli", "worker"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            start_new_session=True,
            preexec_fn=supervising.end_with_parent,  # noqa: PLW1509 - one system call, no lock is taken in it
        )

    def check(self) -> None:
        """Return while it is up; NotReadyError with its last words when it is not."""
        if self._process.poll() is None:
            return
        self._said.seek(0)
        words = self._said.read().decode(errors="replace").strip().splitlines() or ["it said nothing"]
        raise NotReadyError(f"the worker ended: {words[-1]}", code="worker_ended")

    def end(self) -> None:
        """It has drained and ended."""
        self._process.terminate()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()


def _print(console: Console, summary: Summary, *, waited: bool) -> None:
    for name, why in summary.refused.items():
        console.print(_one_line(f"{name}: {why}"), style="bad", markup=False)
    for failure in summary.failures:
        about = f"{failure.name} ({failure.subject})" if failure.name else failure.subject
        console.print(_one_line(f"{about}: {failure.message} [{failure.code}]"), style="bad", markup=False)
    parts = [f"{summary.new} new", f"{summary.changed} changed", f"{summary.unchanged} unchanged"]
    if summary.running:
        parts.append(f"{summary.running} under way already")
    if summary.same_bytes:
        parts.append(f"{terminal.count(summary.same_bytes, 'file')} with the bytes of another")
    if summary.removed:
        parts.append(f"{summary.removed} removed")
    if summary.refused:
        parts.append(f"{terminal.count(len(summary.refused), 'file')} left out")
    if summary.failed:
        parts.append(f"{summary.failed} failed")
    console.print(f"{terminal.count(summary.documents, 'document')}: {', '.join(parts)}", style="head")
    if not waited:
        console.print("they are being indexed; see: holdfast status")
        return
    console.print(
        f"{terminal.count(summary.pages, 'page')}, {terminal.count(summary.chunks, 'chunk')}: "
        f"{summary.paid} paid, {summary.reused} reused, {summary.tokens} tokens, "
        f"{terminal.money(summary.money)} paid, {terminal.money(summary.saved)} saved, "
        f"{terminal.span(summary.seconds)}"
    )


def _one_line(text: str) -> str:
    """Text of others, as a terminal may have it: a file's name may hold line breaks and escape codes."""
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)
