"""The commands of collections, documents and blobs. Bodies import late, for a quick `holdfast --help`."""

from enum import StrEnum
from typing import Annotated

import typer

from holdfast.cli.options import Json, Tenant

collections_app = typer.Typer(help="List, show and delete collections.", no_args_is_help=True)
documents_app = typer.Typer(help="List, show and delete documents.", no_args_is_help=True)
blobs_app = typer.Typer(help="Show where the bytes of documents lie, and adopt a moved store.")

CollectionId = Annotated[str, typer.Argument(metavar="COLLECTION", help="The collection, by its id.")]
DocumentIds = Annotated[
    list[str], typer.Argument(metavar="DOCUMENT...", help="Documents, by id, with or without `document:`.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


class DocumentState(StrEnum):
    """How the indexing of a document stands."""

    NOT_INDEXED = "not_indexed"
    QUEUED = "queued"
    INDEXING = "indexing"
    SUCCESS = "success"
    FAILED = "failed"


@collections_app.command("list")
def list_collections(tenant: Tenant = "default", as_json: Json = False) -> None:
    """List the collections, with how many documents of each state they hold."""
    from holdfast.cli import documents  # noqa: PLC0415

    documents.list_collections(tenant, as_json=as_json)


@collections_app.command("show")
def show_collection(collection: CollectionId, tenant: Tenant = "default", as_json: Json = False) -> None:
    """Show a collection: title, options, documents by state."""
    from holdfast.cli import documents  # noqa: PLC0415

    documents.show_collection(tenant, collection, as_json=as_json)


@collections_app.command("delete")
def delete_collection(
    collection: CollectionId, yes: Yes = False, tenant: Tenant = "default", as_json: Json = False
) -> None:
    """Delete a collection and all its documents; nobody sees any of them from then on."""
    from holdfast.cli import documents  # noqa: PLC0415

    documents.delete_collection(tenant, collection, yes=yes, as_json=as_json)


@documents_app.command("list")
def list_documents(
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="Only of this collection. Default: of all.")
    ] = None,
    state: Annotated[DocumentState | None, typer.Option("--state", help="Only in this state.")] = None,
    title: Annotated[str, typer.Option("--title", help="Only with this in the title.")] = "",
    most: Annotated[int, typer.Option("--most", "-k", min=1, help="How many at most.")] = 100,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """List documents with their titles: what failed at the top, what is searchable last."""
    from holdfast.cli import documents  # noqa: PLC0415

    wanted = documents.Filter(collection, state.value if state is not None else None, title, most)
    documents.list_documents(tenant, wanted, as_json=as_json)


@documents_app.command("show")
def show_document(
    document: Annotated[str, typer.Argument(metavar="DOCUMENT", help="The document, by its id.")],
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Show a document: where it came from, how it stands, what it cost."""
    from holdfast.cli import documents  # noqa: PLC0415

    documents.show_document(tenant, document, as_json=as_json)


@documents_app.command("delete")
def delete_documents(
    document: DocumentIds, yes: Yes = False, tenant: Tenant = "default", as_json: Json = False
) -> None:
    """Delete documents; nobody sees them from then on, and work on them ends."""
    from holdfast.cli import documents  # noqa: PLC0415

    documents.delete_documents(tenant, document, yes=yes, as_json=as_json)


@blobs_app.callback(invoke_without_command=True)
def show_blobs(context: typer.Context, as_json: Json = False) -> None:
    """Show where the bytes of documents lie, and whether they belong to this database."""
    if context.invoked_subcommand is None:
        from holdfast.cli import blobs  # noqa: PLC0415

        blobs.show(as_json=as_json)


@blobs_app.command("adopt")
def adopt_blobs(
    force: Annotated[
        bool, typer.Option("--force", help="Also if the bytes of some documents are missing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say that the bytes of this database's documents lie in the store of the settings, after a move."""
    from holdfast.cli import blobs  # noqa: PLC0415

    blobs.adopt(force=force, as_json=as_json)


def register(app: typer.Typer) -> None:
    """The program has these commands."""
    app.add_typer(collections_app, name="collections")
    app.add_typer(documents_app, name="documents")
    app.add_typer(blobs_app, name="blobs")
