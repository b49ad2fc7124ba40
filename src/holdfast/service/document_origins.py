"""Where a document comes from, in words: a source, an archive or a message, an upload, a URL."""

from collections.abc import Sequence

from holdfast.store.library import document_members
from holdfast.store.library.document_members import LinkedDocument
from holdfast.store.library.documents import Document
from holdfast.store.library.item_origins import Origin
from holdfast.store.library.source_items import SOURCE, ItemState


def sentences(document: Document, origins: Sequence[Origin], parents: Sequence[LinkedDocument]) -> list[str]:
    """Each place that the document comes from; one at least."""
    named = [_of_source(each) for each in origins]
    named += [f"It is inside {each.title} (document:{each.id})." for each in parents]
    return named or [_of_upload(document)]


def _of_source(origin: Origin) -> str:
    is_there = origin.source_id is not None
    source = f"source {origin.source_name} ({origin.source_id})" if is_there else "a removed source"
    gone = ", where it is no longer" if origin.state is ItemState.GONE else ""
    return f"It came from {source}: {origin.external_id}{gone}"


def _of_upload(document: Document) -> str:
    match document.source:
        case "url":
            return f"It was fetched from {document.url}"
        case "text":
            return "It was sent as text."
        case document_members.SOURCE:
            return "It was inside a document that is gone."
        case _ if document.source == SOURCE:
            return "It came from a source that has been removed."
    return f"It was uploaded as {document.name}" if document.name else "It was uploaded."
