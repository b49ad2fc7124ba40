"""The commands of actions and their options. Bodies import late, so that `holdfast --help` is quick."""

from enum import StrEnum
from typing import Annotated

import typer

from holdfast.cli.options import Json, Tenant, Yes

actions_app = typer.Typer(
    help="List a collection's actions, which run on each ready document; `add` and `remove` change them.",
    invoke_without_command=True,
)


class Existing(StrEnum):
    """What to do with documents that are already ready."""

    RUN = "run"
    SKIP = "skip"


Collection = Annotated[str, typer.Option("--collection", "-c", help="The collection.")]


@actions_app.callback()
def actions(
    context: typer.Context,
    collection: Collection = "default",
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """List the actions of a collection, with the progress of each."""
    if context.invoked_subcommand is None:
        from holdfast.cli import actions as doing  # noqa: PLC0415 - see the module's docstring

        doing.listed(tenant, collection, as_json=as_json)


@actions_app.command()
def add(
    sort: Annotated[
        str, typer.Argument(metavar="TYPE", help="Type of action, like prompt, qa, webhook or keep:mindmap.")
    ],
    params: Annotated[str, typer.Option("--params", help="Parameters as JSON, or @FILE.")] = "{}",
    collection: Collection = "default",
    name: Annotated[str, typer.Option("--name", help="Display name.")] = "",
    existing: Annotated[
        Existing, typer.Option("--existing", help="Run on documents that are already ready, or skip them.")
    ] = Existing.RUN,
    yes: Yes = False,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Add an action, after showing how many documents it would run on now and the estimated cost."""
    from holdfast.cli import actions as doing  # noqa: PLC0415

    action = doing.ActionInput(sort, params, collection, name, existing is Existing.RUN, tenant)
    raise typer.Exit(doing.add(action, yes=yes, as_json=as_json))


@actions_app.command()
def remove(
    action_id: Annotated[int, typer.Argument(metavar="ID", help="Action ID from the list.")],
    collection: Collection = "default",
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Remove an action; its running work is cancelled, its results are kept."""
    from holdfast.cli import actions as doing  # noqa: PLC0415

    doing.remove(tenant, collection, action_id, as_json=as_json)
