"""What is uploaded, what became of it, and what can be told of an upload before anything is stored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from holdfast.core import document_metadata
from holdfast.core.errors import BadRequestError, GenerationMovedError
from holdfast.core.records import RequestResult
from holdfast.core.states import Disposition
from holdfast.documents import fetch
from holdfast.documents.blobs import Blob, Blobs
from holdfast.store.library.documents import Document, DocumentDraft, DocumentSource


@dataclass(frozen=True, slots=True)
class Upload:
    """Content to be added: its bytes as they are, or a stream of them."""

    content: bytes | BinaryIO
    name: str = ""
    title: str = ""
    source: str = "upload"
    options: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None
    labels: Sequence[str] | None = None
    password: str | None = field(default=None, repr=False)
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class UploadResult:
    """The outcome of an upload."""

    document: Document
    answer: RequestResult

    @property
    def disposition(self) -> Disposition:
        """What became of the request."""
        return self.answer.disposition


def described(
    metadata: Mapping[str, Any] | None, labels: Sequence[str] | None
) -> tuple[Mapping[str, Any] | None, Sequence[str] | None]:
    """Metadata and labels of an upload, checked before anything is kept; None for what it does not say."""
    return (
        None if metadata is None else document_metadata.checked(metadata),
        None if labels is None else document_metadata.checked_labels(labels),
    )


def check_external_ids(drafts: Sequence[DocumentDraft], expect_generation: int | None) -> None:
    """Return if each external id is there once, and a generation is expected only of documents with one."""
    external_ids = [draft.external_id for draft in drafts if draft.external_id is not None]
    if len(set(external_ids)) < len(external_ids):
        raise BadRequestError("an external_id is there twice in one request", code="bad_external_id")
    if expect_generation is not None and len(external_ids) < len(drafts):
        message = "a new document is at no generation; send If-Match only with an external_id"
        raise BadRequestError(message, code="bad_if_match")


def check_generation(answer: RequestResult) -> None:
    """Return unless the request was refused because the document is at another generation."""
    if answer.reason == "generation_mismatch":
        raise GenerationMovedError(f"the document is at generation {answer.generation}; reload it")


def fetched(
    shelf: Blobs,
    put: Callable[[BinaryIO, str], Blob],
    url: str,
    limits: fetch.FetchLimits,
    known: fetch.Validators | None = None,
) -> DocumentSource | None:
    """What is at `url`, stored by `put`; None when the server says that it is as it was."""
    with shelf.draft() as file:
        answer = fetch.fetch(url, file, known=known or fetch.Validators(), limits=limits)
        if isinstance(answer, fetch.NotModified):
            return None
        file.seek(0)
        blob = put(file, f"there is nothing at {url}")
    return DocumentSource(
        blob.digest,
        blob.size,
        "url",
        name=answer.name,
        url=url,
        etag=answer.validators.etag,
        last_modified=answer.validators.last_modified,
    )
