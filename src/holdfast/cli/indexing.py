"""`holdfast index`: files and folders in, a progress bar meanwhile, a summary at the end."""

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from holdfast import bootstrap
from holdfast.cli import opening, terminal
from holdfast.cli.exits import Exit
from holdfast.core.errors import NotReadyError
from holdfast.kinds import index as kind
from holdfast.service import folder
from holdfast.service.library import Wish
from holdfast.store import documents, following, workers
from holdfast.store.database import Database
from holdfast.store.workers import WorkerState
from holdfast.worker import sender

LOOK_EVERY = 0.1
WATCH_EVERY = 2.0


@dataclass(frozen=True, slots=True)
class Summary:
    """What one pass over the files came to. Money is in nano-dollars."""

    documents: int
    new: int
    changed: int
    unchanged: int
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
    sending = sender.open_sender(loaded)
    console = terminal.console(quiet=as_json)
    began = time.monotonic()
    own: _OwnWorker | None = None
    with bootstrap.open_runtime(loaded, sender=sending) as runtime, contextlib.ExitStack() as stack:
        library = bootstrap.library(runtime)
        wish = Wish(tenant=tenant, actor=opening.actor())
        library.make_collection(wish, collection)
        while True:
            intake = folder.take_in(runtime.db, library, wish, collection, folder.files(paths), prune=prune)
            if wait and intake.run_ids:
                if own is None and not _somebody_works(runtime.db):
                    console.print("no worker is up; starting one for the time being", style="quiet")
                    own = _OwnWorker()
                    stack.callback(own.end)
                _wait(runtime.db, intake.run_ids, console, own)
            summary = _summary(runtime.db, tenant, intake, time.monotonic() - began)
            code = Exit.FAILED if summary.failed or summary.refused else Exit.OK
            if as_json:
                terminal.show_json(summary)
            elif not watch or summary.new or summary.changed or summary.removed or summary.refused:
                _print(console, summary, waited=wait)
            if not watch:
                break
            time.sleep(WATCH_EVERY)
            began = time.monotonic()
    sending.close()
    return code


def _summary(db: Database, tenant: str, intake: folder.Intake, seconds: float) -> Summary:
    tally = following.tally(db, intake.run_ids)
    pages = sum(
        found.pages or 0
        for each in dict.fromkeys(intake.documents)
        if (found := documents.document(db, tenant, each)) is not None
    )
    return Summary(
        documents=intake.new + intake.changed + intake.unchanged + intake.running + len(intake.refused),
        new=intake.new,
        changed=intake.changed,
        unchanged=intake.unchanged,
        same_bytes=intake.same_bytes,
        removed=intake.removed,
        failed=tally.statuses.get("failed", 0),
        pages=pages,
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


def _wait(db: Database, run_ids: Sequence[str], console: Console, own: "_OwnWorker | None") -> None:
    left = following.live(db, run_ids)
    if not left:
        return
    columns = (
        TextColumn("indexing"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("documents"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        job = bar.add_task("indexing", total=len(run_ids))
        while left:
            bar.update(job, completed=len(run_ids) - len(left))
            if own is not None:
                own.check()
            time.sleep(LOOK_EVERY)
            left = following.live(db, left)
        bar.update(job, completed=len(run_ids))


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
        console.print(f"{name}: {why}", style="bad", markup=False)
    for failure in summary.failures:
        console.print(f"{failure.subject}: {failure.message} [{failure.code}]", style="bad", markup=False)
    parts = [f"{summary.new} new", f"{summary.changed} changed", f"{summary.unchanged} unchanged"]
    if summary.same_bytes:
        parts.append(f"{summary.same_bytes} with the bytes of another")
    if summary.removed:
        parts.append(f"{summary.removed} removed")
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
