"""Importing a bundle: documents that arrive ready, with chunks made elsewhere.

An import does not bypass the fence. An imported document is a generation like any other, requested and
claimed in one transaction by the import itself, which stages its chunks and publishes it under that claim. If
the import dies, the claim expires and the document is indexed from its bytes; if the import is resumed first,
it supersedes what it left.

The bundle's vectors are stored in the ledger as calls settled at no cost: under the content key of the
importing tenant, so that no other tenant can use them, and never over an existing call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Select, bindparam, select
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core import subjects
from holdfast.core.decide import Verdict
from holdfast.core.errors import StoreUnavailableError
from holdfast.core.records import Ask, Claim, Fenced, Landed
from holdfast.core.states import LIVE, CallState, Disposition
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import calls, runs
from holdfast.store.base.schema import tasks as task_table
from holdfast.store.library import chunk_edits, document_values, documents, quotas
from holdfast.store.library.collections import COLLECTION_KEPT, no_collection
from holdfast.store.library.document_values import Description
from holdfast.store.library.documents import BY_DIGEST, BY_EXTERNAL_IDS, NEW, Document, DocumentDraft
from holdfast.store.library.quotas import UNLIMITED, Quota
from holdfast.store.protocol import claims, generations, requests, tasks

REASON = "imported"
ACTOR_OF = select(runs.c.actor).where(runs.c.id == bindparam("run_id"))
PLAN_OF = select(task_table.c.id).where(task_table.c.run_id == bindparam("run_id"), task_table.c.ordinal == 0)
_new = upsert(calls).values(
    tenant=bindparam("b_tenant"),
    key=bindparam("b_key"),
    state=literal(CallState.SETTLED),
    run_id=bindparam("b_run"),
    provider=bindparam("b_provider"),
    model=bindparam("b_model"),
    estimate=0,
    result=bindparam("b_result"),
    settled_at=now(),
)
# A void call holds nothing and has no holder; every other call is left unchanged.
KNOWN = _new.on_conflict_do_update(
    index_elements=[calls.c.tenant, calls.c.key],
    set_={
        "state": literal(CallState.SETTLED),
        "order_id": None,
        "run_id": _new.excluded.run_id,
        "provider": _new.excluded.provider,
        "result": _new.excluded.result,
        "settled_at": _new.excluded.settled_at,
        "cost": 0,
        "tokens": 0,
    },
    where=calls.c.state == literal(CallState.VOID),
)


@dataclass(frozen=True, slots=True)
class ImportedCall:
    """A paid input and its result from elsewhere."""

    key: str
    provider: str
    model: str
    result: bytes


def keep_calls(db: Database, claim: Claim, known: Sequence[ImportedCall]) -> Fenced | Landed:
    """The tenant no longer needs to pay for these calls. Keep batches short, as for chunks."""
    common = {"b_tenant": claim.tenant, "b_run": claim.run_id}
    unique = {each.key: each for each in known}
    values = [
        common
        | {
            "b_key": key,
            "b_provider": unique[key].provider,
            "b_model": unique[key].model,
            "b_result": unique[key].result,
        }
        for key in sorted(unique)
    ]

    def body(tx: Tx) -> Fenced | Landed:
        held = tasks.hold(tx, claim, change=False)
        if isinstance(held, Fenced | Landed):
            return held
        tx.execute(KNOWN, values)
        return Landed()

    return db.write("keep_calls", body) if values else Landed()


@dataclass(frozen=True, slots=True)
class Arrival:
    """A document about to be imported, and how it was indexed: `ask` names it once it has an id."""

    draft: DocumentDraft
    ask: Ask
    run_id: str
    token: str


def _same(where: Mapping[str, Any], draft: DocumentDraft) -> tuple[Select[Any], dict[str, Any]]:
    """The query for the document of the collection that is the draft's, and its values."""
    if draft.external_id is None:
        return BY_DIGEST, {**where, "digest": draft.source.digest}
    return BY_EXTERNAL_IDS, {**where, "external_ids": [draft.external_id]}


def open_document(
    db: Database, claim: Claim, arrival: Arrival, *, owner: str, ttl: float, quota: Quota = UNLIMITED
) -> Claim | Document | Fenced:
    """The right to stage and publish the document; or the existing one with the same content, which stays.

    For a document with an external id, the existing one is that with the same id, whatever its content.

    An existing one that is neither published nor being indexed is opened again. QuotaExceededError if it
    exceeds the tenant's quota.
    """
    where = {"tenant": claim.tenant, "collection": claim.collection}

    def body(tx: Tx) -> Claim | Document | Fenced:
        held = tasks.hold(tx, claim, change=False)
        if isinstance(held, Fenced | Landed):
            return held if isinstance(held, Fenced) else Fenced("finished")
        if tx.one(COLLECTION_KEPT, {"tenant": claim.tenant, "id": claim.collection}) is None:
            raise no_collection(claim.collection or "")
        if tx.again and (mine := claims.mine(tx, arrival.token)) is not None:
            return mine
        draft = arrival.draft
        if tx.one(NEW, documents.row_of(claim.tenant, claim.collection or "", draft)) is not None:
            described = Description(draft.metadata or {}, draft.labels or ())
            document_values.put(tx, (claim.tenant, draft.id), claim.collection or "", described)
            chunk_edits.put_all(tx, (claim.tenant, draft.id), draft.edits)
        row = tx.one(*_same(where, draft))
        if row is None:
            raise StoreUnavailableError("a document with this content is being deleted; try again later")
        document = documents.of_row(row._asdict())
        if document.digest != draft.source.digest:
            return document
        ask = replace(arrival.ask, subject=subjects.of_document(document.id))
        head, _at = generations.locked_head(tx, ask)
        run, _life, _age = requests.latest(tx, head)
        at_work = run is not None and run.status in LIVE
        left = at_work and tx.execute(ACTOR_OF, {"run_id": head.run_id}).scalar() == ask.actor
        if head.deleted or ((head.visible or at_work) and not left):
            return document
        verdict = Verdict(Disposition.ACCEPTED, REASON)
        requests.open_generation(tx, ask, head, run, verdict, arrival.run_id)
        task_id = tx.execute(PLAN_OF, {"run_id": arrival.run_id}).scalar_one()
        taken = claims.take(tx, task_id, owner=owner, token=arrival.token, ttl=ttl)
        if document.id == arrival.draft.id:
            quotas.check(tx, claim.tenant, quota)
        return taken

    return db.write("open_arrival", body)
