"""Paid calls up to the first byte: look up, intend, mark sent.

Why a call is paid once (G5): its content key is the primary key of its row, so of all workers that miss it
exactly one inserts the intent, or takes over a void one under its lock. Only the holder of the intent may
mark it sent, only under the fence, all calls of an order or none; and only what was marked and *confirmed* is
sent. What happens next is in `orders`.

If nothing happens between the intent and the first byte (`Profile.in_process`), both are one transaction,
`send_at_once`: the guarantees of both apply, and its order is never unsent.

Intents are inserted in sorted key order and read back in a second statement: insert-or-read in one statement
returns no row if another transaction inserts the same key at the same moment.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Double, Row, Text, bindparam, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core.records import NO_TASK, Claim, Fenced, Landed, LedgerEntry, Order
from holdfast.core.states import CallState, Verb
from holdfast.store.base import journal, rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in, now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import calls, orders
from holdfast.store.money import budgets, ceilings
from holdfast.store.protocol import tasks

INTENT_LOST = "intent_lost"

_keys = bindparam("keys", type_=KeyList())
ENTRIES = select(
    calls.c.key, calls.c.state, calls.c.order_id, calls.c.run_id, calls.c.result, calls.c.tokens, calls.c.cost
).where(calls.c.tenant == bindparam("tenant"), key_in(calls.c.key, _keys))
ENTRIES_FOR_CHANGE = ENTRIES.order_by(calls.c.key).with_for_update()

NEW_CALL = (
    upsert(calls)
    .values(
        tenant=bindparam("b_tenant"),
        key=bindparam("b_key"),
        state=bindparam("b_state"),
        order_id=bindparam("b_order"),
        run_id=bindparam("b_run"),
        provider=bindparam("b_provider"),
        model=bindparam("b_model"),
        estimate=bindparam("b_estimate"),
    )
    .on_conflict_do_nothing()
    .execution_options(preserve_rowcount=True)  # not reported by default for INSERT
)
TAKE_VOID = (
    update(calls)
    .where(calls.c.tenant == bindparam("b_tenant"), calls.c.key == bindparam("b_key"))
    .values(
        state=bindparam("b_state"),
        order_id=bindparam("b_order"),
        run_id=bindparam("b_run"),
        provider=bindparam("b_provider"),
    )
)
ORDER_COLUMNS = [orders.c[name] for name in Order.__dataclass_fields__]
ORDER = select(*ORDER_COLUMNS, now().label("now")).where(orders.c.id == bindparam("order_id"))
# Without the body, which is long and not needed to change an order.
ORDER_FOR_CHANGE = (
    select(*(column for column in orders.c if column is not orders.c.body), now().label("now"))
    .where(orders.c.id == bindparam("order_id"))
    .with_for_update()
)
_made_now = {"created_at": now(), "deadline_at": now() + bindparam("b_lasts")}
_times = (orders.c.created_at, orders.c.deadline_at, orders.c.first_sent_at, orders.c.sent_at, orders.c.sends)
NEW_ORDER = {
    CallState.INTENT: insert(orders)
    .values(state=literal(CallState.INTENT), sends=0, **_made_now)
    .returning(*_times),
    CallState.SENT: insert(orders)
    .values(state=literal(CallState.SENT), sends=1, first_sent_at=now(), sent_at=now(), **_made_now)
    .returning(*_times),
}


def entry(row: Row[Any]) -> LedgerEntry:
    """The record of a call row."""
    return LedgerEntry(
        row.key, CallState(row.state), row.order_id, row.run_id, row.result, row.tokens, row.cost
    )


def order(row: Row[Any]) -> Order:
    """The record of an order row."""
    values = {name: getattr(row, name) for name in Order.__dataclass_fields__}
    lists = {"call_keys": tuple(row.call_keys), "weights": tuple(row.weights)}
    return Order(**values | lists | {"state": CallState(row.state), "body": bytes(row.body)})


def look_up(db: Database, tenant: str, keys: Sequence[str]) -> dict[str, LedgerEntry]:
    """The ledger's entries for these keys, in one statement."""
    rows = db.look(ENTRIES, {"tenant": tenant, "keys": keys})
    return {row.key: entry(row) for row in rows}


SENT_BY_TASK = select(orders.c.id).where(
    key_in(orders.c.id, bindparam("orders", type_=KeyList())), orders.c.task_id == bindparam("task_id")
)


def paid_by(db: Database, task_id: int, order_ids: Sequence[str]) -> frozenset[str]:
    """The orders among these that this task sent last: their price is its own, for others a saving."""
    rows = db.look(SENT_BY_TASK, {"orders": order_ids, "task_id": task_id})
    return frozenset(row.id for row in rows)


@dataclass(frozen=True, slots=True)
class OrderDraft:
    """An order about to be intended. `weights` is the estimated price of each key, in nano-dollars.

    `carrier` is the process that will send it, None if nobody needs to wait for it.
    """

    id: str
    provider: str
    endpoint: str
    model: str
    weights: dict[str, int]
    encode: Callable[[Sequence[str]], bytes]
    keyed: bool
    deadline: float
    stale_after: float
    scopes: tuple[str, ...]
    unpriced: bool = False
    carrier: str | None = None
    # The spending limit of the run if its request set none.
    max_run_cost: int | None = None


def intend(db: Database, claim: Claim, draft: OrderDraft) -> Order | None:
    """An order for the free keys of `draft`, with its price reserved; None if all keys are held.

    Raises OverBudgetError, and then nothing was stored. The order's body, keys and idempotency key never
    change again.
    """

    def body(tx: Tx) -> Order | None:
        if tx.again and (known := tx.one(ORDER, {"order_id": draft.id})) is not None:
            return order(known)
        return _ordered(tx, claim, draft, CallState.INTENT)

    return db.write("intend", body, relaxed=True)


def send_at_once(db: Database, claim: Claim, draft: OrderDraft) -> Order | Fenced | None:
    """An order for the free keys of `draft`, marked sent under the fence; None if all keys are held.

    It is `intend` and `send` in one transaction, for a provider that needs nothing between them; when fenced
    out it leaves no intent. Raises OverBudgetError, and then nothing was stored.
    """

    def body(tx: Tx) -> Order | Fenced | None:
        if (refused := fence(tx, claim)) is not None:
            return refused
        if tx.again and (known := tx.one(ORDER, {"order_id": draft.id})) is not None:
            mine = known.state == CallState.SENT and known.holder == claim.token and known.sends == 1
            return order(known) if mine else Fenced(INTENT_LOST)
        return _ordered(tx, claim, draft, CallState.SENT)

    # A free call has no outside effect and costs nothing to repeat if a power cut loses it.
    free = not any(draft.weights.values())
    return db.write("send_at_once", body, relaxed=free)


def _ordered(tx: Tx, claim: Claim, draft: OrderDraft, state: CallState) -> Order | None:
    """The order for the free keys of the draft, with its calls in `state` and its price reserved."""
    mine = _taken(tx, claim, draft, state)
    if not mine:
        return None
    estimate = sum(draft.weights[key] for key in mine)
    pays = bool(estimate) or draft.unpriced
    scopes = list(draft.scopes)
    if pays:
        scopes = ceilings.scopes(tx, draft.scopes, claim.run_id, draft.max_run_cost)
    budgets.reserve(tx, claim.tenant, scopes, estimate, unpriced=draft.unpriced)
    frozen: dict[str, Any] = {
        "id": draft.id,
        "tenant": claim.tenant,
        "provider": draft.provider,
        "endpoint": draft.endpoint,
        "model": draft.model,
        "call_keys": mine,
        "weights": [draft.weights[key] for key in mine],
        "body": draft.encode(mine),
        "idempotency_key": f"hf-{draft.id}",
        "keyed": draft.keyed,
        "holder": claim.token,
        "task_id": claim.task_id or None,
        "run_id": claim.run_id or None,
        "estimate": estimate,
        "unpriced": draft.unpriced,
        "deadline": draft.deadline,
    }
    lasts = draft.stale_after if state is CallState.INTENT else draft.deadline
    more = {"scopes": scopes, "carrier": draft.carrier, "b_lasts": lasts}
    more |= {"key_id": claim.key_id, "reuse_scope": claim.reuse_scope}
    inserted = tx.execute(NEW_ORDER[state], frozen | more).one()
    lists = {"call_keys": tuple(mine), "weights": tuple(frozen["weights"])}
    return Order(**frozen | lists | inserted._asdict(), state=state)


def _taken(tx: Tx, claim: Claim, draft: OrderDraft, state: CallState) -> list[str]:
    """The keys of the draft that this order holds now: new ones, and ones that were void."""
    keys = sorted(draft.weights)
    common = {
        "b_tenant": claim.tenant,
        "b_order": draft.id,
        "b_run": claim.run_id or None,
        "b_state": state,
        "b_provider": draft.provider,
    }
    values = [
        common | {"b_key": key, "b_model": draft.model, "b_estimate": draft.weights[key]} for key in keys
    ]
    if tx.execute(NEW_CALL, values).rowcount == len(keys):
        return keys  # all were inserted here: there is nothing to read back
    entries = tx.all(ENTRIES_FOR_CHANGE, {"tenant": claim.tenant, "keys": keys})
    free = [row.key for row in entries if row.state == CallState.VOID]
    if free:
        tx.execute(TAKE_VOID, [common | {"b_key": key} for key in free])
    return sorted([row.key for row in entries if row.order_id == draft.id] + free)


_sent_values = {
    "state": literal(CallState.SENT),
    "sent_at": now(),
    "first_sent_at": func.coalesce(orders.c.first_sent_at, now()),
    # A relay has some slack for storing what arrives at the deadline.
    "deadline_at": now() + orders.c.deadline + bindparam("b_slack", type_=Double()),
    "sends": orders.c.sends + 1,
    "send_token": bindparam("b_send"),
}
MARK_SENT = (
    update(orders)
    .where(
        orders.c.id == bindparam("b_order"),
        rows.may(orders.c.state, "call", Verb.SEND),
        orders.c.holder == bindparam("b_holder"),
    )
    .values(carrier=func.coalesce(bindparam("b_carrier", type_=Text()), orders.c.carrier), **_sent_values)
    .returning(orders.c.sends, orders.c.first_sent_at, orders.c.sent_at, orders.c.deadline_at)
)
MARK_RESENT = (
    update(orders)
    .where(orders.c.id == bindparam("b_order"), rows.may(orders.c.state, "call", Verb.RESEND))
    .values(
        holder=bindparam("b_holder"),
        carrier=bindparam("b_carrier"),
        task_id=bindparam("b_task"),
        run_id=bindparam("b_run"),
        approved=False,  # a person approves one resend, not all later ones
        **_sent_values,
    )
)
CALLS_SENT = (
    update(calls)
    .where(calls.c.order_id == bindparam("b_order"), calls.c.state == bindparam("b_from"))
    .values(state=literal(CallState.SENT))
)


class NotAllMineError(Exception):
    """A call of the order is not in the state that the mark expects: nothing was marked."""


@dataclass(frozen=True, slots=True)
class SendMark:
    """One mark: its random `token`, by which its sender recognises it; the `carrier`, None to leave it.

    `slack` is added to the deadline by which the outcome must be stored.
    """

    token: str
    carrier: str | None = None
    slack: float = 0.0

    @property
    def values(self) -> dict[str, Any]:
        """The values of the statements that mark."""
        return {"b_send": self.token, "b_carrier": self.carrier, "b_slack": self.slack}


def fence(tx: Tx, claim: Claim) -> Fenced | None:
    """Why this claim may not send; None if it may. A caller outside a task has none that could be taken."""
    if claim.task_id == NO_TASK:
        return None
    held = tasks.hold(tx, claim, change=False)
    if isinstance(held, Landed):
        return Fenced("finished")
    return held if isinstance(held, Fenced) else None


def send(db: Database, claim: Claim, intended: Order, mark: SendMark | None = None) -> Order | Fenced:
    """The order and all its calls are marked sent under the fence. Only then may its first byte leave."""
    mark = mark or SendMark(db.token())

    def body(tx: Tx) -> Order | Fenced:
        if (refused := fence(tx, claim)) is not None:
            return refused
        return mark_intent(tx, intended, claim.token, mark)

    try:
        return db.write("send", body)
    except NotAllMineError:
        return Fenced(INTENT_LOST)


def mark_intent(tx: Tx, intended: Order, holder: str, mark: SendMark) -> Order | Fenced:
    """The intended order is marked sent, with all its calls; the fence was passed in this transaction.

    Raises NotAllMineError; then the transaction must be rolled back.
    """
    if tx.again:
        row = tx.execute(ORDER_FOR_CHANGE, {"order_id": intended.id}).one()
        # By the token alone: a worker and a relay mark under the same claim.
        if row.state == CallState.SENT and row.send_token == mark.token:
            return order(tx.execute(ORDER, {"order_id": intended.id}).one())
    marked = tx.one(MARK_SENT, {"b_order": intended.id, "b_holder": holder, **mark.values})
    if marked is None:
        return Fenced(INTENT_LOST)
    changed = tx.execute(CALLS_SENT, {"b_order": intended.id, "b_from": CallState.INTENT.value}).rowcount
    if changed != len(intended.call_keys):
        raise NotAllMineError
    return replace(intended, state=CallState.SENT, **marked._asdict())


def resend(
    db: Database, claim: Claim, order_id: str, send_token: str, carrier: str | None = None
) -> Order | Fenced:
    """The in-doubt order is marked sent again, now held by `claim`; its body and key stay unchanged.

    Without an idempotency key this send may be charged in addition to the one in doubt, so its price is
    reserved again. Raises OverBudgetError, and then nothing was marked.
    """

    def body(tx: Tx) -> Order | Fenced:
        if (refused := fence(tx, claim)) is not None:
            return refused
        return mark_doubt(tx, order_id, claim, SendMark(send_token, carrier))

    return db.write("resend", body)


def mark_doubt(tx: Tx, order_id: str, claim: Claim, mark: SendMark) -> Order | Fenced:
    """The in-doubt order is marked sent again for `claim`; the fence was passed in this transaction."""
    row = tx.execute(ORDER_FOR_CHANGE, {"order_id": order_id}).one()
    if row.state == CallState.SENT and row.send_token == mark.token:
        return order(tx.execute(ORDER, {"order_id": order_id}).one())
    if row.state != CallState.IN_DOUBT:
        return Fenced(f"order_{row.state}")
    holder = {"b_holder": claim.token, "b_task": claim.task_id or None, "b_run": claim.run_id or None}
    tx.execute(MARK_RESENT, {"b_order": order_id, **holder, **mark.values})
    tx.execute(CALLS_SENT, {"b_order": order_id, "b_from": CallState.IN_DOUBT.value})
    if not row.keyed:
        budgets.reserve(tx, row.tenant, row.scopes, row.estimate, unpriced=row.unpriced)
    journal.write(
        tx, journal.of_claim(Verb.RESEND, "in_doubt", claim, {"order": order_id, "send": row.sends + 1})
    )
    return order(tx.execute(ORDER, {"order_id": order_id}).one())


ORDER_AND_APPROVAL = select(
    orders.c.state,
    orders.c.provider,
    orders.c.endpoint,
    orders.c.model,
    orders.c.keyed,
    orders.c.estimate,
    orders.c.unpriced,
    orders.c.approved,
    orders.c.doubts,
    orders.c.reason,
    orders.c.status_code,
    orders.c.first_sent_at,
    now().label("now"),
).where(orders.c.id == bindparam("order_id"))
