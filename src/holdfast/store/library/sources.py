"""Sources: places outside that documents of a collection come from, and the looks at them.

A look is a run of the kind `look` on `collection:<id>#source:<id>`: generation, lease and fence are those of
any other work, so that two looks at one source never run at the same time, and one that was frozen and wakes
up writes nothing. The subject is below that of the collection: deleting the collection ends the looks too.

Removing a source is a run of the same head. It supersedes the look under way, and then removes the items in
batches; the row goes last. Until then the row says so (`removal`), and the sweep requests the run again if it
was given up.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import (
    Double,
    Row,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    update,
)

from holdfast.core import decide
from holdfast.core.errors import BadRequestError, NotFoundError
from holdfast.core.records import Ask, Claim, RequestResult
from holdfast.core.states import LIVE, Disposition, Lane, Status, Verb
from holdfast.store.base import journal
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import heads, runs
from holdfast.store.base.schema import sources as table
from holdfast.store.library.collections import COLLECTION_KEPT, no_collection
from holdfast.store.protocol import generations, requests

KIND = "look"
KEEP, DELETE = "keep", "delete"
# Each may be due once a minute: the bound is what one tenant may delay the others.
MOST_SOURCES = 500
# Seconds after which a removal that was given up is requested again.
REMOVAL_RETRY = 600.0
_MARK = "#source:"


@dataclass(frozen=True, slots=True)
class SourceDraft:
    """A source about to be added."""

    id: str
    type: str
    name: str
    options: Mapping[str, Any]
    secrets: Mapping[str, str] | None = field(default=None, repr=False)
    metadata: Mapping[str, Any] | None = None
    labels: Sequence[str] = ()
    refresh_every: float | None = None
    prune: bool = False


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A source, and the state of its looks. `run_status` and what follows are those of its latest run."""

    tenant: str
    id: str
    collection: str
    type: str
    name: str
    options: Mapping[str, Any]
    secrets: Mapping[str, str] = field(repr=False)
    metadata: Mapping[str, Any]
    labels: tuple[str, ...]
    refresh_every: float | None
    prune: bool
    actor: str
    revision: int
    state: str = field(repr=False)
    next_at: float | None
    looked_at: float | None
    counts: Mapping[str, int]
    error_code: str | None
    error_message: str | None
    failures: int
    created_at: float
    removal: str | None
    run_id: str | None = None
    run_status: Status | None = None
    run_error_code: str | None = None
    run_error_message: str | None = None
    run_finished_at: float | None = None

    @property
    def is_looked_at(self) -> bool:
        """True while a look is queued or running."""
        return self.run_status in LIVE

    @property
    def status(self) -> Literal["never", "looking", "ok", "failed"]:
        """The source in one word."""
        if self.is_looked_at:
            return "looking"
        if self.error is not None:
            return "failed"
        return "never" if self.looked_at is None else "ok"

    @property
    def error(self) -> tuple[str, str] | None:
        """Code and message of the last look, if that failed; also if nobody was left to write it down."""
        if self.run_status is Status.FAILED and (self.run_finished_at or 0.0) > (self.looked_at or 0.0):
            return self.run_error_code or "failed", self.run_error_message or ""
        return (self.error_code, self.error_message or "") if self.error_code is not None else None


def subject_of(collection: str, source_id: str) -> str:
    """What a look at the source is done on."""
    return f"collection:{collection}{_MARK}{source_id}"


def id_of(subject: str) -> str:
    """The source that the subject of a look names."""
    return subject.partition(_MARK)[2]


def no_source(source_id: str) -> NotFoundError:
    """The error for a missing source."""
    return NotFoundError(f"there is no source {source_id!r} in this collection", code="unknown_source")


_ROW = [table.c[name] for name in SourceRecord.__dataclass_fields__ if name in table.c]
_look = and_(
    heads.c.tenant == table.c.tenant,
    heads.c.kind == KIND,
    heads.c.subject == literal("collection:") + table.c.collection + literal(_MARK) + table.c.id,
)
_SELECTED = select(
    *_ROW,
    heads.c.run_id,
    runs.c.status.label("run_status"),
    runs.c.error_code.label("run_error_code"),
    runs.c.error_message.label("run_error_message"),
    runs.c.finished_at.label("run_finished_at"),
).select_from(table.outerjoin(heads, _look).outerjoin(runs, runs.c.id == heads.c.run_id))
_named = table.c.tenant == bindparam("tenant"), table.c.id == bindparam("id")
_there = table.c.removal.is_(None)
ONE = _SELECTED.where(*_named)
IN_COLLECTION = _SELECTED.where(
    table.c.tenant == bindparam("tenant"), table.c.collection == bindparam("collection"), _there
).order_by(table.c.id)
# The row stays until the transaction ends: nobody removes the source before that.
STAYS = select(table.c.id).where(*_named, _there).with_for_update(read=True)
LOCKED = select(table).where(*_named).with_for_update()
COUNT = select(func.count()).where(table.c.tenant == bindparam("tenant"))
_DUE = table.c.next_at.is_not(None), table.c.next_at <= now()
DUE = _SELECTED.where(*_DUE).order_by(table.c.next_at).limit(bindparam("limit"))
HAS_DUE = exists().where(*_DUE)
NEW = insert(table).values(created_at=now(), next_at=now() + bindparam("b_first", type_=Double))
_mine = table.c.tenant == bindparam("b_tenant"), table.c.id == bindparam("b_id")
# Only if it is due: of two sweepers one moves it.
MOVE_NEXT = update(table).where(*_mine, *_DUE).values(next_at=now() + bindparam("b_delay"))
CHANGE = (
    update(table)
    .where(*_mine, _there)
    .values(
        name=bindparam("b_name"),
        options=bindparam("b_options"),
        secrets=bindparam("b_secrets"),
        metadata=bindparam("b_metadata"),
        labels=bindparam("b_labels"),
        refresh_every=bindparam("b_refresh_every", type_=Double),
        prune=bindparam("b_prune"),
        revision=table.c.revision + 1,
        state="",
        failures=0,
        next_at=func.coalesce(table.c.looked_at, now()) + bindparam("b_refresh_every", type_=Double),
    )
)
REMOVING = (
    update(table)
    .where(*_mine)
    .values(removal=bindparam("b_removal"), secrets=None, next_at=now() + REMOVAL_RETRY)
)
REMOVED = delete(table).where(*_mine)
LOOKED = (
    update(table)
    .where(*_mine)
    .values(
        looked_at=now(),
        counts=bindparam("b_counts"),
        state=case((table.c.revision == bindparam("b_revision"), bindparam("b_state")), else_=""),
        error_code=None,
        error_message=None,
        failures=0,
        next_at=case((table.c.refresh_every.is_not(None), now() + bindparam("b_delay"))),
    )
)
FAILED = (
    update(table)
    .where(*_mine)
    .values(
        looked_at=now(),
        counts=bindparam("b_counts"),
        error_code=bindparam("b_code"),
        error_message=bindparam("b_message"),
        failures=table.c.failures + 1,
        next_at=case((table.c.refresh_every.is_not(None), now() + bindparam("b_delay"))),
    )
)


def _record(row: Row[Any]) -> SourceRecord:
    values = row._asdict()
    for name in ("secrets", "metadata", "counts"):
        values[name] = values[name] or {}
    values["labels"] = tuple(values["labels"] or ())
    values["run_status"] = Status(row.run_status) if row.run_status else None
    return SourceRecord(**values)


def one(db: Database, tenant: str, source_id: str) -> SourceRecord | None:
    """The source, also one that is being removed; None if there is none."""
    row = db.first(ONE, {"tenant": tenant, "id": source_id})
    return None if row is None else _record(row)


def of_collection(db: Database, tenant: str, collection: str) -> list[SourceRecord]:
    """The sources of a collection."""
    return [_record(row) for row in db.look(IN_COLLECTION, {"tenant": tenant, "collection": collection})]


def due(db: Database, limit: int) -> list[SourceRecord]:
    """Sources whose next look is due, the one that has waited longest first."""
    return [_record(row) for row in db.look(DUE, {"limit": limit})]


@dataclass(frozen=True, slots=True)
class LookRequest:
    """What a request for a look is made of: the pipeline of the kind, a new run id, and the patience."""

    pipeline: str
    run_id: str
    patience: decide.SilenceLimits
    actor: str = ""
    lane: str = Lane.BULK
    priority: int = 5


def _ask(request: LookRequest, source: SourceRecord | SourceDraft, tenant: str, collection: str) -> Ask:
    revision = source.revision if isinstance(source, SourceRecord) else 1
    removal = source.removal if isinstance(source, SourceRecord) else None
    options: dict[str, object] = {"source": source.id}
    return Ask(
        kind=KIND,
        subject=subject_of(collection, source.id),
        content=f"revision:{revision}",
        options=options if removal is None else options | {"removal": removal},
        tenant=tenant,
        collection=collection,
        lane=request.lane,
        priority=request.priority,
        pipeline=request.pipeline,
        actor=request.actor,
        force=True,
        pays=False,
    )


def _values(draft: SourceDraft) -> dict[str, Any]:
    return {
        "name": draft.name,
        "options": dict(draft.options),
        "secrets": dict(draft.secrets) if draft.secrets else None,
        "metadata": dict(draft.metadata) if draft.metadata else None,
        "labels": list(draft.labels) or None,
        "refresh_every": draft.refresh_every,
        "prune": draft.prune,
    }


def add(
    db: Database, tenant: str, collection: str, draft: SourceDraft, request: LookRequest
) -> RequestResult:
    """The collection has the source, and its first look is requested.

    NotFoundError if the collection is deleted; BadRequestError `too_many_sources` beyond the limit.
    """

    def body(tx: Tx) -> RequestResult:
        answer = requests.answer(
            tx,
            _ask(request, draft, tenant, collection),
            run_id=request.run_id,
            patience=request.patience,
        )
        if tx.one(COLLECTION_KEPT, {"tenant": tenant, "id": collection}) is None:
            raise no_collection(collection)
        if tx.one(STAYS, {"tenant": tenant, "id": draft.id}) is not None:
            return answer  # an earlier try, whose response was lost
        if tx.execute(COUNT, {"tenant": tenant}).scalar_one() >= MOST_SOURCES:
            message = f"this tenant has {MOST_SOURCES} sources, which is the limit; remove one first"
            raise BadRequestError(message, code="too_many_sources")
        named = {"tenant": tenant, "id": draft.id, "collection": collection, "type": draft.type}
        more = {"actor": request.actor, "b_first": draft.refresh_every}
        tx.execute(NEW, named | _values(draft) | more)
        about = {"source": draft.id, "collection": collection, "type": draft.type}
        journal.write(
            tx, journal.entry(Verb.ADD_SOURCE, "requested", tenant=tenant, actor=request.actor, data=about)
        )
        return answer

    return db.write("add_source", body)


def change(
    db: Database, tenant: str, collection: str, draft: SourceDraft, *, revision: int, actor: str
) -> bool:
    """The source is as in the draft; False if it was changed since that revision.

    A look under way ends as it began; what it learned about the old options is forgotten then.
    """
    values = {f"b_{name}": value for name, value in _values(draft).items()}

    def body(tx: Tx) -> bool:
        row = tx.one(LOCKED, {"tenant": tenant, "id": draft.id})
        if row is None or row.removal is not None or row.collection != collection:
            raise no_source(draft.id)
        if row.revision != revision:
            return bool(tx.again and row.revision == revision + 1)
        tx.execute(CHANGE, values | {"b_tenant": tenant, "b_id": draft.id})
        about = {"source": draft.id, "collection": collection}
        journal.write(
            tx, journal.entry(Verb.CHANGE_SOURCE, "requested", tenant=tenant, actor=actor, data=about)
        )
        return True

    return db.write("change_source", body)


def refresh(db: Database, source: SourceRecord, request: LookRequest) -> RequestResult:
    """The result of a request for a look; NotFoundError if the source is removed."""
    name = {"tenant": source.tenant, "id": source.id}

    def body(tx: Tx) -> RequestResult:
        answer = requests.answer(
            tx,
            _ask(request, source, source.tenant, source.collection),
            run_id=request.run_id,
            patience=request.patience,
        )
        if tx.one(STAYS, name) is None:
            raise no_source(source.id)
        return answer

    return db.write("request", body)


def start_due(db: Database, source: SourceRecord, request: LookRequest, *, delay: float) -> bool:
    """The look that is due is requested, unless one is under way, and the next is due after the delay.

    Also the removal of a source that was given up. False if another sweeper was first.
    """
    ask = _ask(request, source, source.tenant, source.collection)

    def body(tx: Tx) -> bool:
        head, at = generations.locked_head(tx, ask)
        moved = {"b_tenant": source.tenant, "b_id": source.id, "b_delay": delay}
        if tx.execute(MOVE_NEXT, moved).rowcount != 1:
            return tx.again and head.run_id == request.run_id
        run, life, _age = requests.latest(tx, head)
        is_alive = run is not None and run.status in LIVE
        if run is not None and is_alive and decide.silence(run, life, request.patience, at) is None:
            return False
        answer = requests.answer(tx, ask, run_id=request.run_id, patience=request.patience)
        return answer.disposition is not Disposition.REFUSED and answer.created

    return db.write("start_look", body)


def begin_removal(db: Database, source: SourceRecord, removal: str, request: LookRequest) -> RequestResult:
    """The source is gone for every reader, and its look has ended; a run of its own removes the rest."""
    removing = dataclasses.replace(source, removal=removal)
    about = {"source": source.id, "collection": source.collection, "documents": removal}

    def body(tx: Tx) -> RequestResult:
        answer = requests.answer(
            tx,
            _ask(request, removing, source.tenant, source.collection),
            run_id=request.run_id,
            patience=request.patience,
        )
        row = tx.one(LOCKED, {"tenant": source.tenant, "id": source.id})
        if row is None or (row.removal is not None and not tx.again):
            raise no_source(source.id)
        tx.execute(REMOVING, {"b_tenant": source.tenant, "b_id": source.id, "b_removal": removal})
        if row.removal is None:
            noted = journal.entry(
                Verb.REMOVE_SOURCE, "requested", tenant=source.tenant, actor=request.actor, data=about
            )
            journal.write(tx, noted)
        return answer

    return db.write("remove_source", body)


def end_removal(tx: Tx, claim: Claim) -> None:
    """The row of a removed source is gone; part of the transaction that ends its removal."""
    tx.execute(REMOVED, {"b_tenant": claim.tenant, "b_id": id_of(claim.subject)})


def note_look(
    tx: Tx, claim: Claim, *, counts: Mapping[str, int], state: str, revision: int, delay: float
) -> None:
    """The look has ended well; part of the transaction that ends its run."""
    values = {"b_tenant": claim.tenant, "b_id": id_of(claim.subject), "b_counts": dict(counts)}
    tx.execute(LOOKED, values | {"b_state": state, "b_revision": revision, "b_delay": delay})


def note_failure(
    tx: Tx, claim: Claim, *, counts: Mapping[str, int], code: str, message: str, delay: float
) -> None:
    """The look has failed; inside a transaction that holds the claim."""
    values = {"b_tenant": claim.tenant, "b_id": id_of(claim.subject), "b_counts": dict(counts)}
    tx.execute(FAILED, values | {"b_code": code, "b_message": message[:2000], "b_delay": delay})
