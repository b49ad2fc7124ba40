"""The command of mind maps and its options. Bodies import late, so that `holdfast --help` is quick."""

from enum import StrEnum
from typing import Annotated

import typer

from holdfast.cli.options import Tenant


class MapFormat(StrEnum):
    """How a mind map is printed."""

    TEXT = "text"
    MARKDOWN = "markdown"
    SVG = "svg"
    JSON = "json"


def mindmap(
    name: Annotated[str, typer.Argument(metavar="COLLECTION|DOCUMENT", help="A collection or a document.")],
    form: Annotated[MapFormat, typer.Option("--format", help="How to print it.")] = MapFormat.TEXT,
    tenant: Tenant = "default",
) -> None:
    """Show the mind map of a collection or of a document."""
    from holdfast.cli import mindmap_command  # noqa: PLC0415

    mindmap_command.mindmap(name, form=form.value, tenant=tenant)


def register(app: typer.Typer) -> None:
    """`holdfast mindmap` is a command of the app."""
    app.command()(mindmap)
