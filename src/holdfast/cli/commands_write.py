"""Commands that change something: migrate, cancel, retry, sweep, import-documents."""

import signal
import threading

import typer

from holdfast import bootstrap
from holdfast.cli import context, costs, terminal
from holdfast.cli.exit_codes import CommandError, Exit, exit_for_answer
from holdfast.core import subjects
from holdfast.core.errors import StoreUnavailableError
from holdfast.core.records import Fenced, Head, RequestResult
from holdfast.core.states import Disposition, shown
from holdfast.engine.duty_threads import DutyThreads
from holdfast.engine.sweep import Swept
from holdfast.service.requests import RequestContext
from holdfast.service.transfer import Columns


def migrate(to: str, *, as_json: bool) -> None:
    """The database is at revision `to`."""
    revision = bootstrap.migrated(context.loaded(), to)
    if as_json:
        terminal.show_json({"revision": revision})
    else:
        typer.echo(f"database is at revision {revision}")


def cancel(subject: str, *, kind: str | None, tenant: str, as_json: bool) -> None:
    """The live run of the subject has ended; exit code 3 when there was none."""
    with context.services() as services:
        head = services.work.one(tenant, subject, kind)
        outcome = services.work.cancel(head, actor=context.actor())
    if isinstance(outcome, Fenced):
        message = f"{subject} has nothing to cancel; it is {shown(head.kind, head.status)}"
        raise CommandError(message, Exit.REFUSED, code="nothing_to_cancel")
    if as_json:
        terminal.show_json({"cancelled": head.generation, "run_id": head.run_id, "head_id": head.id})
        return
    published = (
        f"generation {head.published_generation} stays published"
        if head.visible
        else "nothing was published before"
    )
    terminal.say(f"cancelled generation {head.generation} of {subject}; {published}")


def retry(
    subject: str, *, kind: str | None, tenant: str, force: bool, max_cost: float | None, as_json: bool
) -> Exit:
    """What was last asked for is asked for again, with the same content, options and pipeline."""
    wish = RequestContext(tenant, context.actor(), max_cost=costs.nano_dollars(max_cost))
    with context.services() as services:
        head = services.work.one(tenant, subject, kind)
        answer = services.work.retry(wish, head, force=force)
    if answer is None:
        answer = _first_index(wish, head, force=force)
    if as_json:
        terminal.show_json(answer)
    else:
        terminal.say(_outcome(subject, answer))
    return exit_for_answer(answer.disposition)


def _first_index(wish: RequestContext, head: Head, *, force: bool) -> RequestResult:
    """A document that was imported is asked for, with its content or what its URL gives; 3 without either."""
    with context.services(None) as services:
        document = services.documents.find(head.tenant, subjects.document_id(head.subject))
        if document is None or head.kind != subjects.INDEX:
            message = f"{head.subject} was deleted or never requested; upload its content first"
            raise CommandError(message, Exit.REFUSED, code="nothing_to_retry")
        return services.documents.ask(wish, document, force=force).answer


def _outcome(subject: str, answer: RequestResult) -> str:
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
    """One round of the sweep, or rounds until SIGINT or SIGTERM. It waits for an unreachable database."""
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
        sweeper.apart = None if once else DutyThreads(sweeper.overran)
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


def import_documents(source: str, columns: Columns, *, tenant: str, collection: str, as_json: bool) -> None:
    """Every row of the table is a document here; those that were are as they were."""
    with context.services() as services:
        done = services.transfer.adopt(
            source, columns, tenant=tenant, collection=collection, actor=context.actor()
        )
    if as_json:
        terminal.show_json(done)
        return
    typer.echo(
        f"imported {done.active} as published and {done.idle} as not indexed; "
        f"{done.existing} already existed and were not changed; see: holdfast documents list -c {collection}"
    )
