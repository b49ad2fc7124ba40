"""The commands of jobs and their options. Bodies import late, so that `holdfast --help` is quick."""

from typing import Annotated

import typer

from holdfast.cli.kind_commands import KindGroup
from holdfast.cli.options import Json, Tenant

jobs_app = typer.Typer(
    cls=KindGroup,
    help="List jobs; the name of a kind starts one, `results` prints its results.",
    invoke_without_command=True,
)

Id = Annotated[str, typer.Argument(metavar="ID", help="Job ID from `holdfast jobs`.")]


@jobs_app.callback()
def jobs(
    context: typer.Context,
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="Only this collection.")
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Only this kind.")] = None,
    state: Annotated[str | None, typer.Option("--state", help="Only in this state, like running.")] = None,
    most: Annotated[int, typer.Option("--most", "-k", min=1, max=500, help="Maximum number of jobs.")] = 20,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """List jobs, newest first."""
    if context.invoked_subcommand is None:
        from holdfast.cli import jobs as doing  # noqa: PLC0415 - see the module's docstring

        doing.listed(tenant, kind, collection, state, most, as_json=as_json)


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
