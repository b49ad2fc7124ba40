"""The kind `look`: what a source holds is compared with what is known, and the difference is taken in.

A look lists the source, fetches what is new or changed, and requests each document together with the row of
its item, one by one; an item that fails is noted, and the others go on. Only then, and only if the list was
whole, is what is absent taken for gone. What is not written for an item is nothing: a look at a source where
nothing has changed reads rows and writes one. Taken up again after a crash, a look lists the source anew and
finds the items that it took in before unchanged.

The same kind removes a source, because its run supersedes the look that is under way.
"""

import contextlib
import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import NamedTuple, NoReturn

from holdfast.core import subjects
from holdfast.core.decide import SilenceLimits
from holdfast.core.errors import (
    FencedOutError,
    HoldfastError,
    NotFoundError,
    StoreUnavailableError,
    TimeLimitError,
    WorkError,
    WorkStopped,
)
from holdfast.core.records import Ask, Fenced, Landed, Outcome
from holdfast.core.text import is_plain, plain
from holdfast.documents.blobs import Blobs
from holdfast.documents.sources.source import (
    MOST_STATE,
    FetchedItem,
    Listing,
    Source,
    SourceError,
    SourceItem,
    SourceLimits,
    SourceSpec,
)
from holdfast.engine.job_specs import JobSpec
from holdfast.engine.kinds import Finish, Kind
from holdfast.engine.work import Work
from holdfast.kinds import edited_chunks, index, item_fetches
from holdfast.kinds.item_fetches import ItemFetch
from holdfast.kinds.log_phrases import many
from holdfast.store.base.database import Database, Tx
from holdfast.store.library import collections, document_members, source_items, sources
from holdfast.store.library.collections import Collection
from holdfast.store.library.document_requests import IndexRequest
from holdfast.store.library.documents import Document, DocumentDraft, DocumentSource
from holdfast.store.library.quotas import UNLIMITED, Quota
from holdfast.store.library.source_items import ItemChange, ItemDraft, ItemRecord, ItemState
from holdfast.store.library.sources import SourceRecord
from holdfast.store.protocol import tasks

NAME = sources.KIND
VERSION = 1
# Items whose rows are read, or whose states are written, together.
BATCH = 200
MOST_VERSION = 1000
# Items in a row that cannot be reached before the source itself counts as unreachable.
UNREACHABLE_IN_A_ROW = 20
SOFT_LIMIT, HARD_LIMIT = 12 * 3600.0, 12.5 * 3600.0
# After failures a look waits longer, up to this many seconds, or its usual interval if that is longer.
LONGEST_WAIT = 6 * 3600.0
# Looks that began together do not stay together.
JITTER = 0.1


class _Reported(NamedTuple):
    """How an error of a source is reported."""

    code: str


_REPORTED: Mapping[str, _Reported] = {
    "unreachable": _Reported(code="source_unreachable"),
    "access_denied": _Reported(code="source_access_denied"),
    "address_refused": _Reported(code="source_address_refused"),
    "bad_source": _Reported(code="bad_source"),
    "too_many_items": _Reported(code="too_many_items"),
}
OpenSource = Callable[[SourceSpec, SourceLimits], Source]
_STOPS = (WorkStopped, StoreUnavailableError, TimeLimitError)


@dataclass(slots=True)
class LookCounts:
    """What a look has counted, each item once."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    gone: int = 0
    failed: int = 0

    @property
    def seen(self) -> int:
        """How many items of the list were dealt with."""
        return self.new + self.changed + self.unchanged + self.failed

    def add(self, change: ItemChange) -> None:
        """One more item was dealt with."""
        setattr(self, change.value, getattr(self, change.value) + 1)

    def as_json(self) -> dict[str, int]:
        """The counts by name."""
        return {name: getattr(self, name) for name in LookCounts.__dataclass_fields__}


def delay_of(refresh_every: float | None, failures: int = 0, *, jitter: float | None = None) -> float:
    """Seconds until the next look: the interval, doubled with each failure in a row, and a little more."""
    every = refresh_every or 0.0
    wait = min(every * 2.0 ** min(failures, 20), max(every, LONGEST_WAIT))
    return wait * (1.0 + JITTER * (random.random() if jitter is None else jitter))  # noqa: S311


class Looks:
    """The work of looking at sources, in one process."""

    def __init__(
        self,
        db: Database,
        shelf: Blobs,
        defaults: index.Choices,
        limits: SourceLimits,
        open_source: OpenSource,
        quota: Quota = UNLIMITED,
    ) -> None:
        self._db = db
        self._shelf = shelf
        self._defaults = defaults
        self._limits = limits
        self._open = open_source
        self._quota = quota

    def kind(self) -> Kind:
        """The kind to register."""
        spec = JobSpec(title="Look at a source", parameters=None, stages=("items",))
        return Kind(NAME, self.run, version=VERSION, job=spec, soft_limit=SOFT_LIMIT, hard_limit=HARD_LIMIT)

    def run(self, work: Work) -> Finish:
        """The source was looked at, or is removed."""
        claim = work.claim
        source = sources.one(self._db, claim.tenant, sources.id_of(claim.subject))
        if source is None:
            raise WorkError("the source was removed in the meantime", code="unknown_source")
        if source.removal is not None:
            return _Removal(self._db, work, source).run()
        collection = collections.collection(self._db, claim.tenant, source.collection)
        if collection is None:
            raise WorkError("the collection was deleted in the meantime", code="unknown_collection")
        look = _Look(self._db, self._shelf, self._limits, self._quota, work, source)
        look.request = self._request(work, source, collection)
        look.open = self._open
        return look.run()

    def _request(self, work: Work, source: SourceRecord, collection: Collection) -> IndexRequest:
        """The request to index what comes from the source, by the options of the collection now."""
        chosen = index.choices(self._defaults, collection.options, stored=True)

        def ask(document: Document) -> Ask:
            own = chosen
            if document.options:
                own = index.choices(self._defaults, collection.options, document.options, stored=True)
            options = index.frozen(own, document.name)
            request = Ask(
                kind=index.NAME,
                subject=subjects.of_document(document.id),
                content=document.digest,
                options=options,
                tenant=work.claim.tenant,
                collection=collection.id,
                lane=work.claim.lane,
                priority=work.claim.priority,
                pipeline=edited_chunks.pipeline_of(options),
                actor=f"source:{source.id}",
            ).checked()
            return edited_chunks.with_edits(request, document.edits)

        return IndexRequest(ask, self._db.token, SilenceLimits())


@dataclass(slots=True)
class _Look:
    """One look at one source."""

    db: Database
    shelf: Blobs
    limits: SourceLimits
    quota: Quota
    work: Work
    source: SourceRecord
    request: IndexRequest = field(init=False)
    open: OpenSource = field(init=False)
    counts: LookCounts = field(default_factory=LookCounts)
    seen: set[bytes] = field(default_factory=set)
    unreachable: int = 0

    def run(self) -> Finish:
        try:
            spec = SourceSpec(self.source.type, {**self.source.options, **self.source.secrets})
            opened = self.open(spec, self.limits)
            listing = opened.list(self.source.state)
            if listing.unchanged:
                return self._finish(self._as_before(), self.source.state)
            for batch in _batches(listing.items):
                self._take_some(opened, batch)
        except SourceError as error:
            self._fail(error)
        self._find_gone(listing)
        return self._finish(self.counts, listing.state)

    def _as_before(self) -> LookCounts:
        """What is counted if the source says that nothing has changed."""
        before = {name: int(self.source.counts.get(name, 0)) for name in ("new", "changed", "unchanged")}
        return LookCounts(unchanged=sum(before.values()), gone=int(self.source.counts.get("gone", 0)))

    def _finish(self, counts: LookCounts, state: str) -> Finish:
        source, claim = self.source, self.work.claim
        # What failed is tried again: the source must not answer that nothing has changed.
        state = "" if counts.failed or len(state.encode()) > MOST_STATE else state
        delay = delay_of(source.refresh_every)

        def also(tx: Tx) -> None:
            sources.note_look(
                tx, claim, counts=counts.as_json(), state=state, revision=source.revision, delay=delay
            )

        self.work.note(
            f"{many(counts.new, 'new item')}, {counts.changed} changed, {counts.unchanged} unchanged,"
            f" {counts.gone} gone, {counts.failed} failed"
        )
        return Finish(counts.as_json(), also=also)

    def _fail(self, error: SourceError) -> NoReturn:
        """The failure is known with the source, and ends the run; what was taken in so far stays."""
        source, claim = self.source, self.work.claim
        delay = delay_of(source.refresh_every, source.failures + 1)
        code, message = source_code(error), plain(error.message)

        def body(tx: Tx) -> Outcome:
            held = tasks.hold(tx, claim, change=False)
            if isinstance(held, Fenced | Landed):
                return held
            sources.note_failure(
                tx, claim, counts=self.counts.as_json(), code=code, message=message, delay=delay
            )
            return Landed()

        _land(self.db.write("fail_look", body))
        raise WorkError(message, code=code) from error

    # What is there

    def _take_some(self, opened: Source, batch: list[SourceItem]) -> None:
        self.work.check()
        fresh = [item for item in batch if self._is_first(item)]
        known = source_items.by_ids(
            self.db,
            self.source.tenant,
            self.source.id,
            [item.external_id for item in fresh if item_fetches.fits(item.external_id)],
        )
        back: list[str] = []
        missing: list[tuple[SourceItem, ItemRecord | None]] = []
        for item in fresh:
            before = known.get(item.external_id)
            if before is not None and self._is_known(item, before):
                self.counts.add(self._counted(before))
                if before.state is not ItemState.CURRENT:
                    back.append(item.external_id)
            else:
                missing.append((item, before))
        fetches = item_fetches.in_order(opened, missing, partial(item_fetches.fetched, opened))
        with contextlib.closing(fetches):
            for each in fetches:
                self.work.check()
                self._try_to_take(each)
        _land(source_items.set_state(self.db, self.work.claim, back, ItemState.CURRENT))
        self._report()

    def _report(self) -> None:
        total = max(self.counts.seen, len(self.seen))
        self.work.progress(self.counts.seen, total, unit="items", stages={"items": (self.counts.seen, total)})

    def _is_first(self, item: SourceItem) -> bool:
        """True for the first item of the list with this external id."""
        mark = _mark(item.external_id)
        if mark in self.seen:
            return False
        self.seen.add(mark)
        return True

    @staticmethod
    def _is_known(item: SourceItem, before: ItemRecord) -> bool:
        """True if the content that the source lists is the one that the document has."""
        same = item.version != "" and item.version == before.version
        return same and before.document is not None and before.state is not ItemState.FAILED

    def _counted(self, before: ItemRecord) -> ItemChange:
        if before.look == self.work.claim.generation and before.change:
            return ItemChange(before.change)
        return ItemChange.UNCHANGED

    def _try_to_take(self, fetch: ItemFetch) -> None:
        """The item was taken in; if it cannot be, that is known, and what was there stays."""
        try:
            self._take(fetch)
            self.unreachable = 0
        except _STOPS:
            raise
        except NotFoundError as error:  # the source or its collection is gone: there is nobody to work for
            raise WorkError(error.message, code=error.code) from error
        except (SourceError, HoldfastError, OSError) as error:
            self._note_failed(fetch.item, error)
            is_unreachable = isinstance(error, SourceError) and error.code == "unreachable"
            self.unreachable = self.unreachable + 1 if is_unreachable else 0
            if self.unreachable >= UNREACHABLE_IN_A_ROW and isinstance(error, SourceError):
                raise SourceError(
                    "unreachable",
                    f"{UNREACHABLE_IN_A_ROW} items in a row could not be fetched; the last: {error.message}",
                ) from error

    def _take(self, fetch: ItemFetch) -> None:
        item, before = fetch.item, fetch.before
        fetched = fetch.content()
        if fetched is None and before is not None:
            self.counts.add(self._counted(before))
            if before.state is not ItemState.CURRENT:
                state = source_items.set_state(
                    self.db, self.work.claim, [item.external_id], ItemState.CURRENT
                )
                _land(state)
            return
        if fetched is None:
            raise WorkError("the source did not send its content", code="source_unreachable")
        with contextlib.closing(fetched.content):
            draft = self._draft(item, fetched)
        self.work.check()
        taken = source_items.take(self.db, self.work.claim, draft, self.request, self.quota)
        if isinstance(taken, Fenced):
            _land(taken)
            return
        actor = source_items.actor_of(self.source.id)
        document_members.end_removal(self.db, self.work.claim.tenant, taken.removed, actor)
        self.counts.add(taken.change)

    def _draft(self, item: SourceItem, fetched: FetchedItem) -> ItemDraft:
        """The bytes are on the shelf, and a document could be made of them."""
        name = plain(fetched.name or item.name)[:500]
        blob = self.shelf.put(fetched.content, self.limits.bytes)
        if not blob.size:
            self.shelf.delete(blob.digest)  # no document can have it, so that nobody misses it
            raise WorkError("it is empty", code="empty")
        title = (
            " ".join(plain(fetched.title or item.name or name).rsplit("/", 1)[-1].split())[:500] or "untitled"
        )
        origin = DocumentSource(blob.digest, blob.size, source_items.SOURCE, name=name, url=item.url)
        document = DocumentDraft(
            self.db.token()[:16],
            title,
            origin,
            None,
            self.source.metadata or None,
            self.source.labels,
        )
        version = (
            fetched.version if len(fetched.version) <= MOST_VERSION and is_plain(fetched.version) else ""
        )
        return ItemDraft(item.external_id, version, plain(item.name)[:500], item.url, document)

    def _note_failed(self, item: SourceItem, error: Exception) -> None:
        self.counts.failed += 1
        if isinstance(error, SourceError):
            code, message = source_code(error), error.message
        elif isinstance(error, HoldfastError):
            code, message = error.code, error.message
        else:
            code, message = source_code(SourceError("unreachable", "")), str(error)
        external_id = _cut(plain(item.external_id))
        self.seen.add(_mark(external_id))
        failed = ItemRecord(
            source=self.source.id,
            external_id=external_id,
            document=None,
            version="",
            name=plain(item.name)[:500],
            url=plain(item.url)[:2000] if item.url is not None else None,
            state=ItemState.FAILED,
            error_code=code,
            error_message=plain(message)[:1000],
            look=self.work.claim.generation,
            change="",
            changed_at=0.0,
        )
        _land(source_items.fail(self.db, self.work.claim, failed))

    # What is gone

    def _find_gone(self, listing: Listing) -> None:
        """What is known and was not listed is gone, if the list was whole.

        Nothing is deleted for a list without a single item: an empty folder may be a disk that is not there.
        """
        if not listing.complete:
            return
        prunes = self.source.prune and bool(self.seen)
        if self.source.prune and not self.seen:
            self.work.note("the source is empty; nothing is deleted for that")
        for page in _pages(self.db, self.source):
            self.work.check()
            absent = [item for item in page if _mark(item.external_id) not in self.seen]
            self.counts.gone += len(absent)
            if prunes:
                for item in absent:
                    _delete(self.db, self.work, item)
            else:
                known = [item.external_id for item in absent if item.state is not ItemState.GONE]
                _land(source_items.set_state(self.db, self.work.claim, known, ItemState.GONE))


@dataclass(slots=True)
class _Removal:
    """The items of a removed source go, with their documents if that was requested; its row goes last."""

    db: Database
    work: Work
    source: SourceRecord

    def run(self) -> Finish:
        removed = 0
        for page in _pages(self.db, self.source):
            self.work.check()
            if self.source.removal == sources.DELETE:
                for item in page:
                    _delete(self.db, self.work, item)
            else:
                ids = [item.external_id for item in page]
                _land(source_items.forget(self.db, self.work.claim, ids))
            removed += len(page)
            self.work.progress(removed, removed, unit="items", stages={"items": (removed, removed)})
        claim = self.work.claim
        return Finish({"removed": removed}, also=lambda tx: sources.end_removal(tx, claim))


def _delete(db: Database, work: Work, item: ItemRecord) -> None:
    """The item is gone, and its document if nothing else holds it."""
    work.check()
    gone = source_items.remove(db, work.claim, item, delete_document=True)
    if isinstance(gone, Fenced):
        _land(gone)
        return
    document_members.end_removal(db, work.claim.tenant, gone, source_items.actor_of(item.source))


def source_code(error: SourceError) -> str:
    """The code under which an error of a source is known."""
    return _REPORTED[error.code].code


def _pages(db: Database, source: SourceRecord) -> Iterator[list[ItemRecord]]:
    after = ""
    while page := source_items.page(db, source.tenant, source.id, after=after, limit=BATCH):
        yield page
        after = page[-1].external_id


def _batches(items: Iterable[SourceItem]) -> Iterator[list[SourceItem]]:
    listed = iter(items)
    while batch := list(islice(listed, BATCH)):
        yield batch


def _mark(external_id: str) -> bytes:
    """A short stand-in for an external id, of which a look remembers all."""
    return hashlib.blake2b(external_id.encode("utf-8", "surrogatepass"), digest_size=12).digest()


def _cut(external_id: str) -> str:
    """As much of a too long id as can be stored."""
    return external_id.encode()[: item_fetches.MOST_ID].decode(errors="ignore") or "(without an id)"


def _land(outcome: Fenced | Landed) -> None:
    if isinstance(outcome, Fenced):
        raise FencedOutError(f"the write was refused: {outcome.reason}")
