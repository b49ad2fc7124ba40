"""The commands of actions and their options. Bodies import late, so that `holdfast --help` is quick."""

from enum import StrEnum
from typing import Annotated

import typer

from holdfast.cli.options import Json, Tenant, Yes

actions_app = typer.Typer(
    help="What a collection does with each document that becomes ready; `add` and `remove` change that.",
    invoke_without_command=True,
)


class ActionSort(StrEnum):
    """The sorts of actions."""

    EXTRACT = "extract"
    ANALYSE = "analyse"
    PROMPT = "prompt"
    AGENT = "agent"
    WEBHOOK = "webhook"


class Existing(StrEnum):
    """What to do with documents that are ready already."""

    RUN = "run"
    SKIP = "skip"


Collection = Annotated[
    str, typer.Option("--collection", "-c", help="The collection whose actions these are.")
]


@actions_app.callback()
def actions(
    context: typer.Context,
    collection: Collection = "default",
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """List the actions of a collection, with how far their follow-ups are."""
    if context.invoked_subcommand is None:
        from holdfast.cli import actions as doing  # noqa: PLC0415 - see the module's docstring

        doing.listed(tenant, collection, as_json=as_json)


@actions_app.command()
def add(
    sort: Annotated[ActionSort, typer.Argument(help="What to do with each document.")],
    params: Annotated[str, typer.Option("--params", help="Its parameters as JSON, or @FILE.")] = "{}",
    collection: Collection = "default",
    name: Annotated[str, typer.Option("--name", help="What people call it.")] = "",
    existing: Annotated[
        Existing, typer.Option("--existing", help="Run it on documents that are ready already, or skip them.")
    ] = Existing.RUN,
    yes: Yes = False,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Add an action, after saying on how many documents it would run now and what that would cost."""
    from holdfast.cli import actions as doing  # noqa: PLC0415

    wanted = doing.NewAction(sort.value, params, collection, name, existing is Existing.RUN, tenant)
    raise typer.Exit(doing.add(wanted, yes=yes, as_json=as_json))


@actions_app.command()
def remove(
    action_id: Annotated[int, typer.Argument(metavar="ID", help="The action, as the list names it.")],
    collection: Collection = "default",
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Remove an action; its follow-ups that have not ended are cancelled, what they did stays."""
    from holdfast.cli import actions as doing  # noqa: PLC0415

    doing.remove(tenant, collection, action_id, as_json=as_json)
