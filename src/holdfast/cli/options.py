"""Options that many commands share."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.core import document_metadata, filters
from holdfast.core.errors import BadRequestError
from holdfast.core.filters import Filter


class SearchMode(StrEnum):
    """Search modes."""

    HYBRID = "hybrid"
    KEYWORD = "keyword"
    VECTOR = "vector"
    LOCAL = "local"
    GLOBAL = "global"


ModeOption = Annotated[
    SearchMode,
    typer.Option(
        "--mode",
        help="Match by words and meaning (hybrid), or by one of them; by the entities (local) or the reports "
        "(global) of the knowledge graph.",
    ),
]
Tenant = Annotated[str, typer.Option("--tenant", help="Tenant.")]
AnyTenant = Annotated[str | None, typer.Option("--tenant", help="Only this tenant.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask to confirm the estimated cost.")]
MaxCost = Annotated[
    float | None,
    typer.Option("--max-cost", min=0, metavar="DOLLARS", help="Cost limit per run (per document), in US$."),
]
MetadataText = Annotated[
    str | None,
    typer.Option("--metadata", metavar="JSON", help='Metadata, like \'{"author": "Ann", "year": 2026}\'.'),
]
Labels = Annotated[
    list[str] | None, typer.Option("--label", help="Access label, for the filters of keys. Repeatable.")
]
PasswordFile = Annotated[
    Path | None,
    typer.Option("--password-file", help="A file with the password of protected PDFs; - is standard input."),
]
FilterText = Annotated[
    str | None,
    typer.Option(
        "--filter", metavar="JSON", help='Only matching documents, like \'{"eq": {"author": "Ann"}}\'.'
    ),
]
RerankFlag = Annotated[
    bool | None,
    typer.Option("--rerank/--no-rerank", help="Let the provider of the settings rank the hits; may cost."),
]
RerankerName = Annotated[
    str | None, typer.Option("--reranker", metavar="NAME", help="Rank the hits with this provider.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def metadata_of(text: str | None) -> dict[str, Any] | None:
    """The metadata of an option; None for none; BadRequestError for what cannot be stored."""
    if text is None:
        return None
    try:
        return document_metadata.checked(json.loads(text))
    except (ValueError, RecursionError):
        raise BadRequestError("the metadata is not JSON", code="bad_metadata") from None


def filter_of(text: str | None) -> Filter | None:
    """The filter of an option; None for none; BadRequestError for one that cannot be used."""
    return None if text is None else filters.read(text)


def json_of(text: str) -> Any:
    """The JSON of a filter; BadRequestError for one that cannot be used."""
    filters.read(text)
    return filters.loads(text)


def password_of(file: Path | None) -> str | None:
    """The first line of a file with a password; None for no file; BadRequestError for an empty one."""
    if file is None:
        return None
    try:
        text = sys.stdin.readline() if str(file) == "-" else file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequestError(f"the password file {file} cannot be read", code="bad_password") from error
    line = text.split("\n", 1)[0].rstrip("\r")
    if not line:
        raise BadRequestError(f"the password file {file} is empty", code="bad_password")
    return line
