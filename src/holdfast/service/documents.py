"""Documents: add, change, refresh, re-index, cancel, delete.

Every change to a document's content also requests its indexing, in one transaction, so that nothing is
accepted and then forgotten. The steps are always the same: store the bytes, build the request, call the store
once. Bytes are stored before the row that refers to them: a crash in between leaves unused bytes, which the
sweep removes.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, BinaryIO

from holdfast.core import document_metadata, filters, subjects
from holdfast.core.errors import BadRequestError, NotFoundError
from holdfast.core.filters import Filter
from holdfast.core.records import Ask, Landed, RequestResult, expect
from holdfast.core.states import Disposition, Lane, Status
from holdfast.core.text import plain
from holdfast.documents import fetch
from holdfast.documents.blobs import Blob, Blobs
from holdfast.engine.engine import Engine
from holdfast.kinds import edited_chunks, index
from holdfast.service import key_restrictions, missing_content, names
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import (
    Upload,
    UploadResult,
    check_external_ids,
    check_generation,
    described,
    fetched,
)
from holdfast.store.library import (
    collections,
    document_additions,
    document_members,
    document_requests,
    document_values,
    documents,
    quotas,
)
from holdfast.store.library.bulk_updates import BulkUpdate
from holdfast.store.library.collections import Collection
from holdfast.store.library.document_additions import AddedDocument
from holdfast.store.library.document_members import Family, LinkedDocument
from holdfast.store.library.document_requests import DocumentAccess, IndexRequest, Taken
from holdfast.store.library.documents import Document, DocumentDraft, DocumentSource
from holdfast.store.library.quotas import UNLIMITED, Quota

# Documents per transaction when many are added at once: short enough for SQLite's one writer.
BATCH = 25


class Documents:
    """The documents of an installation, as one process sees them.

    Where a method takes `expect_generation`, GenerationMovedError says that the document is at another one;
    that is decided under the lock of the head, and nothing was changed.
    """

    def __init__(
        self,
        engine: Engine,
        shelf: Blobs,
        defaults: index.Choices,
        *,
        fetching: fetch.FetchLimits | None = None,
        most_bytes: int | None = None,
        quota: Quota = UNLIMITED,
    ) -> None:
        self.quota = quota
        self._engine = engine
        self._db = engine.db
        self._shelf = shelf
        self._defaults = defaults
        self._fetching = fetching or fetch.FetchLimits()
        self._most_bytes = most_bytes
        self._usual: tuple[Collection, index.Choices] | None = None

    # Looking

    def get(self, tenant: str, document_id: str, *, only: Filter | None = None) -> Document:
        """The document; NotFoundError when there is none, or none that passes the filter."""
        document = documents.document(self._db, tenant, document_id)
        if document is None or (only is not None and not filters.matches(only, document)):
            raise NotFoundError(f"there is no document {document_id!r}", code="unknown_document")
        return document

    def by_external_id(self, wish: RequestContext, collection_id: str, external_id: str) -> Document:
        """The document of the collection with this external id; NotFoundError as for `get`."""
        known = documents.by_external_ids(self._db, wish.tenant, collection_id, [plain(external_id)])
        document = known.get(external_id)
        if document is None or (wish.only is not None and not filters.matches(wish.only, document)):
            message = f"collection {collection_id!r} has no document with external_id {external_id!r}"
            raise NotFoundError(message, code="unknown_document")
        return document

    def find(self, tenant: str, document_id: str) -> Document | None:
        """The document; None when there is none."""
        return documents.document(self._db, tenant, document_id)

    def shows(self, tenant: str, subject: str, *, only: Filter | None) -> bool:
        """True if a caller limited to this filter may see work on the subject: a document that passes."""
        if only is None:
            return True
        if not subject.startswith(subjects.DOCUMENT):
            return False
        document = self.find(tenant, subject.removeprefix(subjects.DOCUMENT).partition("/")[0])
        return document is not None and filters.matches(only, document)

    def around(self, document: Document, *, only: Filter | None = None) -> Family:
        """The documents that contain this one, and those inside it, as far as they pass the filter."""
        name = document.tenant, document.id

        def seen(linked: Sequence[LinkedDocument]) -> list[LinkedDocument]:
            shown = (each for each in linked if self.shows(name[0], subjects.of_document(each.id), only=only))
            return list(shown)

        inside = document_members.children(self._db, *name)
        return Family(seen(document_members.parents(self._db, *name)), seen(inside))

    def walk(self, tenant: str, collection_id: str, step: int = 200) -> Iterator[Document]:
        """Every document of a collection, read a page at a time."""
        after = ""
        while page := documents.page(self._db, tenant, collection_id, after=after, limit=step):
            yield from page
            after = page[-1].id

    def is_current(self, collection: Collection, document: Document) -> bool:
        """True when the document is indexed as it would be indexed now: asking would change nothing."""
        return (
            document.status is Status.SUCCESS and document.visible and self.is_as_asked(collection, document)
        )

    def is_as_asked(self, collection: Collection, document: Document) -> bool:
        """True when the document was last asked for as it would be now: same content, options and reader."""
        return (
            document.fingerprint
            == self._ask(RequestContext(document.tenant), collection, document).fingerprint
        )

    # Adding

    def add(
        self,
        wish: RequestContext,
        collection_id: str,
        uploads: Sequence[Upload],
        *,
        expect_generation: int | None = None,
    ) -> list[UploadResult]:
        """What became of each upload, in order: a new document, or the one that has the same bytes.

        With an external id, the document that has this id is as the upload says from now on; only such a
        document can be at an expected generation.
        """
        collection = collections.existing(self._db, wish.tenant, collection_id)
        return self.add_to(wish, collection, uploads, expect_generation=expect_generation)

    def add_to(
        self,
        wish: RequestContext,
        collection: Collection,
        uploads: Sequence[Upload],
        *,
        expect_generation: int | None = None,
    ) -> list[UploadResult]:
        """As `add`, to a collection that was just looked up."""
        for upload in uploads:
            if upload.options:  # before anything is on the shelf: what is refused leaves nothing there
                index.choices(self._defaults, collection.options, upload.options)
        drafts = [self.keep(upload) for upload in uploads]
        return self.add_kept(wish, collection, drafts, expect_generation=expect_generation)

    def add_kept(
        self,
        wish: RequestContext,
        collection: Collection,
        drafts: Sequence[DocumentDraft],
        *,
        copied: str | None = None,
        expect_generation: int | None = None,
    ) -> list[UploadResult]:
        """As `add_to`, for content that is on the shelf already, or that of the document that is copied."""
        for draft in drafts:
            key_restrictions.check_draft(wish, draft)
        check_external_ids(drafts, expect_generation)
        added: dict[str, AddedDocument] = {}
        request = self.request(wish, collection, expect_generation=expect_generation)
        where = wish.tenant, collection.id
        for start in range(0, len(drafts), BATCH):
            batch = drafts[start : start + BATCH]
            with key_restrictions.without_totals(wish), quotas.noting(self._db, wish.tenant, wish.actor):
                new = document_additions.add(self._db, *where, batch, request, self.quota, copied=copied)
            self._engine.wake({wish.lane: sum(one.answer.created for one in new.values())})
            for each in new.values():
                check_generation(each.answer)
            added |= new
        return [UploadResult(added[draft.id].document, added[draft.id].answer) for draft in drafts]

    def add_url(
        self,
        wish: RequestContext,
        collection_id: str,
        url: str,
        *,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
        labels: Sequence[str] | None = None,
        password: str | None = None,
        external_id: str | None = None,
        expect_generation: int | None = None,
    ) -> UploadResult:
        """What is at `url` now, as a document."""
        collection = collections.existing(self._db, wish.tenant, collection_id)
        about = *described(metadata, labels), names.password(password)
        external_id = document_metadata.checked_external_id(external_id)
        source = self._first_content(url)
        draft = DocumentDraft(
            secrets.token_hex(8),
            names.title(title or source.name or url),
            source,
            None,
            *about,
            title_given=bool(title.strip()),
            external_id=external_id,
        )
        return self.add_kept(wish, collection, [draft], expect_generation=expect_generation)[0]

    def keep(self, upload: Upload) -> DocumentDraft:
        """The content is on the shelf, and a document could be made of it."""
        name = names.plain(upload.name, "name")
        if len(name.encode()) > names.MOST_NAME:
            raise BadRequestError(
                f"name {name!r:.80} is longer than {names.MOST_NAME} bytes", code="bad_name"
            )
        title = names.title(upload.title or upload.name.rsplit("/", 1)[-1] or "untitled")
        about = *described(upload.metadata, upload.labels), names.password(upload.password)
        external_id = document_metadata.checked_external_id(upload.external_id)
        blob = self._put(upload.content, f"{name!r:.80} is empty" if name else "it is empty")
        source = DocumentSource(blob.digest, blob.size, upload.source, name=name)
        return DocumentDraft(
            secrets.token_hex(8),
            title,
            source,
            upload.options,
            *about,
            title_given=bool(upload.title.strip()),
            external_id=external_id,
        )

    def _put(self, content: bytes | BinaryIO, if_empty: str) -> Blob:
        blob = self._shelf.put(content, self._most_bytes)
        if not blob.size:
            self._shelf.delete(blob.digest)  # no document can have it, so that nobody misses it
            raise BadRequestError(if_empty, code="empty")
        return blob

    # Requests, built before a transaction begins

    def request(
        self,
        wish: RequestContext,
        collection: Collection,
        *,
        force: bool = False,
        expect_generation: int | None = None,
    ) -> IndexRequest:
        """The request to index documents of the collection by the options that hold for each of them now."""

        def ask(document: Document) -> Ask:
            return self._ask(wish, collection, document, force=force, expect_generation=expect_generation)

        access = DocumentAccess(wish.only)
        return IndexRequest(ask, self._engine.host.token, self._engine.parts.patience, access)

    def _ask(
        self,
        wish: RequestContext,
        collection: Collection,
        document: Document,
        *,
        force: bool = False,
        expect_generation: int | None = None,
    ) -> Ask:
        ask = self._engine.checked(
            Ask(
                kind=index.NAME,
                subject=subjects.of_document(document.id),
                content=document.digest,
                options=index.frozen(self._chosen(collection, document), document.name),
                tenant=wish.tenant,
                collection=collection.id,
                lane=wish.lane,
                priority=wish.priority,
                actor=wish.actor,
                force=force,
                expect_generation=expect_generation,
                max_cost=wish.max_cost,
            )
        )
        return edited_chunks.with_edits(ask, document.edits)

    def _chosen(self, collection: Collection, document: Document) -> index.Choices:
        """How the document is indexed; most of a collection have no options of their own, and are alike."""
        if document.options:
            return index.choices(self._defaults, collection.options, document.options)
        usual = self._usual
        if usual is None or usual[0] is not collection:
            self._usual = usual = (collection, index.choices(self._defaults, collection.options))
        return usual[1]

    # Changing

    def put_content(
        self, wish: RequestContext, document_id: str, upload: Upload, *, expect_generation: int | None = None
    ) -> UploadResult:
        """The document has new content and is asked for; its old generation answers until that is indexed."""
        document = self.get(wish.tenant, document_id, only=wish.only)
        draft = self.keep(upload)
        return self._set(wish, document, draft.source, expect_generation, draft.password)

    def _set(
        self,
        wish: RequestContext,
        document: Document,
        source: DocumentSource,
        expect_generation: int | None,
        password: str | None = None,
    ) -> UploadResult:
        collection = collections.existing(self._db, wish.tenant, document.collection)
        request = self.request(wish, collection, expect_generation=expect_generation)
        with key_restrictions.without_totals(wish), quotas.noting(self._db, wish.tenant, wish.actor):
            answer = document_requests.set_source(
                self._db, document, source, request, self.quota, password=password
            )
        return self.settled(wish, document.id, answer)

    def change(
        self,
        wish: RequestContext,
        document_id: str,
        *,
        title: str | None = None,
        options: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        labels: Sequence[str] | None = None,
        password: str | None = None,
        external_id: str | None = None,
        expect_generation: int | None = None,
    ) -> UploadResult:
        """The document has this title and these options over its own, one that is None taken away.

        Changed options make a new generation; the old one answers until that is indexed. Metadata and labels
        replace its own at once, and nothing is indexed again for them. With a password it is asked for again,
        unless it is indexed already.
        """
        document = self.get(wish.tenant, document_id, only=wish.only)
        collection = collections.existing(self._db, wish.tenant, document.collection)
        answer = document_requests.change(
            self._db,
            document,
            title=None if title is None else names.title(title),
            options=options,
            metadata=None if metadata is None else document_metadata.checked(metadata),
            labels=None if labels is None else document_metadata.checked_labels(labels),
            password=names.password(password),
            external_id=document_metadata.checked_external_id(external_id),
            actor=wish.actor,
            request=self.request(wish, collection, expect_generation=expect_generation),
            expect_generation=expect_generation,
        )
        return self.settled(wish, document_id, answer)

    def refresh(
        self, wish: RequestContext, document_id: str, *, expect_generation: int | None = None
    ) -> UploadResult:
        """What is at the document's URL now is what it wants; nothing happens if that has not changed."""
        document = self.get(wish.tenant, document_id, only=wish.only)
        if document.url is None:
            raise BadRequestError("the document was not added from a URL", code="no_url")
        source = fetched(
            self._shelf,
            self._put,
            document.url,
            self._fetching,
            fetch.Validators(document.etag, document.last_modified),
        )
        if source is None:
            return self.index(wish, document_id, expect_generation=expect_generation)
        return self._set(wish, document, replace(source, source=document.source), expect_generation)

    def _first_content(self, url: str) -> DocumentSource:
        source = fetched(self._shelf, self._put, url, self._fetching)
        if source is None:
            raise BadRequestError("the URL returned no content", code="url_failed")
        return source

    def index(
        self,
        wish: RequestContext,
        document_id: str,
        *,
        force: bool = False,
        expect_generation: int | None = None,
    ) -> UploadResult:
        """The document is asked for once more, by the options that hold now."""
        document = self.get(wish.tenant, document_id, only=wish.only)
        return self.ask(wish, document, force=force, expect_generation=expect_generation)

    def ask(
        self,
        wish: RequestContext,
        document: Document,
        *,
        force: bool = False,
        expect_generation: int | None = None,
    ) -> UploadResult:
        """As `index`, for a document that was just looked up. One without content is fetched from its URL."""
        if not document.has_content:
            if document.url is None:
                raise missing_content.refused(document)
            return self._set(wish, document, self._first_content(document.url), expect_generation)
        collection = collections.existing(self._db, wish.tenant, document.collection)
        request = self.request(wish, collection, force=force, expect_generation=expect_generation)
        answer = document_requests.ask(self._db, document, request)
        if answer.disposition is Disposition.DUPLICATE:
            return UploadResult(document_requests.asked_for(document, answer), answer)
        return self.settled(wish, document.id, answer)

    def settled(self, wish: RequestContext, document_id: str, answer: RequestResult | Taken) -> UploadResult:
        """What became of a document that was changed; an error where the store has refused to change it."""
        if isinstance(answer, Taken):
            other = f"document {answer.document_id}" if wish.only is None else "a document"
            message = f"{other} of this collection already has the same {answer.same}"
            code = "same_content" if answer.same == "content" else "same_external_id"
            raise BadRequestError(message, code=code)
        check_generation(answer)
        self._engine.wake({wish.lane: int(answer.created)})
        return UploadResult(self.get(wish.tenant, document_id, only=wish.only), answer)

    # Ending

    def cancel(self, wish: RequestContext, document_id: str) -> bool:
        """The live run of the document has ended; False when there was none."""
        head_id = self.get(wish.tenant, document_id, only=wish.only).head_id
        return head_id is not None and isinstance(self._engine.cancel(head_id, actor=wish.actor), Landed)

    def end_run(
        self, wish: RequestContext, document: Document, *, expect_generation: int | None = None
    ) -> bool:
        """The run that was seen has ended; False when it had already, or a later one has taken its place."""
        expect(document.generation, expect_generation)
        if document.head_id is None or document.run_id is None:
            return False
        outcome = self._engine.cancel(document.head_id, run_id=document.run_id, actor=wish.actor)
        return isinstance(outcome, Landed)

    def delete(self, wish: RequestContext, document_id: str) -> None:
        """Nothing of the document, nor of those that only it contained, is visible or running any more.

        What is inside and does not pass the filter of the caller's key stays, as a document of its own.

        Its work ends before its row goes: after an interruption it can be deleted again. And once more
        afterwards, in case work was requested in between.
        """
        self.get(wish.tenant, document_id, only=wish.only)
        self.end(wish, document_id)
        access = DocumentAccess(wish.only)
        name = wish.tenant, document_id
        for member in document_members.remove(self._db, *name, access=access, actor=wish.actor):
            if member != document_id:
                self.end_deleted(wish, member)
        self.end_deleted(wish, document_id)

    def end(self, wish: RequestContext, document_id: str) -> None:
        """Nothing of a document whose row is gone, or is about to be, is visible or running any more."""
        self._engine.delete(wish.tenant, subjects.of_document(document_id), actor=wish.actor)

    def end_deleted(self, wish: RequestContext, document_id: str) -> None:
        """As `end`, for a document whose row is gone: nothing that describes it is left either."""
        self.end(wish, document_id)
        document_values.forget(self._db, wish.tenant, document_id)

    # What a change of the whole collection does with each document

    def ask_again(self, which: BulkUpdate, document_id: str) -> RequestResult:
        """What became of the request for a document whose collection has other options."""
        document = self.get(which.tenant, document_id)
        if not document.has_content:
            return document_requests.unchanged(document, "no_content")
        return self.ask(
            RequestContext(which.tenant, which.actor, Lane.BULK, 9, which.max_cost), document
        ).answer

    def end_for(self, which: BulkUpdate, document_id: str) -> None:
        """The work of a document whose collection was deleted has ended."""
        self.end_deleted(RequestContext(which.tenant, which.actor), document_id)
