"""The commands and their options. Bodies import late, so that `holdfast --help` is quick."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli import (
    ask_app,
    bundles_app,
    doctor_app,
    documents_app,
    global_options,
    graph_app,
    mcp_app,
    mindmap_app,
    money_app,
    reindex_app,
)
from holdfast.cli.actions_app import actions_app
from holdfast.cli.exit_codes import Exit, exit_for
from holdfast.cli.flow_app import flow_app
from holdfast.cli.jobs_app import jobs_app
from holdfast.cli.keys_app import keys_app
from holdfast.cli.options import (
    FilterText,
    Json,
    Labels,
    MaxCost,
    MetadataText,
    ModeOption,
    PasswordFile,
    RerankerName,
    RerankFlag,
    SearchMode,
    Tenant,
    filter_of,
    metadata_of,
    password_of,
)
from holdfast.cli.quotas_app import quota_app
from holdfast.cli.sources_app import sources_app
from holdfast.core.errors import HoldfastError

app = typer.Typer(
    name="holdfast",
    help="Document ingestion, search and LLM jobs that do not bill you twice.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(keys_app, name="keys")
app.add_typer(jobs_app, name="jobs")
app.add_typer(actions_app, name="actions")
app.add_typer(sources_app, name="sources")
app.add_typer(flow_app, name="flow")
app.add_typer(quota_app, name="quota")
ask_app.register(app)
doctor_app.register(app)
mcp_app.register(app)
bundles_app.register(app)
money_app.register(app)
reindex_app.register(app)
documents_app.register(app)
graph_app.register(app)
mindmap_app.register(app)


Subject = Annotated[str, typer.Argument(help="What the work is about, like document:42.")]
Kind = Annotated[
    str | None, typer.Option("--kind", help="Kind of work, like index. Required if there are several.")
]


def _version(requested: bool) -> None:
    if requested:
        from holdfast import __version__  # noqa: PLC0415 - see the module's docstring

        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Hold the options that stand before a command."""


@app.command()
def demo(
    plain: Annotated[bool, typer.Option("--plain", help="No colours, even on a terminal.")] = False,
) -> None:
    """Break real workers on purpose and print both bills.

    Runs offline in a temporary folder with its own fake provider; takes about half a minute.
    """
    from holdfast.cli.demo import story  # noqa: PLC0415

    raise typer.Exit(story.tell(plain=plain))


@app.command()
def migrate(
    to: Annotated[str, typer.Option("--to", help="Stop at this revision.")] = "head",
    as_json: Json = False,
) -> None:
    """Migrate the database to the revision this release needs.

    Creates the embedded database if there is none.
    """
    from holdfast.cli import commands_write  # noqa: PLC0415

    commands_write.migrate(to, as_json=as_json)


@app.command()
def index(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and folders (recursive).")],
    collection: Annotated[
        str, typer.Option("--collection", "-c", help="Target collection; created if missing.")
    ] = "default",
    tenant: Tenant = "default",
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep running and index changes as they happen.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until they are searchable.")] = True,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete documents whose file no longer exists.")
    ] = False,
    glob: Annotated[
        list[str] | None,
        typer.Option("--glob", metavar="PATTERN", help="Only matching files, like '*.pdf'. Repeatable."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="PATTERN", help="Skip matching files and folders. Repeatable."),
    ] = None,
    metadata: MetadataText = None,
    label: Labels = None,
    password_file: PasswordFile = None,
    external_id: Annotated[
        str | None,
        typer.Option("--external-id", metavar="ID", help="Your own id of one file: same id, same document."),
    ] = None,
    max_cost: MaxCost = None,
    as_json: Json = False,
) -> None:
    """Make documents searchable.

    PDF, Office and OpenDocument files, EPUB, RTF, e-mail, CSV, JSON, XML, HTML, Markdown, code and text.
    Unchanged files cost nothing; for a changed file only the changed parts are paid for.
    """
    from holdfast.cli import index_command  # noqa: PLC0415

    options = {"watch": watch, "wait": wait, "prune": prune, "as_json": as_json}
    selection = index_command.selection(glob, ignore)
    raise typer.Exit(
        index_command.index(
            paths,
            collection=collection,
            tenant=tenant,
            selection=selection,
            description=(metadata_of(metadata), tuple(label or ())),
            password=password_of(password_file),
            external_id=external_id,
            max_cost=max_cost,
            **options,
        )
    )


@app.command()
def search(
    question: Annotated[str, typer.Argument(metavar="TEXT", help="The search query.")],
    collection: Annotated[
        list[str] | None, typer.Option("--collection", "-c", help="Collection to search. Repeatable.")
    ] = None,
    tenant: Tenant = "default",
    most: Annotated[int, typer.Option("--most", "-k", min=1, max=200, help="Number of results.")] = 5,
    offset: Annotated[int, typer.Option("--offset", min=0, max=900, help="Results to skip.")] = 0,
    group: Annotated[bool, typer.Option("--group", help="Group the results by document.")] = False,
    like: Annotated[
        bool, typer.Option("--like", help="TEXT is a document ID: find passages like that document.")
    ] = False,
    mode: ModeOption = SearchMode.HYBRID,
    passing: FilterText = None,
    rerank: RerankFlag = None,
    reranker: RerankerName = None,
    as_json: Json = False,
) -> None:
    """Search published documents for the best matching passages."""
    from holdfast.cli import search_command  # noqa: PLC0415
    from holdfast.service.search_pages import LikeThis, SearchRequest, modes  # noqa: PLC0415

    matching, by_graph = modes(mode.value)
    search_command.search(
        SearchRequest(
            tenant,
            collection or ["default"],
            "" if like else question,
            LikeThis.read(question.removeprefix("document:")) if like else None,
            most,
            offset,
            only=filter_of(passing),
            mode=matching,
            grouped=group,
            rerank=reranker or rerank,
            graph=by_graph,
        ),
        as_json=as_json,
    )


@app.command()
def tree(
    collection: Annotated[str, typer.Argument(help="The collection.")],
    node: Annotated[str | None, typer.Option("--node", help="Key of a node: show what is below it.")] = None,
    document: Annotated[str | None, typer.Option("--document", help="Only this document.")] = None,
    most: Annotated[int, typer.Option("--most", min=1, max=5000, help="Number of summaries.")] = 100,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Show the tree of summaries of a collection, or of one of its documents."""
    from holdfast.cli import tree_command  # noqa: PLC0415

    named = None if document is None else document.removeprefix("document:")
    tree_command.tree(collection, node=node, document=named, most=most, tenant=tenant, as_json=as_json)


@app.command()
def status(as_json: Json = False) -> None:
    """Show workers, queues, running work, leases, orders in doubt and the bill."""
    from holdfast.cli import status_command  # noqa: PLC0415

    status_command.status(as_json=as_json)


@app.command()
def why(subject: Subject, kind: Kind = None, tenant: Tenant = "default", as_json: Json = False) -> None:
    """Explain the history of a subject, and what to do next.

    Who requested it and what happened, which workers ran it or were fenced out, and what was paid.
    """
    from holdfast.cli import why as telling  # noqa: PLC0415

    telling.why(subject, kind=kind, tenant=tenant, as_json=as_json)


@app.command()
def cancel(subject: Subject, kind: Kind = None, tenant: Tenant = "default", as_json: Json = False) -> None:
    """Cancel the running or queued work on a subject; the published version stays."""
    from holdfast.cli import commands_write  # noqa: PLC0415

    commands_write.cancel(subject, kind=kind, tenant=tenant, as_json=as_json)


@app.command()
def retry(
    subject: Subject,
    kind: Kind = None,
    tenant: Tenant = "default",
    force: Annotated[bool, typer.Option("--force", help="Run again even if the last run succeeded.")] = False,
    max_cost: MaxCost = None,
    as_json: Json = False,
) -> None:
    """Repeat the last request for a subject.

    With the same content, options and `--max-cost`, unless you set another. Refused (exit code 3) while it is
    queued or running.
    """
    from holdfast.cli import commands_write  # noqa: PLC0415

    raise typer.Exit(
        commands_write.retry(
            subject, kind=kind, tenant=tenant, force=force, max_cost=max_cost, as_json=as_json
        )
    )


@app.command()
def sweep(
    once: Annotated[bool, typer.Option("--once", help="Sweep once, then exit.")] = False,
    celery_app: Annotated[
        str | None,
        typer.Option(
            "--app",
            "-A",
            metavar="MODULE:APP",
            help="Sweep for the guarded tasks of this Celery application, in the database of its guards.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find and repair stuck or forgotten work.

    Without --once it runs until it is interrupted.
    """
    if celery_app is not None:
        from holdfast.cli import app_sweep  # noqa: PLC0415

        app_sweep.sweep(celery_app, once=once, as_json=as_json)
        return
    from holdfast.cli import commands_write  # noqa: PLC0415

    commands_write.sweep(once=once, as_json=as_json)


@app.command()
def up(
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", "-c", min=1, max=512, help="Processes per worker.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=0, max=64, help="Number of workers.")] = 1,
    api: Annotated[bool, typer.Option("--api/--no-api", help="Also serve the API and the web UI.")] = True,
    sample: Annotated[bool, typer.Option("--sample", help="Fill a small sample collection first.")] = False,
    host: Annotated[str | None, typer.Option("--host", help="Host of the API; see `holdfast api`.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port of the API; 0 picks a free one.")
    ] = None,
) -> None:
    """Run everything on this machine: API, web UI and worker.

    Restarts processes that die. Ctrl-C stops everything; press it again to stop without waiting.
    """
    from holdfast.cli import supervisor  # noqa: PLC0415

    options = supervisor.ComponentOptions(concurrency, workers, api, sample, host, port)
    raise typer.Exit(supervisor.up(options))


@app.command(hidden=True)
def sample() -> None:
    """Fill the sample collection, for `up --sample`."""
    from holdfast.cli import sample_collection  # noqa: PLC0415

    raise typer.Exit(sample_collection.fill())


@app.command()
def worker(
    lanes: Annotated[
        str | None, typer.Option("--lanes", help="Lanes to serve, separated by commas. Default: all.")
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", "-c", min=1, max=512, help="Number of task processes."),
    ] = None,
    autoscale: Annotated[
        str | None,
        typer.Option(
            "--autoscale", metavar="MOST,LEAST", help="Scale processes with the load, within these bounds."
        ),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Worker name. Default: host-pid.")] = "",
    health_port: Annotated[
        int | None,
        typer.Option("--health-port", min=0, max=65535, help="Health check port; 0 picks a free one."),
    ] = None,
) -> None:
    """Run a worker until it is stopped.

    SIGTERM or Ctrl-C drains it: paid orders in flight are settled, and its tasks return to the queue at once.
    """
    from holdfast.cli import worker_command  # noqa: PLC0415

    raise typer.Exit(worker_command.worker(lanes, concurrency, autoscale, name, health_port))


@app.command()
def relay() -> None:
    """Run a relay: it sends paid orders for the workers of this host, so that a call outlives its worker.

    SIGTERM or Ctrl-C drains it: it takes no new orders and ends those in flight.
    """
    from holdfast.cli import relay_command  # noqa: PLC0415

    raise typer.Exit(relay_command.relay())


@app.command()
def api(
    host: Annotated[
        str | None,
        typer.Option("--host", help="Host to bind to; anything but this machine requires API keys."),
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port to serve on; 0 picks a free one.")
    ] = None,
) -> None:
    """Serve the HTTP API and the web UI until stopped.

    It accepts requests and wakes workers; it runs no tasks itself.
    """
    from holdfast.cli import api_command  # noqa: PLC0415

    api_command.serve(host, port)


@app.command()
def gateway(
    host: Annotated[
        str | None,
        typer.Option("--host", help="Host to bind to; anything but this machine requires API keys."),
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port to serve on; 0 picks a free one.")
    ] = None,
) -> None:
    """Serve the gateway alone until stopped: OpenAI's and Anthropic's interfaces, each call paid once.

    The API serves it too. SIGTERM waits for the calls under way, so that none is in doubt.
    """
    from holdfast.cli import gateway_command  # noqa: PLC0415

    gateway_command.serve(host, port)


@app.command("import-documents")
def import_documents(
    source: Annotated[
        str, typer.Option("--from", metavar="URL", help="Database to read from; it is not modified.")
    ],
    table: Annotated[str, typer.Option("--table", help="Table name, or schema.table.")] = "documents",
    id_column: Annotated[str, typer.Option("--id-column")] = "id",
    active_column: Annotated[str, typer.Option("--active-column")] = "is_active",
    tenant: Tenant = "default",
    collection: Annotated[
        str, typer.Option("--collection", help="Target collection; created if missing.")
    ] = "default",
    title_column: Annotated[
        str | None, typer.Option("--title-column", help="Column with titles. Default: the IDs.")
    ] = None,
    url_column: Annotated[
        str | None, typer.Option("--url-column", help="Column with URLs to fetch content from.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Import documents from another system's database.

    Active rows count as published, the others as not indexed. Documents that already exist are not changed.
    Imported documents have no content until it is uploaded or fetched from their URL.
    """
    from holdfast.cli import commands_write  # noqa: PLC0415
    from holdfast.service.transfer import Columns  # noqa: PLC0415

    commands_write.import_documents(
        source,
        Columns(table, id_column, active_column, title_column, url_column),
        tenant=tenant,
        collection=collection,
        as_json=as_json,
    )


def main() -> None:
    """Run one command. Errors that a person can act on are one line, and an exit code; never a traceback."""
    # What this process and its children write is for its owner alone.
    os.umask(0o077)
    try:
        global_options.program(app)()
    except HoldfastError as error:
        from holdfast.cli import terminal  # noqa: PLC0415

        terminal.complain(error.message, error.code)
        sys.exit(exit_for(error))
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
