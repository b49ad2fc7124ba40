"""Options that many commands share."""

from typing import Annotated

import typer

Tenant = Annotated[str, typer.Option("--tenant", help="Tenant.")]
AnyTenant = Annotated[str | None, typer.Option("--tenant", help="Only this tenant.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask to confirm the estimated cost.")]
MaxCost = Annotated[
    float | None,
    typer.Option("--max-cost", min=0, metavar="DOLLARS", help="Cost limit per run (per document), in US$."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
