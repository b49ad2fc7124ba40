"""`holdfast export` and `holdfast import`: a collection as one file, made and read by jobs."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from holdfast import bootstrap
from holdfast.api import schemas_jobs
from holdfast.bootstrap import AppServices
from holdfast.cli import context, jobs, temporary_worker, terminal
from holdfast.cli.exit_codes import CommandError, Exit
from holdfast.core.states import LIVE, Status
from holdfast.service.jobs import Jobs, JobView
from holdfast.service.requests import RequestContext
from holdfast.service.transfer import ExportFile


def export(
    collection: str,
    path: Path,
    *,
    tenant: str,
    only: Mapping[str, Any] | None,
    force: bool,
    as_json: bool,
) -> Exit:
    """What is published in the collection is in the file; nothing is there unless all of it is."""
    if path.exists() and not force:
        message = f"{path} already exists; use another name, or --force to overwrite it"
        raise CommandError(message, Exit.USAGE, code="file_exists")
    if not path.absolute().parent.is_dir():
        message = f"the folder of {path} does not exist; create it first"
        raise CommandError(message, Exit.USAGE, code="bad_file")
    console = terminal.console(quiet=as_json)
    with contextlib.ExitStack() as stack:
        stack.enter_context(temporary_worker.ended_by_a_signal())
        services = stack.enter_context(context.services(None))
        bootstrap.check_blobs(services.runtime)
        known = services.jobs
        source = services.collections.get(tenant, collection)
        answer = services.transfer.export(RequestContext(tenant, context.actor()), source, only=only)
        view = _followed(stack, services, jobs.asked_for(known, tenant, answer), console)
        if view.job.run.status is Status.SUCCESS:
            _save(services.transfer.file(view), path)
        return _ended(known, view, console, str(path), as_json=as_json)


def bring(path: Path, *, collection: str | None, tenant: str, wait: bool, as_json: bool) -> Exit:
    """What is in the file is in the collection; an import that is asked for once more adds nothing."""
    console = terminal.console(quiet=as_json)
    with contextlib.ExitStack() as stack:
        stack.enter_context(temporary_worker.ended_by_a_signal())
        try:
            file = stack.enter_context(path.open("rb"))
        except OSError as error:
            message = f"{path} cannot be read ({error.strerror})"
            raise CommandError(message, Exit.USAGE, code="bad_file") from error
        services = stack.enter_context(context.services(None))
        bootstrap.check_blobs(services.runtime)
        known = services.jobs
        answer = services.transfer.bring(RequestContext(tenant, context.actor()), file, collection)
        view = jobs.asked_for(known, tenant, answer)
        if wait:
            view = _followed(stack, services, view, console)
        return _ended(known, view, console, str(path), as_json=as_json)


def _followed(stack: contextlib.ExitStack, services: AppServices, view: JobView, console: Console) -> JobView:
    if view.job.run.status not in LIVE:
        return view
    helper = stack.enter_context(temporary_worker.Helper(services.operations, console, view.job.run.pipeline))
    return jobs.followed(services.jobs, view, console, helper)


def _save(file: ExportFile, path: Path) -> None:
    """The file is there as a whole, or not at all, whatever ends this process meanwhile."""
    with contextlib.closing(file.content), _beside(path) as (descriptor, draft):
        with os.fdopen(descriptor, "wb") as target:
            shutil.copyfileobj(file.content, target)
            target.flush()
            os.fsync(target.fileno())
        draft.replace(path)


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[tuple[int, Path]]:
    """A new file in the same folder, gone at the end unless it was moved; CommandError without room."""
    draft: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
        draft = Path(name)
        yield descriptor, draft
    except OSError as error:
        message = f"{path} cannot be written ({error.strerror}); run the command again within a day"
        raise CommandError(message, Exit.FAILED, code="bad_file") from error
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)


def _ended(known: Jobs, view: JobView, console: Console, path: str, *, as_json: bool) -> Exit:
    run, result = view.job.run, view.job.result
    if as_json:
        detail = schemas_jobs.JobDetail.build(view, known.counts(view), known.totals(view)).model_dump(
            mode="json"
        )
        terminal.show_json({**detail, "file": path})
    elif run.status is Status.SUCCESS:
        counted = ", ".join(f"{value} {name}" for name, value in result.items() if isinstance(value, int))
        console.print(f"{run.kind} of {view.job.about}: {counted} ({path})", style="good", markup=False)
    else:
        said = f"job {run.id}: {run.status}"
        if run.status not in LIVE:
            said = terminal.one_line(f"{said}: {run.error_message} [{run.error_code}]")
        console.print(said, style="head" if run.status in LIVE else "bad", markup=False)
    return Exit.OK if run.status is Status.SUCCESS or run.status in LIVE else Exit.FAILED
