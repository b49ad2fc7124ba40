"""The commands and their options. Bodies import late, so that `holdfast --help` is quick."""

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli import bundles_app, documents_app, money_app, reindex_app, shared
from holdfast.cli.actions_app import actions_app
from holdfast.cli.exits import Exit, exit_for
from holdfast.cli.jobs_app import jobs_app
from holdfast.cli.options import Json, MaxCost, Tenant
from holdfast.cli.quotas_app import quota_app
from holdfast.core.errors import HoldfastError

app = typer.Typer(
    name="holdfast",
    help="Background work on documents that is paid for once, never lost and never half visible.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
keys_app = typer.Typer(help="Make, list and revoke keys of the API.", no_args_is_help=True)
app.add_typer(keys_app, name="keys")
app.add_typer(jobs_app, name="jobs")
app.add_typer(actions_app, name="actions")
app.add_typer(quota_app, name="quota")
bundles_app.register(app)
money_app.register(app)
reindex_app.register(app)
documents_app.register(app)


class KeyScope(StrEnum):
    """What a key may do; each includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class SearchMode(StrEnum):
    """The ways to search."""

    HYBRID = "hybrid"
    KEYWORD = "keyword"
    VECTOR = "vector"


Subject = Annotated[str, typer.Argument(help="What the work is done to, like document:42.")]
Kind = Annotated[
    str | None, typer.Option("--kind", help="The sort of work, like index. Needed if there are several.")
]


def _version(wanted: bool) -> None:
    if wanted:
        from holdfast import __version__  # noqa: PLC0415 - see the module's docstring

        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Hold the options that stand before a command."""


@app.command()
def demo(
    plain: Annotated[bool, typer.Option("--plain", help="No colours, also on a terminal.")] = False,
) -> None:
    """Break real workers on purpose and print both bills.

    Everything happens in a temporary folder and with a provider of its own, offline; it takes half a minute.
    """
    from holdfast.cli.demo import story  # noqa: PLC0415

    raise typer.Exit(story.tell(plain=plain))


@app.command()
def migrate(
    to: Annotated[str, typer.Option("--to", help="Stop at this revision.")] = "head",
    as_json: Json = False,
) -> None:
    """Bring the database to the revision this code needs.

    The embedded database is made if there is none.
    """
    from holdfast.cli import acting  # noqa: PLC0415

    acting.migrate(to, as_json=as_json)


@app.command()
def index(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files, and folders with all below.")
    ],
    collection: Annotated[
        str, typer.Option("--collection", "-c", help="Where they belong; made if it is not there.")
    ] = "default",
    tenant: Tenant = "default",
    watch: Annotated[bool, typer.Option("--watch", help="Go on, and take in what changes.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until they are searchable.")] = True,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete documents whose file is not there any more.")
    ] = False,
    glob: Annotated[
        list[str] | None,
        typer.Option("--glob", metavar="PATTERN", help="Only files like this, as '*.pdf'; again for more."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="PATTERN", help="No files or folders like this; again for more."),
    ] = None,
    max_cost: MaxCost = None,
    as_json: Json = False,
) -> None:
    """Make documents searchable.

    PDF, DOCX, PPTX, XLSX, CSV, HTML, Markdown and text. What is unchanged costs nothing, what is changed
    costs what changed.
    """
    from holdfast.cli import indexing  # noqa: PLC0415

    options = {"watch": watch, "wait": wait, "prune": prune, "as_json": as_json}
    selection = indexing.selection(glob, ignore)
    raise typer.Exit(
        indexing.index(
            paths,
            collection=collection,
            tenant=tenant,
            selection=selection,
            max_cost=max_cost,
            **options,
        )
    )


@app.command()
def search(
    question: Annotated[str, typer.Argument(metavar="TEXT", help="What to look for.")],
    collection: Annotated[str, typer.Option("--collection", "-c", help="Where to look.")] = "default",
    tenant: Tenant = "default",
    most: Annotated[int, typer.Option("--most", "-k", min=1, max=200, help="How many hits.")] = 5,
    mode: Annotated[
        SearchMode, typer.Option("--mode", help="By words and meaning, or by one of them.")
    ] = SearchMode.HYBRID,
    as_json: Json = False,
) -> None:
    """Find the passages that answer best, of what is published."""
    from holdfast.cli import searching  # noqa: PLC0415

    searching.search(question, collection=collection, tenant=tenant, k=most, mode=mode.value, as_json=as_json)


@app.command()
def status(as_json: Json = False) -> None:
    """Show workers, lanes, live runs, leases, orders in doubt and the bill."""
    from holdfast.cli import looking  # noqa: PLC0415

    looking.status(as_json=as_json)


@app.command()
def why(subject: Subject, kind: Kind = None, tenant: Tenant = "default", as_json: Json = False) -> None:
    """Tell the story of a subject, and what to do next.

    Who asked and what became of it, who worked, who was fenced out, what was paid.
    """
    from holdfast.cli import why as telling  # noqa: PLC0415

    telling.why(subject, kind=kind, tenant=tenant, as_json=as_json)


@app.command()
def cancel(subject: Subject, kind: Kind = None, tenant: Tenant = "default", as_json: Json = False) -> None:
    """End the live run of a subject; what is published stays."""
    from holdfast.cli import acting  # noqa: PLC0415

    acting.cancel(subject, kind=kind, tenant=tenant, as_json=as_json)


@app.command()
def retry(
    subject: Subject,
    kind: Kind = None,
    tenant: Tenant = "default",
    force: Annotated[
        bool, typer.Option("--force", help="A new generation even if the last one succeeded.")
    ] = False,
    max_cost: MaxCost = None,
    as_json: Json = False,
) -> None:
    """Ask once more for what was last asked for.

    With the same content, options and `--max-cost`, unless you say another. Refused (exit code 3) while it is
    queued or running.
    """
    from holdfast.cli import acting  # noqa: PLC0415

    raise typer.Exit(
        acting.retry(subject, kind=kind, tenant=tenant, force=force, max_cost=max_cost, as_json=as_json)
    )


@app.command()
def sweep(
    once: Annotated[bool, typer.Option("--once", help="One round, then end.")] = False,
    as_json: Json = False,
) -> None:
    """Find what was forgotten and put it right.

    Without --once it goes on until it is interrupted.
    """
    from holdfast.cli import acting  # noqa: PLC0415

    acting.sweep(once=once, as_json=as_json)


@app.command()
def up(
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", "-c", min=1, max=512, help="Processes of each worker.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=0, max=64, help="How many workers.")] = 1,
    api: Annotated[bool, typer.Option("--api/--no-api", help="Serve the API and the page as well.")] = True,
    sample: Annotated[bool, typer.Option("--sample", help="Index a small sample collection first.")] = False,
    host: Annotated[
        str | None, typer.Option("--host", help="Address of the API; as for `holdfast api`.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port of the API; 0 picks a free one.")
    ] = None,
) -> None:
    """Run everything on this machine: API and worker.

    Restarts what dies. Ctrl-C ends all of it; a second one does not wait.
    """
    from holdfast.cli import supervising  # noqa: PLC0415

    wanted = supervising.Wanted(concurrency, workers, api, sample, host, port)
    raise typer.Exit(supervising.up(wanted))


@app.command()
def worker(
    lanes: Annotated[
        str | None, typer.Option("--lanes", help="Lanes to serve, separated by commas. Default: all.")
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", "-c", min=1, max=512, help="Processes that carry out tasks."),
    ] = None,
    autoscale: Annotated[
        str | None,
        typer.Option("--autoscale", metavar="MOST,LEAST", help="Processes by need, within bounds."),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="What this worker is called. Default: host-pid.")] = "",
    health_port: Annotated[
        int | None,
        typer.Option("--health-port", min=0, max=65535, help="Port of its health; 0 picks a free one."),
    ] = None,
) -> None:
    """Carry out tasks until told to stop.

    SIGTERM or Ctrl-C drains: orders in flight are settled, tasks in hand go back to the queue at once.
    """
    from holdfast.cli import working  # noqa: PLC0415

    raise typer.Exit(working.worker(lanes, concurrency, autoscale, name, health_port))


@app.command()
def api(
    host: Annotated[
        str | None, typer.Option("--host", help="Address to serve on; others than this machine's need a key.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port to serve on; 0 picks a free one.")
    ] = None,
) -> None:
    """Serve the HTTP API until told to stop.

    It takes requests and wakes workers; it carries out no work itself.
    """
    from holdfast.cli import serving  # noqa: PLC0415

    serving.serve(host, port)


@keys_app.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="Who it is for; shown in the journal.")] = "",
    tenant: Tenant = "default",
    scope: Annotated[
        list[KeyScope] | None, typer.Option("--scope", help="What it may do; several times for several.")
    ] = None,
    days: Annotated[float | None, typer.Option("--days", min=0.001, help="How long it is good.")] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.01, help="Requests a second; default: HOLDFAST_API_RATE.")
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", min=1, help="Requests at once; default: HOLDFAST_API_CONCURRENCY."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a key of the API and print its token, this once.

    From the first key on, nobody uses the API without one.
    """
    from holdfast.cli import keys  # noqa: PLC0415

    scopes = [each.value for each in scope or [KeyScope.READ, KeyScope.WRITE]]
    keys.create(
        name,
        tenant=tenant,
        scopes=scopes,
        days=days,
        rate=rate,
        concurrency=concurrency,
        as_json=as_json,
    )


@keys_app.command("list")
def list_keys(as_json: Json = False) -> None:
    """List the keys of the API, without their tokens."""
    from holdfast.cli import keys  # noqa: PLC0415

    keys.every(as_json=as_json)


@keys_app.command("revoke")
def revoke_key(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key, as `holdfast keys list` names it.")],
) -> None:
    """Revoke a key at once."""
    from holdfast.cli import keys  # noqa: PLC0415

    keys.revoke(key_id)


@app.command("import-documents")
def import_documents(
    source: Annotated[
        str, typer.Option("--from", metavar="URL", help="The database to read; it is not changed.")
    ],
    table: Annotated[str, typer.Option("--table", help="The table, or schema.table.")] = "documents",
    id_column: Annotated[str, typer.Option("--id-column")] = "id",
    active_column: Annotated[str, typer.Option("--active-column")] = "is_active",
    tenant: Tenant = "default",
    collection: Annotated[
        str, typer.Option("--collection", help="Where they belong; made if it is not there.")
    ] = "default",
    title_column: Annotated[
        str | None, typer.Option("--title-column", help="Their titles; otherwise the ids.")
    ] = None,
    url_column: Annotated[
        str | None, typer.Option("--url-column", help="Where their content is fetched from when indexed.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Take over documents that another system has indexed.

    Active ones count as published, the others as not indexed. Those known here stay as they are.
    None has content here until it is uploaded, or fetched from its URL.
    """
    from holdfast.cli import acting  # noqa: PLC0415

    acting.import_documents(
        source,
        acting.Columns(table, id_column, active_column, title_column, url_column),
        tenant=tenant,
        collection=collection,
        as_json=as_json,
    )


def main() -> None:
    """Run one command. Errors that a person can act on are one line, and an exit code; never a traceback."""
    # What this process and its children write is for its owner alone.
    os.umask(0o077)
    try:
        shared.program(app)()
    except HoldfastError as error:
        from holdfast.cli import terminal  # noqa: PLC0415

        terminal.complain(error.message, error.code)
        sys.exit(exit_for(error))
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
