"""Actions: what a collection does with each document, and what happens when either changes.

Why no document is missed or served twice: a publication reads the actions while its head is locked;
a new action is committed first, and only then does its first pass lock each head in turn. Whichever comes
second at a head sees the other: the publication sees the action, or the pass sees the visible generation. The
pass also looks at heads that are live but not visible yet, as such a head may be publishing now, having read
the actions before this one was committed. If both act, the unique (action, head, generation) decides.

A pass may be interrupted anywhere and repeated: what is done already it leaves alone.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row, Text, bindparam, cast, exists, or_, select, text, union_all, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core import decide, subjects
from holdfast.core.records import Ask, Fenced, Head, Landed, Outcome
from holdfast.core.states import LIVE, Disposition, Lane, Verb
from holdfast.store.base import journal, rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import A_DELIVERY, actions, follow_ups, heads, one_of, runs
from holdfast.store.base.schema import deliveries as sent
from holdfast.store.follow_ups import deliveries, keeps
from holdfast.store.protocol import generations, publish_seq, requests

# The kind of actions that are about the collection as a whole (`keeps`), not about each document.
KEEP = "keep"
VISIT_BATCH = 500
CANCELLED_AT_ONCE = 100
_live_states = [literal(status) for status in sorted(LIVE)]

# Shared until commit: the removal of an action waits, and then sees all of its follow-ups.
ACTIONS_OF = (
    select(actions)
    .where(
        actions.c.tenant == bindparam("tenant"),
        actions.c.collection == bindparam("collection"),
        actions.c.active,
        actions.c.kind != KEEP,
    )
    .with_for_update(read=True)
)
NEW_FOLLOW_UP = upsert(follow_ups).on_conflict_do_nothing().returning(follow_ups.c.run_id)


def follow_up(tx: Tx, head: Head, generation: int, cause: str, only: int | None = None) -> int:
    """Each active action of the head's collection has its follow-up of this generation. Returns the new ones.

    Only indexed documents have follow-ups, not jobs on the same collection. The caller holds the head for
    change. A follow-up supersedes the older one of the same action and subject.
    """
    created = 0
    if head.kind != subjects.INDEX:
        return created
    for action in tx.all(ACTIONS_OF, {"tenant": head.tenant, "collection": head.collection}):
        if only is not None and action.id != only:
            continue
        run_id = tx.db.token()
        unique = {"action_id": action.id, "head_id": head.id, "generation": generation, "run_id": run_id}
        if tx.one(NEW_FOLLOW_UP, unique) is None:
            continue
        if action.kind == deliveries.KIND:
            deliveries.post(tx, _notice(head, generation, cause, action), run_id)
        else:
            _open(tx, head, generation, cause, action, run_id)
        created += 1
    return created


def _open(tx: Tx, head: Head, generation: int, cause: str, action: Row[Any], run_id: str) -> None:
    ask = Ask(
        kind=action.kind,
        subject=f"{head.subject}#action:{action.id}",
        content=f"{head.subject}@{generation}",
        options=action.options,
        tenant=head.tenant,
        collection=head.collection,
        lane=Lane.FOLLOW_UP,
        pipeline=action.pipeline,
        actor=f"run:{cause}",
    )
    target, _at = generations.locked_head(tx, ask)
    run, _life, _age = requests.latest(tx, target)
    requests.open_generation(tx, ask, target, run, decide.Verdict(Disposition.ACCEPTED, "follow_up"), run_id)


def _notice(head: Head, generation: int, cause: str, action: Row[Any]) -> deliveries.EventNotice:
    document = {
        "id": subjects.document_id(head.subject),
        "collection": head.collection,
        "generation": generation,
        "run_id": cause,
    }
    return deliveries.EventNotice(
        head.tenant,
        deliveries.READY,
        action.options["url"],
        action.secret or "",
        cause,
        head.subject,
        generation,
        {"document": document, "action": {"id": action.id, "name": action.name}},
        action.id,
    )


NEW_ACTION = (
    upsert(actions)
    .values(
        tenant=bindparam("b_tenant"),
        collection=bindparam("b_collection"),
        kind=bindparam("b_kind"),
        options=bindparam("b_options"),
        pipeline=bindparam("b_pipeline"),
        token=bindparam("b_token"),
        name=bindparam("b_name"),
        secret=bindparam("b_secret"),
        visited=bindparam("b_visited"),
        created_at=now(),
    )
    .on_conflict_do_nothing()
    .returning(actions.c.id)
)
ACTION_BY_TOKEN = select(actions.c.id).where(
    actions.c.tenant == bindparam("tenant"), actions.c.token == bindparam("token")
)


VISIT_AGAIN = (
    update(actions)
    .where(actions.c.id == bindparam("b_action"), actions.c.visited.is_(None))
    .values(visited=0)
)


def add_action(
    db: Database,
    *,
    tenant: str,
    collection: str,
    kind: str,
    options: Mapping[str, Any],
    pipeline: str,
    token: str | None = None,
    actor: str = "",
    name: str = "",
    secret: str | None = None,
    most: int | None = None,
    existing: bool = True,
) -> int:
    """The collection has this action, and each ready document its follow-up. Returns the action's id.

    After an interruption call it again with the same `token`: it recognises its action and continues its
    first pass. If `most` is given only so many documents are visited here; `unvisited` lists actions with
    documents left. Without `existing`, ready documents get no follow-up until it is added again with it. One
    of the kind `keep` has none at all: the sweep requests its runs.
    """
    Ask(kind=kind, subject="document:0", options=options, tenant=tenant, collection=collection).checked()
    mine = token or db.token()
    values: dict[str, Any] = {"b_tenant": tenant, "b_collection": collection, "b_kind": kind}
    values |= {"b_options": dict(options), "b_name": name, "b_secret": secret}
    values["b_visited"] = 0 if existing and kind != KEEP else None

    def body(tx: Tx) -> int:
        row = tx.one(NEW_ACTION, values | {"b_pipeline": pipeline, "b_token": mine})
        if row is None:
            known_id: int = tx.execute(ACTION_BY_TOKEN, {"tenant": tenant, "token": mine}).scalar_one()
            if existing and kind == KEEP:
                keeps.add_again(tx, known_id)
            elif existing:
                tx.execute(VISIT_AGAIN, {"b_action": known_id})
            return known_id
        if kind == KEEP:
            keeps.add(tx, row.id, tenant, collection, existing=existing)
        about = {"action": row.id, "collection": collection, "kind": kind}
        journal.write(tx, journal.entry(Verb.ADD_ACTION, "requested", tenant=tenant, actor=actor, data=about))
        return int(row.id)

    action_id = db.write("add_action", body)
    if existing and kind != KEEP:
        visit(db, action_id, most)
    return action_id


SECRET = select(actions.c.secret).where(actions.c.id == bindparam("action_id"))


def secret_of(db: Database, action_id: int) -> str | None:
    """The secret that signs the action's deliveries; shown only to the caller that has just added it."""
    secret: str | None = db.read(lambda tx: tx.execute(SECRET, {"action_id": action_id}).scalar())
    return secret


REMOVE_ACTION = (
    update(actions)
    .where(actions.c.tenant == bindparam("b_tenant"), actions.c.id == bindparam("b_action"), actions.c.active)
    # The token is free again: the same action may be added again. Its follow-ups are still to be ended.
    .values(active=False, visited=0, token=actions.c.token + ":" + cast(actions.c.id, Text))
)


def remove_action(
    db: Database, tenant: str, action_id: int, *, actor: str = "", most: int = CANCELLED_AT_ONCE
) -> Outcome:
    """The action creates no new follow-ups, and `most` of those that have not ended are cancelled here.

    The rest, and what an interruption left, is for `cancel_follow_ups`: see `unended`.
    """

    def body(tx: Tx) -> Outcome:
        if tx.execute(REMOVE_ACTION, {"b_tenant": tenant, "b_action": action_id}).rowcount != 1:
            return Landed() if tx.again else Fenced("unknown")
        keeps.remove(tx, action_id)
        about = {"action": action_id}
        noted = journal.entry(Verb.REMOVE_ACTION, "requested", tenant=tenant, actor=actor, data=about)
        journal.write(tx, noted)
        return Landed()

    removed = db.write("remove_action", body)
    cancel_follow_ups(db, tenant, action_id, actor=actor, most=most)
    return removed


_of_removed = (
    actions.c.id == bindparam("action_id"),
    actions.c.tenant == bindparam("tenant"),
    ~actions.c.active,
)
# Starting from live runs: they are few compared with all that an action ever created.
_live = text(f"holdfast_runs.{one_of('status', LIVE)}")
UNDER_WAY = union_all(
    select(runs.c.head_id, runs.c.id.label("run_id"))
    .select_from(runs.join(follow_ups, follow_ups.c.run_id == runs.c.id))
    .join(actions, actions.c.id == follow_ups.c.action_id)
    .where(*_of_removed, _live),
    # One that was sent again has its own run.
    select(runs.c.head_id, runs.c.id)
    .select_from(runs.join(sent, (sent.c.tenant == runs.c.tenant) & (sent.c.head_id == runs.c.head_id)))
    .join(actions, actions.c.id == sent.c.action_id)
    .where(*_of_removed, text(f"holdfast_runs.{A_DELIVERY}"), _live),
)


SEEN_TO = (
    update(actions)
    .where(
        actions.c.id == bindparam("b_action"),
        actions.c.tenant == bindparam("b_tenant"),
        ~actions.c.active,
        actions.c.visited.is_not(None),
    )
    .values(visited=None)
)
UNENDED = (
    select(actions.c.id, actions.c.tenant)
    .where(actions.c.visited.is_not(None), ~actions.c.active)
    .limit(bindparam("limit"))
)


def cancel_follow_ups(
    db: Database, tenant: str, action_id: int, *, actor: str = "", most: int = CANCELLED_AT_ONCE
) -> int:
    """Up to `most` live follow-ups of the removed action are cancelled. Returns how many.

    No new one can appear: the removal waited for publications under way.
    """
    where = {"tenant": tenant, "action_id": action_id, "limit": most}
    live = db.read(lambda tx: tx.all(UNDER_WAY.limit(bindparam("limit")), where))
    ended = {row.run_id: row.head_id for row in live}
    outcomes = [
        requests.cancel(db, head_id, run_id=run_id, actor=actor or f"action:{action_id}")
        for run_id, head_id in ended.items()
    ]
    if len(live) < most:
        seen = {"b_action": action_id, "b_tenant": tenant}
        db.write("seen_to", lambda tx: tx.execute(SEEN_TO, seen))
    return sum(isinstance(outcome, Landed) for outcome in outcomes)


def unended(db: Database, limit: int) -> list[tuple[int, str]]:
    """Removed actions whose follow-ups may still be live, each with its tenant."""
    return [(row.id, row.tenant) for row in db.look(UNENDED, {"limit": limit})]


IN_COLLECTION = select(actions.c.id).where(
    actions.c.tenant == bindparam("tenant"),
    actions.c.collection == bindparam("collection"),
    actions.c.active,
)


def remove_all(db: Database, tenant: str, collection: str, *, actor: str = "") -> int:
    """The collection has no actions any more. Returns how many it had.

    Most of their follow-ups are left to the sweep, as a collection may have any number of them.
    """
    where = {"tenant": tenant, "collection": collection}
    ids = [row.id for row in db.read(lambda tx: tx.all(IN_COLLECTION, where))]
    most = max(1, CANCELLED_AT_ONCE // max(1, len(ids)))
    return sum(isinstance(remove_action(db, tenant, each, actor=actor, most=most), Landed) for each in ids)


ACTION = select(actions.c.tenant, actions.c.collection, actions.c.visited).where(
    actions.c.id == bindparam("action_id"), actions.c.active
)
TO_VISIT = (
    select(heads.c.id)
    .where(
        heads.c.tenant == bindparam("tenant"),
        heads.c.collection == bindparam("collection"),
        heads.c.id > bindparam("after"),
        heads.c.kind == subjects.INDEX,
        or_(heads.c.visible, heads.c.status.in_(_live_states)),
    )
    .order_by(heads.c.id)
    .limit(VISIT_BATCH)
)


VISITED = (
    update(actions)
    .where(actions.c.id == bindparam("b_action"), actions.c.visited.is_not(None))
    .values(visited=bindparam("b_visited"))
)
UNVISITED = (
    select(actions.c.id).where(actions.c.visited.is_not(None), actions.c.active).limit(bindparam("limit"))
)


# New actions with documents left to visit, and removed ones with live follow-ups.
HAS_VISITS = exists().where(actions.c.visited.is_not(None))


def visit(db: Database, action_id: int, most: int | None = None) -> int:
    """Every ready document of the action's collection has its follow-up. Returns how many are new.

    It continues where the first pass of a new action was interrupted, and visits at most `most` documents, if
    given; a completed pass starts again.
    """
    action = db.read(lambda tx: tx.one(ACTION, {"action_id": action_id}))
    if action is None:
        return 0
    where = {"tenant": action.tenant, "collection": action.collection}
    after, seen, created = action.visited or 0, 0, 0
    while page := _page(db, where, after):
        for head_id in page[: None if most is None else most - seen]:
            created += _visit_head(db, head_id, action_id, action.collection)
            after, seen = head_id, seen + 1
        if seen == most:
            _set_visited(db, action_id, after)
            return created
        if action.visited is not None:
            _set_visited(db, action_id, after)
    if action.visited is not None:
        _set_visited(db, action_id, None)
    return created


def _set_visited(db: Database, action_id: int, head_id: int | None) -> None:
    values = {"b_action": action_id, "b_visited": head_id}
    db.write("visited", lambda tx: tx.execute(VISITED, values))


def unvisited(db: Database, limit: int) -> list[int]:
    """Actions whose collections have documents that were not visited yet."""
    return [row.id for row in db.look(UNVISITED, {"limit": limit})]


def _page(db: Database, where: Mapping[str, Any], after: int) -> list[int]:
    return [row.id for row in db.read(lambda tx: tx.all(TO_VISIT, {**where, "after": after}))]


def _visit_head(db: Database, head_id: int, action_id: int, collection: str) -> int:
    created = 0

    def body(tx: Tx) -> None:
        nonlocal created
        row = tx.one(rows.HEAD_FOR_CHANGE, {"head_id": head_id})
        if row is None or row.collection != collection:
            return  # moved meanwhile: the move created its follow-ups
        created = max(created, _follow_up_ready(tx, rows.head(row), only=action_id))

    db.write("visit", body)
    return created


PUBLISHED_RUN = (
    select(runs.c.id, heads.c.imported)
    .select_from(runs.join(heads, heads.c.id == runs.c.head_id))
    .where(runs.c.head_id == bindparam("head_id"), runs.c.generation == heads.c.published_generation)
)


def _follow_up_ready(tx: Tx, head: Head, *, only: int | None = None) -> int:
    """The locked head's visible generation has its follow-ups. Imported rows have no chunks to work on."""
    published = tx.one(PUBLISHED_RUN, {"head_id": head.id})
    if not head.visible or published is None or published.imported:
        return 0
    return follow_up(tx, head, head.published_generation, published.id, only=only)


MOVE = (
    update(heads)
    .where(heads.c.id == bindparam("b_head"))
    .values(collection=bindparam("b_collection"), updated_at=now())
)


def move(db: Database, head_id: int, collection: str | None, *, actor: str = "") -> Outcome:
    """The head is in `collection`, readers of both are notified, and a ready document gets its follow-ups."""
    token = db.token()

    def body(tx: Tx) -> Outcome:
        row = tx.one(rows.HEAD_FOR_CHANGE, {"head_id": head_id})
        if row is None or row.deleted:
            return Fenced("unknown" if row is None else "deleted")
        if row.collection == collection or (tx.again and was_moved(tx, head_id, token)):
            return Landed()
        carry(tx, row, collection, token=token, actor=actor)
        publish_seq.bump(tx, row.tenant, row.collection, collection)
        return Landed()

    return db.write("move", body)


def carry(tx: Tx, row: Row[Any], collection: str | None, *, token: str, actor: str) -> None:
    """The locked head is in `collection`, and a ready document gets its follow-ups; readers not notified."""
    noted = journal.entry(
        Verb.MOVE,
        "requested",
        tenant=row.tenant,
        head_id=row.id,
        run_id=row.run_id,
        generation=row.generation,
        actor=actor,
        data={"from": row.collection, "to": collection, "token": token},
    )
    tx.execute(MOVE, {"b_head": row.id, "b_collection": collection})
    journal.write(tx, noted)
    if collection is not None:
        _follow_up_ready(tx, dataclasses.replace(rows.head(row), collection=collection))


def was_moved(tx: Tx, head_id: int, token: str) -> bool:
    """True if an earlier try of this move is in the journal, even if the head was moved again since."""
    latest = tx.all(journal.LATEST, {"head_id": head_id})
    return any(row.verb == Verb.MOVE and (row.data or {}).get("token") == token for row in latest)
