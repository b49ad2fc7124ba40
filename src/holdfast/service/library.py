"""Collections and documents: add, change, refresh, ask again, cancel, delete.

Whatever makes a document also asks for it to be indexed, in one transaction, so that nothing is taken in and
then forgotten. Bytes are kept before the row that names them: a crash in between leaves bytes that nobody
names, which the sweep removes.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from holdfast.core import subjects
from holdfast.core.errors import BadRequestError, NotFoundError
from holdfast.core.records import Ask, Landed, RequestResult
from holdfast.core.states import Disposition, Lane, Status
from holdfast.documents import fetch
from holdfast.documents.blobs import Blob, Blobs
from holdfast.engine.engine import Engine
from holdfast.kinds import index
from holdfast.service import conflicting_options, missing_content, names
from holdfast.service.bulk_updates import Rounds
from holdfast.store.base.database import Tx
from holdfast.store.follow_ups import actions
from holdfast.store.library import bulk_updates, collections, document_moves, documents, quotas
from holdfast.store.library.bulk_updates import Round
from holdfast.store.library.collections import Collection
from holdfast.store.library.documents import Document, DocumentDraft, DocumentSource, Taken
from holdfast.store.library.quotas import UNLIMITED, Quota, Usage
from holdfast.store.protocol import requests

# Documents per transaction when many are added at once: short enough for SQLite's one writer.
BATCH = 25
# What is left of a deleted collection and is seen to before it is made again.
MADE_AGAIN = 1000


@dataclass(frozen=True, slots=True)
class Wish:
    """How urgent a request is, who makes it, and what each run may spend at most, in nano-dollars."""

    tenant: str = "default"
    actor: str = ""
    lane: str = Lane.BULK
    priority: int = 5
    max_cost: int | None = None

    def check(self, found: int) -> None:
        """Return if a document at this generation may be changed: a wish without a condition always may."""


@dataclass(frozen=True, slots=True)
class Upload:
    """Content to be added: its bytes as they are, or a stream of them."""

    content: bytes | BinaryIO
    name: str = ""
    title: str = ""
    source: str = "upload"
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Taking:
    """What became of something that was handed in."""

    document: Document
    answer: RequestResult

    @property
    def disposition(self) -> Disposition:
        """What became of the request."""
        return self.answer.disposition


@dataclass(frozen=True, slots=True)
class Changed:
    """A collection as changed; how many of its documents were asked for again, how many are still to be."""

    collection: Collection
    asked: int = 0
    to_follow: int = 0


@dataclass(frozen=True, slots=True)
class Emptied:
    """How many documents went with their collection, and of how many the work has still to be ended."""

    deleted: int
    to_follow: int


class Library:
    """The documents of an installation, as one process sees them."""

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
        self._quota = quota
        self._engine = engine
        self._db = engine.db
        self._shelf = shelf
        self._defaults = defaults
        self._fetching = fetching or fetch.FetchLimits()
        self._most_bytes = most_bytes
        self._usual: tuple[Collection, index.Choices] | None = None
        self.rounds = Rounds(self._db, self._ask_again, self._end_for)

    # Collections

    def make_collection(
        self, wish: Wish, collection_id: str, *, title: str = "", options: Mapping[str, Any] | None = None
    ) -> Collection:
        """The collection, made if it was not there; what was left of a deleted one is gone first.

        BadRequestError `collection_emptying` while that is more than can be seen to here.
        """
        names.check_id(collection_id)
        index.choices(self._defaults, options)
        if collections.collection(self._db, wish.tenant, collection_id) is None:
            self._end_all(wish, collection_id)
        name = names.title(title or collection_id)
        while not collections.make_collection(
            self._db, wish.tenant, collection_id, title=name, options=options or {}
        ):
            self._make_room(wish, collection_id)
        return self.collection(wish.tenant, collection_id)

    def _make_room(self, wish: Wish, collection_id: str) -> None:
        """Something of the deleted collection is gone; all of it, or BadRequestError."""
        left = bulk_updates.remains(self._db, wish.tenant, collection_id, after="", limit=MADE_AGAIN + 1)
        for each in left[:MADE_AGAIN]:
            self._end(wish, each)
        if len(left) > MADE_AGAIN:
            message = f"collection {collection_id!r} is still being deleted; ask again in a moment"
            raise BadRequestError(message, code="collection_emptying")

    def collection(self, tenant: str, collection_id: str) -> Collection:
        """The collection; NotFoundError when there is none."""
        found = collections.collection(self._db, tenant, collection_id)
        if found is None:
            raise collections.no_collection(collection_id, collections.some_ids(self._db, tenant))
        return found

    @property
    def providers(self) -> set[str]:
        """Who may embed what the collections hold, by identity."""
        return {self._defaults.provider, *(each.identity for each in self._defaults.offers.values())}

    def choices(self, collection: Collection) -> index.Choices:
        """How documents of the collection are indexed, unless they say otherwise; for whoever looks."""
        return index.choices(self._defaults, collection.options, stored=True)

    def collections(self, tenant: str) -> list[Collection]:
        """All collections of a tenant."""
        return collections.all_collections(self._db, tenant)

    def change_collection(
        self,
        wish: Wish,
        collection_id: str,
        *,
        title: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Changed:
        """The collection as changed; its documents are asked for again where the options want that.

        Some are asked for here and the rest by the sweep, all at the lowest priority; their old generation
        answers until the new one is there.
        """
        found = self.collection(wish.tenant, collection_id)
        chosen = found.options if options is None else {**found.options, **options}
        chosen = {name: value for name, value in chosen.items() if value is not None}
        index.choices(self._defaults, chosen)
        begun = collections.set_collection(
            self._db,
            wish.tenant,
            collection_id,
            title=found.title if title is None else names.title(title),
            options=chosen,
            actor=wish.actor,
            ask_again=options is not None,
            max_cost=wish.max_cost,
            check=lambda own: conflicting_options.check(self._defaults, chosen, own),
        )
        changed = self.collection(wish.tenant, collection_id)
        return Changed(changed, *(self.rounds.begin(begun) if begun is not None else (0, 0)))

    def delete_collection(self, wish: Wish, collection_id: str) -> Emptied:
        """The collection and all its documents are gone for every reader.

        What is at work for them ends here for some of them, and by the sweep for the rest.
        """
        gone, begun = collections.remove_collection(self._db, wish.tenant, collection_id, actor=wish.actor)
        self._end_all(wish, collection_id)
        return Emptied(gone, self.rounds.begin(begun)[1])

    def _ask_again(self, which: Round, document_id: str) -> RequestResult:
        found = self.document(which.tenant, document_id)
        if not found.has_content:
            return missing_content.unchanged(found)
        wish = Wish(which.tenant, which.actor, Lane.BULK, 9, which.max_cost)
        return self.ask(wish, found).answer

    def _end_for(self, which: Round, document_id: str) -> None:
        self._end(Wish(which.tenant, which.actor), document_id)

    def _end(self, wish: Wish, document_id: str) -> None:
        """Nothing of a document whose row is gone is visible or running any more."""
        self._engine.delete(wish.tenant, subjects.of_document(document_id), actor=wish.actor)

    def _end_all(self, wish: Wish, collection_id: str) -> None:
        """The collection has no actions any more, and no jobs of its own."""
        actions.remove_all(self._db, wish.tenant, collection_id, actor=wish.actor)
        self._engine.delete(wish.tenant, f"collection:{collection_id}", actor=wish.actor)

    # Documents

    def add(self, wish: Wish, collection_id: str, uploads: Sequence[Upload]) -> list[Taking]:
        """What became of each upload, in order: a new document, or the one that has the same bytes."""
        return self.add_to(wish, self.collection(wish.tenant, collection_id), uploads)

    def add_to(self, wish: Wish, collection: Collection, uploads: Sequence[Upload]) -> list[Taking]:
        """As `add`, to a collection that was just looked up."""
        for upload in uploads:
            if upload.options:  # before anything is on the shelf: what is refused leaves nothing there
                index.choices(self._defaults, collection.options, upload.options)
        return self._add_all(wish, collection, [self.keep(upload) for upload in uploads])

    def usage(self, tenant: str) -> Usage:
        """What the tenant holds and may hold."""
        return quotas.usage(self._db, tenant, self._quota)

    def is_current(self, collection: Collection, found: Document) -> bool:
        """True when the document is indexed as it would be indexed now: asking would change nothing."""
        return found.status is Status.SUCCESS and found.visible and self.is_as_asked(collection, found)

    def is_as_asked(self, collection: Collection, found: Document) -> bool:
        """True when the document was last asked for as it would be now: same content, options and reader."""
        ask = self._engine.checked(self._ask(Wish(found.tenant), collection, found, force=False))
        return found.fingerprint == ask.fingerprint

    def add_kept(self, wish: Wish, collection_id: str, drafts: Sequence[DocumentDraft]) -> list[Taking]:
        """As `add`, for content that is on the shelf already."""
        return self._add_all(wish, self.collection(wish.tenant, collection_id), drafts)

    def _add_all(self, wish: Wish, collection: Collection, drafts: Sequence[DocumentDraft]) -> list[Taking]:
        taken: list[Taking] = []
        for start in range(0, len(drafts), BATCH):
            taken += self._add_some(wish, collection, drafts[start : start + BATCH])
        return taken

    def keep(self, upload: Upload) -> DocumentDraft:
        """The content is on the shelf, and a document could be made of it."""
        name = names.plain(upload.name, "name")
        if len(name.encode()) > names.MOST_NAME:
            raise BadRequestError(
                f"name {name!r:.80} is longer than {names.MOST_NAME} bytes", code="bad_name"
            )
        title = names.title(upload.title or upload.name.rsplit("/", 1)[-1] or "untitled")
        blob = self._put(upload.content, f"{name!r:.80} is empty" if name else "it is empty")
        source = DocumentSource(blob.digest, blob.size, upload.source, name=name)
        return DocumentDraft(secrets.token_hex(8), title, source, upload.options)

    def _put(self, content: bytes | BinaryIO, if_empty: str) -> Blob:
        blob = self._shelf.put(content, self._most_bytes)
        if not blob.size:
            self._shelf.delete(blob.digest)  # no document can have it, so that nobody misses it
            raise BadRequestError(if_empty, code="empty")
        return blob

    def _add_some(self, wish: Wish, collection: Collection, drafts: Sequence[DocumentDraft]) -> list[Taking]:
        return self._added(wish, collection, drafts, self._request(wish, collection))

    def _added(
        self, wish: Wish, collection: Collection, drafts: Sequence[DocumentDraft], request: documents.Request
    ) -> list[Taking]:
        with quotas.noting(self._db, wish.tenant, wish.actor):
            added = documents.add(self._db, wish.tenant, collection.id, drafts, request, self._quota)
        if created := sum(one.answer.created for one in added.values()):
            self._engine.wake({wish.lane: created})
        return [Taking(added[draft.id].document, added[draft.id].answer) for draft in drafts]

    def _request(self, wish: Wish, collection: Collection, *, force: bool = False) -> documents.Request:
        """Ask, inside a transaction, for a document to be indexed by the options that hold for it now."""
        tokens: dict[str, str] = {}  # one per document, the same at every try of the transaction

        def request(tx: Tx, found: Document) -> RequestResult:
            if not found.has_content:
                return missing_content.unchanged(found)
            run_id = tokens.setdefault(found.id, self._engine.host.token())
            ask = self._engine.checked(self._ask(wish, collection, found, force=force))
            return requests.answer(tx, ask, run_id=run_id, patience=self._engine.parts.patience)

        return request

    def _ask(self, wish: Wish, collection: Collection, found: Document, *, force: bool) -> Ask:
        chosen = self._chosen(collection, found)
        return Ask(
            kind=index.NAME,
            subject=subjects.of_document(found.id),
            content=found.digest,
            options=index.frozen(chosen, found.name),
            tenant=wish.tenant,
            collection=collection.id,
            lane=wish.lane,
            priority=wish.priority,
            actor=wish.actor,
            force=force,
            max_cost=wish.max_cost,
        )

    def _chosen(self, collection: Collection, found: Document) -> index.Choices:
        """How the document is indexed; most of a collection have no options of their own, and are alike."""
        if found.options:
            return index.choices(self._defaults, collection.options, found.options)
        usual = self._usual
        if usual is None or usual[0] is not collection:
            self._usual = usual = (collection, index.choices(self._defaults, collection.options))
        return usual[1]

    def document(self, tenant: str, document_id: str) -> Document:
        """The document; NotFoundError when there is none."""
        found = documents.document(self._db, tenant, document_id)
        if found is None:
            raise NotFoundError(f"there is no document {document_id!r}", code="unknown_document")
        return found

    def walk(self, tenant: str, collection_id: str, step: int = 200) -> Iterator[Document]:
        """Every document of a collection, read a page at a time."""
        after = ""
        while found := documents.page(self._db, tenant, collection_id, after=after, limit=step):
            yield from found
            after = found[-1].id

    def put_content(self, wish: Wish, document_id: str, upload: Upload) -> Taking:
        """The document has new content and is asked for; its old generation answers until that is indexed."""
        found = self.document(wish.tenant, document_id)
        draft = self.keep(upload)
        return self._set(wish, found, draft.source)

    def _set(self, wish: Wish, found: Document, source: DocumentSource) -> Taking:
        collection = self.collection(wish.tenant, found.collection)
        request = self._request(wish, collection)
        with quotas.noting(self._db, wish.tenant, wish.actor):
            answer = documents.set_source(self._db, found, source, request, self._quota)
        return self._settled(wish, found.id, answer)

    def _settled(self, wish: Wish, document_id: str, answer: RequestResult | Taken) -> Taking:
        if isinstance(answer, Taken):
            message = f"document {answer.document_id} of the collection has the same content already"
            raise BadRequestError(message, code="same_content")
        if answer.created:
            self._engine.wake({wish.lane: 1})
        return Taking(self.document(wish.tenant, document_id), answer)

    def change_document(
        self,
        wish: Wish,
        document_id: str,
        *,
        title: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Taking:
        """The document has this title and these options over its own, one that is None taken away.

        Changed options make a new generation; the old one answers until that is indexed.
        """
        found = self.document(wish.tenant, document_id)
        collection = self.collection(wish.tenant, found.collection)
        renamed = None if title is None else names.title(title)
        request = self._request(wish, collection)
        answer = documents.change(self._db, found, title=renamed, options=options, request=request)
        return self._settled(wish, document_id, answer)

    def add_url(self, wish: Wish, collection_id: str, url: str, *, title: str = "") -> Taking:
        """What is at `url` now, as a document."""
        collection = self.collection(wish.tenant, collection_id)
        source = self._first_content(url)
        draft = DocumentDraft(secrets.token_hex(8), names.title(title or source.name or url), source)
        return self._add_some(wish, collection, [draft])[0]

    def refresh(self, wish: Wish, document_id: str) -> Taking:
        """What is at the document's address now is what it wants; nothing happens if that has not changed."""
        found = self.document(wish.tenant, document_id)
        if found.url is None:
            raise BadRequestError("the document did not come from an address", code="no_url")
        source = self._fetched(found.url, fetch.Validators(found.etag, found.last_modified))
        if source is None:
            return self.index(wish, document_id)
        return self._set(wish, found, source)

    def _first_content(self, url: str) -> DocumentSource:
        source = self._fetched(url, fetch.Validators())
        if source is None:
            raise BadRequestError("the address gave no content", code="url_failed")
        return source

    def _fetched(self, url: str, known: fetch.Validators) -> DocumentSource | None:
        """What is at `url`, kept; None when the server says that it is as it was."""
        with self._shelf.draft() as file:
            answer = fetch.fetch(url, file, known=known, limits=self._fetching)
            if isinstance(answer, fetch.NotModified):
                return None
            file.seek(0)
            blob = self._put(file, f"there is nothing at {url}")
        return DocumentSource(
            blob.digest,
            blob.size,
            "url",
            name=answer.name,
            url=url,
            etag=answer.validators.etag,
            last_modified=answer.validators.last_modified,
        )

    def copy(self, wish: Wish, document_id: str, collection_id: str) -> Taking:
        """A document of the collection that has the same content, title and options; the old one stays.

        It is indexed like any other, and what is in the ledger costs nothing.
        """
        found = self.document(wish.tenant, document_id)
        wish.check(found.generation)
        if not found.has_content:
            raise missing_content.refused(found)
        collection = self.collection(wish.tenant, collection_id)
        plain = Wish(wish.tenant, wish.actor, wish.lane, wish.priority, wish.max_cost)
        asked = self._request(plain, collection)

        def request(tx: Tx, made: Document) -> RequestResult:
            answer = asked(tx, made)
            document_moves.hold(tx, wish.tenant, document_id)
            return answer

        draft = DocumentDraft(secrets.token_hex(8), found.title, documents.source_of(found), found.options)
        return self._added(plain, collection, [draft], request)[0]

    def move(self, wish: Wish, document_id: str, collection_id: str) -> Taking:
        """The document is in the collection; where that indexes otherwise, a new generation is asked for."""
        collection = self.collection(wish.tenant, collection_id)
        asked = self._request(wish, collection)

        def request(tx: Tx, moved: Document) -> RequestResult:
            ask = self._engine.checked(self._ask(wish, collection, moved, force=False))
            if ask.fingerprint != moved.fingerprint:
                return asked(tx, moved)
            head = moved.head_id, moved.run_id, moved.generation, moved.status
            return RequestResult(Disposition.UNCHANGED, "moved", *head)

        answer = document_moves.move(
            self._db,
            (wish.tenant, document_id),
            collection_id,
            actor=wish.actor,
            check=wish.check,
            request=request,
        )
        self._engine.wake({Lane.FOLLOW_UP: 1})  # the actions of the collection may have something to do
        return self._settled(wish, document_id, answer)

    def index(self, wish: Wish, document_id: str, *, force: bool = False) -> Taking:
        """The document is asked for once more, by the options that hold now."""
        return self.ask(wish, self.document(wish.tenant, document_id), force=force)

    def ask(self, wish: Wish, found: Document, *, force: bool = False) -> Taking:
        """As `index`, for a document that was just looked up. One without content is fetched from its URL."""
        if not found.has_content:
            if found.url is None:
                raise missing_content.refused(found)
            return self._set(wish, found, self._first_content(found.url))
        collection = self.collection(wish.tenant, found.collection)
        answer = documents.ask(self._db, found, self._request(wish, collection, force=force))
        if answer.disposition is Disposition.DUPLICATE:
            return Taking(documents.asked_for(found, answer), answer)
        return self._settled(wish, found.id, answer)

    def cancel(self, wish: Wish, document_id: str) -> bool:
        """The live run of the document has ended; False when there was none."""
        found = self.document(wish.tenant, document_id)
        head_id = found.head_id
        return head_id is not None and isinstance(self._engine.cancel(head_id, actor=wish.actor), Landed)

    def delete(self, wish: Wish, document_id: str) -> None:
        """Nothing of the document is visible or running any more.

        Its work ends before its row goes: after an interruption it can be deleted again. And once more after,
        for whoever asked for it in between.
        """
        self.document(wish.tenant, document_id)
        subject = subjects.of_document(document_id)
        self._engine.delete(wish.tenant, subject, actor=wish.actor)
        documents.remove(self._db, wish.tenant, document_id)
        self._engine.delete(wish.tenant, subject, actor=wish.actor)
