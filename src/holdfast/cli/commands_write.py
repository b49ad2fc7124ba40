"""Commands that change something: migrate, cancel, retry, sweep, import-documents."""

import signal
import threading
from dataclasses import dataclass, replace

import typer
from alembic.util import CommandError as AlembicError

from holdfast import bootstrap
from holdfast.cli import context, costs, documents, terminal
from holdfast.cli.exit_codes import CommandError, Exit, exit_for_answer
from holdfast.core import subjects
from holdfast.core.errors import StoreUnavailableError
from holdfast.core.records import TENANT, Fenced, Head, RequestResult
from holdfast.core.states import Disposition, Lane, shown
from holdfast.engine import wakeups
from holdfast.engine.duty_threads import Apart
from holdfast.engine.sweep import Swept
from holdfast.service.library import Wish
from holdfast.store.follow_ups import follow_up_retries
from holdfast.store.library import documents as stored
from holdfast.store.library import imports
from holdfast.store.protocol import requests


def migrate(to: str, *, as_json: bool) -> None:
    """The database is at revision `to`."""
    try:
        revision = bootstrap.migrated(context.loaded(), to)
    except AlembicError as error:
        message = f"{error}; omit --to for the latest revision"
        raise CommandError(message, Exit.USAGE, code="bad_revision") from error
    if as_json:
        terminal.show_json({"revision": revision})
    else:
        typer.echo(f"database is at revision {revision}")


def cancel(subject: str, *, kind: str | None, tenant: str, as_json: bool) -> None:
    """The live run of the subject has ended; exit code 3 when there was none."""
    with context.runtime() as runtime:
        head = context.one_head(runtime.db, tenant, subject, kind)
        outcome = runtime.engine.cancel(head.id, actor=context.actor())
        if isinstance(outcome, Fenced):
            message = f"{subject} has nothing to cancel; it is {shown(head.kind, head.status)}"
            raise CommandError(message, Exit.REFUSED, code="nothing_to_cancel")
        if as_json:
            terminal.show_json({"cancelled": head.generation, "run_id": head.run_id, "head_id": head.id})
            return
        kept = (
            f"generation {head.published_generation} stays published"
            if head.visible
            else "nothing was published before"
        )
        terminal.say(f"cancelled generation {head.generation} of {subject}; {kept}")


def retry(
    subject: str, *, kind: str | None, tenant: str, force: bool, max_cost: float | None, as_json: bool
) -> Exit:
    """What was last asked for is asked for again, with the same content, options and pipeline.

    It goes to the store and not through `Engine.again`: a terminal knows no kinds, and need not.
    """
    with context.runtime() as runtime:
        head = context.one_head(runtime.db, tenant, subject, kind)
        most = costs.nano_dollars(max_cost)
        if follow_up_retries.MARK in subject:
            return _retry_follow_up(runtime, head, most, as_json=as_json)
        last = requests.last_ask(runtime.db, tenant, head.kind, subject)
        # What was imported has no pipeline: asked again as it is, no worker could ever claim it.
        if last is None or not last.pipeline:
            return _first_index(head, most, force=force, as_json=as_json)
        answer = requests.request(
            runtime.db,
            replace(
                last,
                force=force,
                actor=context.actor(),
                max_cost=last.max_cost if most is None else most,
            ),
            run_id=runtime.engine.host.token(),
            patience=runtime.engine.parts.patience,
        )
        if answer.created:
            from holdfast.worker import sender  # noqa: PLC0415 - as in `sweep`

            sending = sender.open_sender(runtime.settings)
            wakeups.wake_lanes(sending, {last.lane: 1})
            sending.close()
    if as_json:
        terminal.show_json(answer)
    else:
        terminal.say(_told(subject, answer))
    return exit_for_answer(answer.disposition)


def _first_index(head: Head, max_cost: int | None, *, force: bool, as_json: bool) -> Exit:
    """A document that was imported is asked for, with its content or what its URL gives; 3 without either."""
    document_id = subjects.document_id(head.subject)
    with documents.opened() as (runtime, library):
        document = stored.document(runtime.db, head.tenant, document_id)
        if document is None or head.kind != subjects.INDEX:
            message = f"{head.subject} was deleted or never requested; upload its content first"
            raise CommandError(message, Exit.REFUSED, code="nothing_to_retry")
        wish = Wish(head.tenant, context.actor(), max_cost=max_cost)
        answer = library.ask(wish, document, force=force).answer
    if as_json:
        terminal.show_json(answer)
    else:
        terminal.say(_told(head.subject, answer))
    return exit_for_answer(answer.disposition)


def _retry_follow_up(runtime: bootstrap.Runtime, head: Head, max_cost: int | None, *, as_json: bool) -> Exit:
    """What an action failed to do is asked for once more; exit code 3 when there is nothing to be done."""
    run_id = runtime.engine.host.token()
    outcome = follow_up_retries.retry(
        runtime.db, head.tenant, head.subject, run_id=run_id, actor=context.actor(), max_cost=max_cost
    )
    if isinstance(outcome, Fenced):
        message = f"{head.subject} cannot be retried ({outcome.reason.replace('_', ' ')})"
        raise CommandError(message, Exit.REFUSED, code="nothing_to_retry")
    from holdfast.worker import sender  # noqa: PLC0415 - as in `sweep`

    sending = sender.open_sender(runtime.settings)
    wakeups.wake_lanes(sending, {Lane.FOLLOW_UP: 1})
    sending.close()
    if as_json:
        terminal.show_json({"disposition": "accepted", "run_id": run_id, "generation": head.generation + 1})
    else:
        terminal.say(f"accepted: generation {head.generation + 1} of {head.subject} is queued")
    return Exit.OK


def _told(subject: str, answer: RequestResult) -> str:
    match answer.disposition:
        case Disposition.DUPLICATE:
            return f"duplicate: run {answer.run_id} of {subject} is {answer.status}"
        case Disposition.UNCHANGED:
            return (
                f"unchanged: {subject} is done with this content and these options; use --force to repeat it"
            )
        case Disposition.REFUSED:
            return f"refused: {answer.reason}"
        case _:
            return f"{answer.disposition}: generation {answer.generation} of {subject} is queued"


def sweep(*, once: bool, as_json: bool) -> None:
    """One round of the sweep, or rounds until SIGINT or SIGTERM. A database that is away is waited for."""
    stop = threading.Event()
    if not once:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
    from holdfast.worker import sender  # noqa: PLC0415 - Celery takes a moment to load

    loaded = context.loaded()
    sending = sender.open_sender(loaded)
    with bootstrap.open_runtime(loaded, (), sender=sending) as runtime:
        bootstrap.check_blobs(runtime)
        sweeper = runtime.engine.sweeper
        sweeper.apart = None if once else Apart(sweeper.overran)
        while True:
            try:
                _show_swept(runtime.engine.sweep(), once=once, as_json=as_json)
            except StoreUnavailableError as error:
                if once:
                    raise
                terminal.complain(error.message, error.code)
            if once or stop.wait(runtime.settings.sweep_interval):
                break
        if sweeper.apart is not None:
            sweeper.apart.stop()
    sending.close()


def _show_swept(swept: Swept, *, once: bool, as_json: bool) -> None:
    if as_json:
        terminal.show_json(swept)
    elif once or swept.orders or swept.mended:
        typer.echo(_swept(swept))


def _swept(swept: Swept) -> str:
    due = ", ".join(f"{number} in {lane}" for lane, number in swept.due.items()) or "none"
    if not swept.won:
        return "swept: nothing to do, or another process has just swept"
    failed = f"; failed: {', '.join(swept.failed)}, see: holdfast status" if swept.failed else ""
    return f"swept: tasks due {due}; orders repaired {swept.orders}; runs repaired {swept.mended}{failed}"


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the other system keeps its documents: a table, and the names of its columns."""

    table: str
    id: str
    active: str
    title: str | None = None
    url: str | None = None


def import_documents(source: str, columns: Columns, *, tenant: str, collection: str, as_json: bool) -> None:
    """Every row of the table is a document here; those that were are as they were."""
    if not TENANT.fullmatch(collection):
        message = f"{collection!r} is not a valid collection name; use letters, digits, . - _, at most 64"
        raise CommandError(message, Exit.USAGE, code="bad_collection")
    with context.runtime() as runtime:
        rows = imports.read_documents(
            source, columns.table, columns.id, columns.active, columns.title, columns.url
        )
        done = imports.import_documents(
            runtime.db,
            rows,
            tenant=tenant,
            collection=collection,
            actor=context.actor(),
            quota=bootstrap.quota(runtime.settings),
        )
    if as_json:
        terminal.show_json(done)
        return
    typer.echo(
        f"imported {done.active} as published and {done.idle} as not indexed; "
        f"{done.existing} already existed and were not changed; see: holdfast documents list -c {collection}"
    )
