"""Documents that were imported and have no content here: nothing can be indexed until they have some."""

from holdfast.core.errors import NoContentError
from holdfast.store.library.documents import Document


def way_out(document: Document) -> str:
    """What the user can do about it."""
    if document.url is not None:
        return f"Index it to fetch its content from {document.url}."
    return f"Upload its content with PUT /documents/{document.id}/content to index it."


def refused(document: Document) -> NoContentError:
    """The error for a request for such a document."""
    return NoContentError(f"{document.title} was imported and has no content here. {way_out(document)}")


def sentence(document: Document) -> str:
    """Why such a document is as it is."""
    said = "published elsewhere" if document.visible else "not indexed"
    return f"Imported as {said}. It has no content here yet, so search cannot find it."
