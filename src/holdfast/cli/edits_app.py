"""The commands of chunks and edits. Bodies import late, for a quick `holdfast --help`."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import Json, MaxCost, Tenant

DocumentId = Annotated[str, typer.Argument(metavar="DOCUMENT", help="Document ID.")]
ChunkId = Annotated[
    str, typer.Argument(metavar="CHUNK", help="As `documents chunks` or `documents edits` names it.")
]


def list_chunks(
    document: DocumentId,
    most: Annotated[int, typer.Option("--most", "-k", min=1, help="Maximum number of chunks.")] = 100,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """List the chunks of a document: IDs, pages, texts, and which are edited or off."""
    from holdfast.cli import edits  # noqa: PLC0415

    edits.list_chunks(tenant, document, most=most, as_json=as_json)


def list_edits(document: DocumentId, tenant: Tenant = "default", as_json: Json = False) -> None:
    """List the edited chunks of a document, and whether each edit is applied."""
    from holdfast.cli import edits  # noqa: PLC0415

    edits.list_edits(tenant, document, as_json=as_json)


def edit_chunk(
    document: DocumentId,
    chunk: ChunkId,
    text: Annotated[str | None, typer.Option("--text", help="The new text.")] = None,
    text_file: Annotated[
        Path | None, typer.Option("--text-file", help="A file with the new text; - is standard input.")
    ] = None,
    on: Annotated[bool | None, typer.Option("--on/--off", help="Turn the chunk on or off.")] = None,
    original: Annotated[bool, typer.Option("--original", help="Restore the original, turned on.")] = False,
    max_cost: MaxCost = None,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Edit a chunk, turn it off or on, or restore it, in a new version of the document."""
    from holdfast.cli import edits  # noqa: PLC0415
    from holdfast.service.records import ChunkChange  # noqa: PLC0415

    new = edits.text_of(text, text_file)
    chunk_change = (
        ChunkChange(True, None, has_text=True) if original else ChunkChange(on, new, new is not None)
    )
    raise typer.Exit(
        edits.edit_chunk(tenant, document, chunk, chunk_change, max_cost=max_cost, as_json=as_json)
    )


def register(documents_app: typer.Typer) -> None:
    """They are commands of documents."""
    documents_app.command("chunks")(list_chunks)
    documents_app.command("edits")(list_edits)
    documents_app.command("edit-chunk")(edit_chunk)
