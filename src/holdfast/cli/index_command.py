"""`holdfast index`: files and folders in, a progress bar meanwhile, a summary at the end."""

import contextlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from holdfast import bootstrap
from holdfast.bootstrap import AppServices
from holdfast.cli import context, costs, temporary_worker, terminal
from holdfast.cli.exit_codes import Exit
from holdfast.core.errors import BadRequestError
from holdfast.core.gaps import Gap
from holdfast.kinds import index as kind
from holdfast.service import folder, formatting, gap_sentences
from holdfast.service.records import RunFailure
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload

LOOK_EVERY = 0.1
TROUBLES_EVERY = 1.0
MANY = 100
WATCH_EVERY = 2.0


@dataclass(frozen=True, slots=True)
class Summary:
    """What one pass over the files came to. Money is in nano-dollars."""

    documents: int
    new: int
    changed: int
    unchanged: int
    failed_before: int
    running: int
    same_bytes: int
    removed: int
    failed: int
    pages: int
    chunks: int
    paid: int
    unpriced: int
    reused: int
    tokens: int
    money: int
    saved: int
    seconds: float
    refused: dict[str, str]
    failures: tuple[RunFailure, ...]
    gaps: dict[str, tuple[Gap, ...]]

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
    selection: folder.Selection,
    description: tuple[Mapping[str, Any] | None, Sequence[str]],
    password: str | None,
    max_cost: float | None,
    external_id: str | None,
    as_json: bool,
) -> Exit:
    """Every file is a document of the collection, and indexed unless nobody waited for it."""
    if external_id is not None and (len(paths) != 1 or not paths[0].is_file() or prune):
        raise BadRequestError("--external-id is for one file, without --prune", code="bad_external_id")
    loaded = context.loaded()
    if bootstrap.sqlite_file(loaded.database_url.get_secret_value()) is not None:
        bootstrap.migrated(loaded)
    console = terminal.console(quiet=as_json)
    with contextlib.ExitStack() as stack:
        stack.enter_context(temporary_worker.ended_by_a_signal())
        services = stack.enter_context(context.services(None))
        bootstrap.check_blobs(services.runtime)
        wish = RequestContext(tenant=tenant, actor=context.actor(), max_cost=costs.nano_dollars(max_cost))
        services.collections.make(wish, collection)
        pipeline = f"{kind.NAME}@{kind.VERSION}"
        helper = stack.enter_context(temporary_worker.Helper(services.operations, console, pipeline))
        last: Summary | None = None
        while True:
            began = time.monotonic()
            if external_id is not None:
                metadata, labels = description
                upload = Upload(
                    b"",
                    metadata=metadata,
                    labels=labels or None,
                    password=password,
                    external_id=external_id,
                )
                intake = services.folders.take_one(wish, collection, paths[0], upload)
            else:
                intake = services.folders.take_in(
                    wish,
                    collection,
                    folder.files(paths, selection),
                    prune=prune,
                    retry=last is None,
                    selection=selection,
                    description=description,
                    password=password,
                )
            if wait and intake.run_ids:
                _wait(services, console, helper, intake.run_ids)
            summary = _summary(services, tenant, intake, time.monotonic() - began)
            if last is None or summary.tells_more_than(last):
                _show(console, summary, waited=wait, as_json=as_json)
            if not watch:
                return Exit.FAILED if summary.failed or summary.refused else Exit.OK
            last = summary
            time.sleep(WATCH_EVERY)


def selection(globs: Sequence[str] | None, ignore: Sequence[str] | None) -> folder.Selection:
    """The files that the command line wants."""
    return folder.Selection(tuple(globs or ()), tuple(ignore or ()))


def _show(console: Console, summary: Summary, *, waited: bool, as_json: bool) -> None:
    if as_json:
        terminal.show_json(summary)
        sys.stdout.flush()
    else:
        _print(console, summary, waited=waited)


def _summary(services: AppServices, tenant: str, intake: folder.Intake, seconds: float) -> Summary:
    tally = services.folders.tally(intake.run_ids)
    return Summary(
        documents=len(intake.claimed),
        new=intake.new,
        changed=intake.changed,
        unchanged=intake.unchanged,
        failed_before=intake.failed_before,
        running=intake.running,
        same_bytes=intake.same_bytes,
        removed=intake.removed,
        failed=tally.statuses.get("failed", 0),
        pages=services.folders.pages(tenant, intake.documents),
        chunks=tally.chunks,
        paid=tally.paid_calls,
        unpriced=tally.unpriced_calls,
        reused=tally.reused_calls,
        tokens=tally.tokens,
        money=tally.paid,
        saved=tally.saved,
        seconds=seconds,
        refused=intake.refused,
        failures=tally.failures,
        gaps=services.folders.unread(tenant, intake.documents),
    )


def _wait(
    services: AppServices, console: Console, helper: temporary_worker.Helper, run_ids: Sequence[str]
) -> None:
    """Return when all of these have ended. Workers may come and go meanwhile."""
    left = services.folders.live(run_ids)
    columns = (
        TextColumn("indexing"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("documents"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        job = bar.add_task("indexing", total=len(run_ids))
        notices, look_at = terminal.Notices(console), 0.0
        while left:
            bar.update(job, completed=len(run_ids) - len(left))
            helper.see_to_it()
            if time.monotonic() >= look_at:
                troubles = services.operations.troubles()
                notices.tell(f"waiting for the {troubles[0].sentence}" if troubles else None)
                look_at = time.monotonic() + TROUBLES_EVERY
            # A look at many costs as much as a document; the last few are waited for closely.
            time.sleep(LOOK_EVERY if len(left) < MANY else 5 * LOOK_EVERY)
            left = services.folders.live(left)
        bar.update(job, completed=len(run_ids))


def _print_troubles(console: Console, summary: Summary) -> None:
    """What was skipped, what failed, and what was read with gaps."""
    for name, why in summary.refused.items():
        console.print(terminal.one_line(f"{name}: {why}"), style="bad", markup=False)
    for failure in summary.failures:
        about = f"{failure.name} ({failure.subject})" if failure.name else failure.subject
        console.print(
            terminal.one_line(f"{about}: {failure.message} [{failure.code}]"), style="bad", markup=False
        )
    for name, unread in summary.gaps.items():
        said = terminal.one_line(f"{name}: {gap_sentences.sentences(unread)}")
        console.print(said, style="care", markup=False)


def _print(console: Console, summary: Summary, *, waited: bool) -> None:
    _print_troubles(console, summary)
    parts = [f"{summary.new} new", f"{summary.changed} changed", f"{summary.unchanged} unchanged"]
    if summary.failed_before:
        parts.append(f"{summary.failed_before} failed before (see: holdfast documents list --state failed)")
    if summary.running:
        parts.append(f"{summary.running} already in progress")
    if summary.same_bytes:
        parts.append(f"{formatting.count(summary.same_bytes, 'file')} identical to another")
    if summary.removed:
        parts.append(f"{summary.removed} removed")
    if summary.refused:
        parts.append(f"{formatting.count(len(summary.refused), 'file')} skipped")
    if summary.failed:
        parts.append(f"{summary.failed} failed")
    console.print(f"{formatting.count(summary.documents, 'document')}: {', '.join(parts)}", style="head")
    if not waited:
        console.print("indexing in the background; see: holdfast status")
        return
    price = formatting.paid(summary.money, summary.unpriced)
    console.print(
        f"{formatting.count(summary.pages, 'page')}, {formatting.count(summary.chunks, 'chunk')}: "
        f"{summary.paid} paid, {summary.reused} reused, {summary.tokens} tokens, "
        f"{price if price == 'unpriced' else f'{price} paid'}, {formatting.money(summary.saved)} saved, "
        f"{formatting.span(summary.seconds)}"
    )
