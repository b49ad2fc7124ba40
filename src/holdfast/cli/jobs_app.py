"""The commands of jobs and their options. Bodies import late, so that `holdfast --help` is quick."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import Json, MaxCost, Tenant, Yes

jobs_app = typer.Typer(
    help="List jobs; `qa` and `extract` start one, `results` prints its results.", invoke_without_command=True
)


class JobKind(StrEnum):
    """The kinds of jobs."""

    QA = "qa"
    EXTRACT = "extract"


class JobMode(StrEnum):
    """What to do when a job of the same kind exists."""

    RETRY = "retry"
    REPLACE = "replace"
    FORCE = "force"


Id = Annotated[str, typer.Argument(metavar="ID", help="Job ID from `holdfast jobs`.")]
Collection = Annotated[
    str | None, typer.Option("--collection", "-c", help="Collection to read. Default: default.")
]
Documents = Annotated[
    list[str] | None,
    typer.Option(
        "--document", help="Only this document. Repeatable; one without --collection is a job of its own."
    ),
]
Mode = Annotated[
    JobMode,
    typer.Option(
        "--mode",
        help="If such a job exists: retry refuses while it runs, replace cancels it, force repeats it.",
    ),
]
Provider = Annotated[
    str | None,
    typer.Option("--provider", help="LLM provider, a `[providers.NAME]`. Default: HOLDFAST_LLM_PROVIDER."),
]
Model = Annotated[str | None, typer.Option("--model", help="Model. Default: the provider's default model.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is done, with a progress bar.")]

WaitForReady = Annotated[
    bool,
    typer.Option(
        "--wait-for-ready", help="Wait for documents that are still being indexed instead of skipping them."
    ),
]


def _asked(provider: str | None, model: str | None) -> dict[str, str]:
    """The parameters that name a provider and a model, as far as they are named."""
    return {name: value for name, value in (("provider", provider), ("model", model)) if value is not None}


@jobs_app.callback()
def jobs(
    context: typer.Context,
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="Only this collection.")
    ] = None,
    kind: Annotated[JobKind | None, typer.Option("--kind", help="Only this kind.")] = None,
    state: Annotated[str | None, typer.Option("--state", help="Only in this state, like running.")] = None,
    most: Annotated[int, typer.Option("--most", "-k", min=1, max=500, help="Maximum number of jobs.")] = 20,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """List jobs, newest first."""
    if context.invoked_subcommand is None:
        from holdfast.cli import jobs as doing  # noqa: PLC0415 - see the module's docstring

        kinds = [kind.value] if kind is not None else []
        doing.listed(tenant, kinds, collection, state, most, as_json=as_json)


@jobs_app.command()
def qa(
    collection: Collection = None,
    document: Documents = None,
    notes: Annotated[str, typer.Option("--notes", help="Instructions for the questions.")] = "",
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=10_000, help="Maximum number of questions.")
    ] = 100,
    per_chunk: Annotated[int, typer.Option("--per-chunk", min=1, max=20, help="Questions per chunk.")] = 3,
    provider: Provider = None,
    model: Model = None,
    mode: Mode = JobMode.RETRY,
    wait: Wait = True,
    wait_for_ready: WaitForReady = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Generate questions and answers. Exit code 3 while such a job is running."""
    from holdfast.cli import jobs as doing  # noqa: PLC0415

    params = {"notes": notes, "limit": limit, "per_chunk": per_chunk, **_asked(provider, model)}
    wish = doing.Wanting(
        JobKind.QA.value,
        params,
        collection,
        document or [],
        mode.value,
        tenant,
        yes,
        wait_for_ready,
        max_cost,
    )
    raise typer.Exit(doing.start(wish, wait=wait, as_json=as_json))


@jobs_app.command()
def extract(
    schema: Annotated[Path, typer.Argument(help="File with the JSON Schema of the fields.")],
    collection: Collection = None,
    document: Documents = None,
    instruction: Annotated[str, typer.Option("--instruction", help="Additional instructions.")] = "",
    provider: Provider = None,
    model: Model = None,
    mode: Mode = JobMode.RETRY,
    wait: Wait = True,
    wait_for_ready: WaitForReady = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Extract the fields of a schema from each document. Exit code 3 while such a job is running."""
    from holdfast.cli import jobs as doing  # noqa: PLC0415

    params = {"schema": doing.read_schema(schema), "instruction": instruction, **_asked(provider, model)}
    wish = doing.Wanting(
        JobKind.EXTRACT.value,
        params,
        collection,
        document or [],
        mode.value,
        tenant,
        yes,
        wait_for_ready,
        max_cost,
    )
    raise typer.Exit(doing.start(wish, wait=wait, as_json=as_json))


@jobs_app.command()
def show(
    job_id: Id,
    follow: Annotated[
        bool, typer.Option("--follow", help="Wait until it is done, with a progress bar.")
    ] = False,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Show the status of a job. Exit code 1 if it failed."""
    from holdfast.cli import jobs as doing  # noqa: PLC0415

    raise typer.Exit(doing.show(tenant, job_id, follow=follow, as_json=as_json))


@jobs_app.command()
def results(
    job_id: Id,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Print the results of a successful job."""
    from holdfast.cli import jobs as doing  # noqa: PLC0415

    doing.results(tenant, job_id, as_csv=as_csv, as_json=as_json)


@jobs_app.command("cancel")
def cancel_job(job_id: Id, tenant: Tenant = "default", as_json: Json = False) -> None:
    """Cancel a running job."""
    from holdfast.cli import jobs as doing  # noqa: PLC0415

    doing.cancel(tenant, job_id, as_json=as_json)
