"""Options that many commands share."""

from typing import Annotated

import typer

Tenant = Annotated[str, typer.Option("--tenant", help="Whose it is.")]
AnyTenant = Annotated[str | None, typer.Option("--tenant", help="Only what belongs to this tenant.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether the estimated price is fine.")]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost", min=0, metavar="DOLLARS", help="What one run (of one document) may spend at most."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document, for scripts.")]
