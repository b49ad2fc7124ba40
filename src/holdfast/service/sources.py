"""Sources of a collection: add, change, look at now, remove, and what each holds.

Nothing here reaches a source: a look is a run that a worker carries out. A source that could never be looked
at is refused when it is added, as far as its options tell.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core import document_metadata, isolation
from holdfast.core.errors import BadRequestError, ConflictError
from holdfast.core.records import RequestResult
from holdfast.core.states import Lane
from holdfast.documents.sources import source_types
from holdfast.documents.sources.source import (
    SECRET_OPTIONS,
    SourceError,
    SourceLimits,
    SourceSpec,
)
from holdfast.engine.engine import Engine
from holdfast.kinds import look
from holdfast.service import names
from holdfast.service.requests import RequestContext
from holdfast.store.library import collections, item_origins, source_items, sources
from holdfast.store.library.item_origins import Origin
from holdfast.store.library.source_items import ItemRecord, ItemState
from holdfast.store.library.sources import LookRequest, SourceDraft, SourceRecord

SHORTEST_INTERVAL = 60.0
LONGEST_INTERVAL = 366 * 86_400.0
MOST_OPTIONS = 1024 * 1024
# Looks that one turn of the sweep requests.
PER_TURN = 200
UNSET: Any = object()
# The options that say where a source is.
PLACES = ("url", "endpoint", "bucket", "repository", "region")
STARS = "********"


class Sources:
    """The sources of an installation, as one process sees them."""

    def __init__(self, engine: Engine, limits: SourceLimits) -> None:
        self._engine = engine
        self._db = engine.db
        self._limits = limits

    # Looking

    def all(self, tenant: str, collection_id: str) -> list[SourceRecord]:
        """The sources of a collection, the oldest first; NotFoundError if there is no such collection."""
        collections.existing(self._db, tenant, collection_id)
        listed = sources.of_collection(self._db, tenant, collection_id)
        return sorted(listed, key=lambda each: (each.created_at, each.id))

    def get(self, tenant: str, collection_id: str, source_id: str) -> SourceRecord:
        """The source; NotFoundError if there is none, or if it is being removed."""
        source = sources.one(self._db, tenant, source_id)
        if source is None or source.collection != collection_id or source.removal is not None:
            raise sources.no_source(source_id)
        return source

    def items(
        self, source: SourceRecord, *, state: str | None = None, after: str = "", limit: int = 100
    ) -> list[ItemRecord]:
        """The items of a source after the external id `after`, all or those in one state."""
        if state is not None and state not in list(ItemState):
            states = ", ".join(ItemState)
            raise BadRequestError(f"an item is in one of the states {states}", code="bad_filter")
        return source_items.page(self._db, source.tenant, source.id, state=state, after=after, limit=limit)

    def of_document(self, tenant: str, document_id: str) -> list[Origin]:
        """The items of sources that the document was made of."""
        return item_origins.of_document(self._db, tenant, document_id)

    # Changing

    def add(
        self,
        wish: RequestContext,
        collection_id: str,
        source_type: str,
        options: Mapping[str, Any],
        *,
        name: str = "",
        refresh_every: float | None = None,
        prune: bool = False,
        metadata: Mapping[str, Any] | None = None,
        labels: Sequence[str] = (),
    ) -> tuple[SourceRecord, RequestResult]:
        """The collection has the source, and its first look is requested."""
        collections.existing(self._db, wish.tenant, collection_id)
        shown, hidden = self._checked(source_type, options)
        draft = SourceDraft(
            secrets.token_hex(8),
            source_type,
            names.title(name or _usual_name(source_type, options)),
            shown,
            hidden,
            document_metadata.checked(metadata) if metadata else None,
            document_metadata.checked_labels(labels),
            _interval(refresh_every),
            prune,
        )
        answer = sources.add(self._db, wish.tenant, collection_id, draft, self._look(wish))
        self._engine.wake({wish.lane: int(answer.created)})
        return self.get(wish.tenant, collection_id, draft.id), answer

    def change(
        self,
        wish: RequestContext,
        source: SourceRecord,
        *,
        name: str | None = None,
        options: Mapping[str, Any] | None = None,
        refresh_every: float | None = UNSET,
        prune: bool | None = None,
        metadata: Mapping[str, Any] | None = None,
        labels: Sequence[str] | None = None,
    ) -> SourceRecord:
        """The source is changed from its next look on.

        Options are replaced as a whole; a secret that is not among them stays as it is, unless the source is
        at another place now: nobody sends a secret that he cannot read to a server of his own.
        """
        shown, hidden = dict(source.options), dict(source.secrets)
        if options is not None:
            same_place = all(options.get(each) == source.options.get(each) for each in PLACES)
            secret = source.secrets if same_place else {}
            shown, hidden = self._checked(source.type, {**secret, **_without_stars(options)})
        draft = SourceDraft(
            source.id,
            source.type,
            source.name if name is None else names.title(name),
            shown,
            hidden,
            source.metadata if metadata is None else document_metadata.checked(metadata),
            source.labels if labels is None else document_metadata.checked_labels(labels),
            source.refresh_every if refresh_every is UNSET else _interval(refresh_every),
            source.prune if prune is None else prune,
        )
        where = source.tenant, source.collection
        if not sources.change(self._db, *where, draft, revision=source.revision, actor=wish.actor):
            raise ConflictError("the source was changed by someone else; look at it again", code="conflict")
        return self.get(source.tenant, source.collection, source.id)

    def refresh(self, wish: RequestContext, source: SourceRecord) -> RequestResult:
        """A look is requested; while one is under way that is a duplicate."""
        answer = sources.refresh(self._db, source, self._look(wish))
        self._engine.wake({wish.lane: int(answer.created)})
        return answer

    def remove(self, wish: RequestContext, source: SourceRecord, *, delete_documents: bool) -> RequestResult:
        """The source is gone, and the look that was under way has ended.

        With `delete_documents` its documents go in the background; those that a person uploaded as well, or
        that another source holds, stay.
        """
        removal = sources.DELETE if delete_documents else sources.KEEP
        answer = sources.begin_removal(self._db, source, removal, self._look(wish))
        self._engine.wake({wish.lane: int(answer.created)})
        return answer

    def remove_all(self, wish: RequestContext, collection_id: str) -> None:
        """A collection that was deleted has no sources; its documents go with itself."""
        for source in sources.of_collection(self._db, wish.tenant, collection_id):
            self.remove(wish, source, delete_documents=False)

    def _look(self, wish: RequestContext) -> LookRequest:
        kind = self._engine.registry.get(look.NAME)
        return LookRequest(
            f"{look.NAME}@{look.VERSION}" if kind is None else kind.pipeline,
            self._engine.host.token(),
            self._engine.parts.patience,
            wish.actor,
            wish.lane,
            wish.priority,
        )

    def _checked(self, source_type: str, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """The options, those that are secret apart; BadRequestError if no source could be opened by them."""
        hidden: dict[str, str] = {}
        shown = {str(name): value for name, value in options.items() if name not in SECRET_OPTIONS}
        for name in SECRET_OPTIONS & set(options):
            if not isinstance(options[name], str):
                raise BadRequestError(f"the option {name} should be a text", code="bad_source")
            hidden[name] = options[name]
        if len(repr(shown)) > MOST_OPTIONS:
            raise BadRequestError("the options of the source are larger than 1 MB", code="bad_source")
        try:
            source_types.open_source(SourceSpec(source_type, dict(options)), self._limits)
        except SourceError as error:
            raise BadRequestError(error.message, code=look.source_code(error)) from error
        return shown, hidden

    # What the sweep does

    def start_due(self) -> int:
        """One turn of the sweep: looks that are due are requested; how many."""
        return isolation.for_each(
            sources.due(self._db, PER_TURN), self._start, name=lambda each: f"source {each.id}"
        )

    def _start(self, source: SourceRecord) -> int:
        delay = sources.REMOVAL_RETRY
        if source.removal is None:
            if collections.collection(self._db, source.tenant, source.collection) is None:
                # Its collection was deleted, and that was interrupted.
                self.remove(
                    RequestContext(source.tenant, source.actor, Lane.BULK), source, delete_documents=False
                )
                return 1
            delay = look.delay_of(source.refresh_every, source.failures)
        wish = RequestContext(source.tenant, f"source:{source.id}", Lane.BULK)
        started = sources.start_due(self._db, source, self._look(wish), delay=delay)
        self._engine.wake({wish.lane: int(started)})
        return int(started)


def _interval(seconds: float | None) -> float | None:
    if seconds is None or SHORTEST_INTERVAL <= seconds <= LONGEST_INTERVAL:
        return seconds
    message = f"refresh_every must be at least {SHORTEST_INTERVAL:g} seconds and at most a year, or null"
    raise BadRequestError(message, code="bad_interval")


def _usual_name(source_type: str, options: Mapping[str, Any]) -> str:
    """What a source is called if nobody names it: where it is."""
    for name in ("url", "path", "bucket", "repository"):
        if isinstance(value := options.get(name), str) and value:
            return value
    if isinstance(urls := options.get("urls"), list | tuple) and urls:
        return f"{len(urls)} URLs" if len(urls) > 1 else str(urls[0])
    return source_type


def with_secret_names(source: SourceRecord) -> dict[str, Any]:
    """The options as they are shown: of a secret one it is shown that it is set, and nothing else."""
    return {**source.options, **dict.fromkeys(sorted(source.secrets), STARS)}


def _without_stars(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options without secrets that are sent back as they were shown."""
    return {name: value for name, value in options.items() if not (name in SECRET_OPTIONS and value == STARS)}


__all__ = ["ItemRecord", "ItemState", "Origin", "SourceRecord", "Sources", "with_secret_names"]
