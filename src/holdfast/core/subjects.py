"""The subject of a document, and the kind of work that indexes it."""

INDEX = "index"
DOCUMENT = "document:"


def of_document(document_id: str) -> str:
    """The subject of a document's work."""
    return f"{DOCUMENT}{document_id}"


def document_id(subject: str) -> str:
    """The id of the document that a subject names."""
    return subject.removeprefix(DOCUMENT)
