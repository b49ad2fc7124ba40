"""The `mcp` command and its options."""

from typing import Annotated

import typer

from holdfast.cli.options import Tenant


def register(app: typer.Typer) -> None:
    """The command is one of the program's own."""
    app.command()(mcp)


def mcp(
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="A server to use, with the key HOLDFAST_API_KEY."),
    ] = None,
    tenant: Tenant = "default",
) -> None:
    """Serve the collections to an MCP client over standard input and output.

    By default those of this installation; with --url those of a server elsewhere.
    """
    from holdfast.cli import mcp_command  # noqa: PLC0415 - so that `holdfast --help` is quick

    mcp_command.serve(url, tenant)
