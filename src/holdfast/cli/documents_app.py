"""The commands of collections, documents and blobs. Bodies import late, for a quick `holdfast --help`."""

from enum import StrEnum
from typing import Annotated

import typer

from holdfast.cli import edits_app
from holdfast.cli.options import FilterText, Json, Labels, MetadataText, Tenant, filter_of, metadata_of

collections_app = typer.Typer(help="List, show and delete collections.", no_args_is_help=True)
documents_app = typer.Typer(help="List, show and delete documents.", no_args_is_help=True)
blobs_app = typer.Typer(help="Show where document files are stored, and adopt a moved store.")

CollectionId = Annotated[str, typer.Argument(metavar="COLLECTION", help="Collection ID.")]
DocumentIds = Annotated[
    list[str], typer.Argument(metavar="DOCUMENT...", help="Document IDs, with or without `document:`.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


class DocumentState(StrEnum):
    """Indexing status of a document."""

    NOT_INDEXED = "not_indexed"
    QUEUED = "queued"
    INDEXING = "indexing"
    SUCCESS = "success"
    FAILED = "failed"


@collections_app.command("list")
def list_collections(tenant: Tenant = "default", as_json: Json = False) -> None:
    """List collections, with their document counts by status."""
    from holdfast.cli import documents  # noqa: PLC0415

    documents.list_collections(tenant, as_json=as_json)


@collections_app.command("show")
def show_collection(collection: CollectionId, tenant: Tenant = "default", as_json: Json = False) -> None:
    """Show a collection: title, options, document counts by status."""
    from holdfast.cli import documents  # noqa: PLC0415

    documents.show_collection(tenant, collection, as_json=as_json)


@collections_app.command("delete")
def delete_collection(
    collection: CollectionId, yes: Yes = False, tenant: Tenant = "default", as_json: Json = False
) -> None:
    """Delete a collection and all its documents, effective immediately."""
    from holdfast.cli import documents  # noqa: PLC0415

    documents.delete_collection(tenant, collection, yes=yes, as_json=as_json)


@documents_app.command("list")
def list_documents(
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="Only this collection. Default: all.")
    ] = None,
    state: Annotated[DocumentState | None, typer.Option("--state", help="Only in this state.")] = None,
    title: Annotated[str, typer.Option("--title", help="Only titles containing this text.")] = "",
    external_id: Annotated[
        str | None, typer.Option("--external-id", metavar="ID", help="Only documents with this external ID.")
    ] = None,
    passing: FilterText = None,
    most: Annotated[int, typer.Option("--most", "-k", min=1, help="Maximum number of documents.")] = 100,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """List documents: failed ones first, searchable ones last."""
    from holdfast.cli import documents  # noqa: PLC0415

    selection = documents.DocumentSelection(
        collection, state.value if state is not None else None, title, most, filter_of(passing), external_id
    )
    documents.list_documents(tenant, selection, as_json=as_json)


@documents_app.command("show")
def show_document(
    document: Annotated[str, typer.Argument(metavar="DOCUMENT", help="Document ID.")],
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Show a document: its source, status and cost."""
    from holdfast.cli import documents  # noqa: PLC0415

    documents.show_document(tenant, document, as_json=as_json)


@documents_app.command("pages")
def list_pages(
    document: Annotated[str, typer.Argument(metavar="DOCUMENT", help="Document ID.")],
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """List the pages of a document: how each was read, and how many words it has."""
    from holdfast.cli import documents  # noqa: PLC0415

    documents.list_pages(tenant, document, as_json=as_json)


@documents_app.command("describe")
def describe_document(
    document: Annotated[str, typer.Argument(metavar="DOCUMENT", help="Document ID.")],
    metadata: MetadataText = None,
    label: Labels = None,
    clear_labels: Annotated[bool, typer.Option("--no-labels", help="Remove all labels.")] = False,
    external_id: Annotated[
        str | None, typer.Option("--external-id", metavar="ID", help="Your own id of the document.")
    ] = None,
    tenant: Tenant = "default",
    as_json: Json = False,
) -> None:
    """Replace metadata, labels or external ID of a document; nothing is indexed again or paid."""
    from holdfast.cli import documents  # noqa: PLC0415

    labels = [] if clear_labels else label
    described = documents.DescribedDocument(metadata_of(metadata), labels, external_id)
    documents.describe_document(tenant, document, described, as_json=as_json)


@documents_app.command("delete")
def delete_documents(
    document: DocumentIds, yes: Yes = False, tenant: Tenant = "default", as_json: Json = False
) -> None:
    """Delete documents, effective immediately; work on them is cancelled."""
    from holdfast.cli import documents  # noqa: PLC0415

    documents.delete_documents(tenant, document, yes=yes, as_json=as_json)


@blobs_app.callback(invoke_without_command=True)
def show_blobs(context: typer.Context, as_json: Json = False) -> None:
    """Show where document files are stored, and whether the store belongs to this database."""
    if context.invoked_subcommand is None:
        from holdfast.cli import blobs  # noqa: PLC0415

        blobs.show(as_json=as_json)


@blobs_app.command("adopt")
def adopt_blobs(
    force: Annotated[
        bool, typer.Option("--force", help="Even if files of some documents are missing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Adopt the configured store for this database after its files were moved or restored."""
    from holdfast.cli import blobs  # noqa: PLC0415

    blobs.adopt(force=force, as_json=as_json)


def register(app: typer.Typer) -> None:
    """The program has these commands."""
    app.add_typer(collections_app, name="collections")
    edits_app.register(documents_app)
    app.add_typer(documents_app, name="documents")
    app.add_typer(blobs_app, name="blobs")
