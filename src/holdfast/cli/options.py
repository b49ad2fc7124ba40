"""Options that many commands share."""

from typing import Annotated

import typer

Tenant = Annotated[str, typer.Option("--tenant", help="Whose it is.")]
AnyTenant = Annotated[str | None, typer.Option("--tenant", help="Only what belongs to this tenant.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document, for scripts.")]
