"""Orders in the hands of a relay: what it needs to know before it sends one, and its marks.

A worker hands over an order that nobody has sent: an intent of its own, or an order in doubt that it has made
its own (`adopt`). The mark is the only hand-over: until then worker and relay may both mark it, and the row
lets one of them win. The fence of a mark is built from the row, never from what the worker said: a message
that names no task must not pass without one.
"""

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, bindparam, case, func, select, update

from holdfast.core.records import Claim, Fenced, Order
from holdfast.core.states import CallState, Lane
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import heads, orders, runs, tasks
from holdfast.store.money import calls, relays

# Seconds between the deadline of a carried order and the time by which its outcome must be stored.
SLACK = 15.0
# A longer body is read only when its order may be sent: those that wait must not fill the memory.
SHORT_BODY = 65_536
RELAY_GONE = "relay_gone"
_bytes = func.length(orders.c.body)
OFFERED = (
    select(
        *(column for column in calls.ORDER_COLUMNS if column is not orders.c.body),
        case((_bytes <= SHORT_BODY, orders.c.body), else_=None).label("body"),
        _bytes.label("size"),
        func.coalesce(tasks.c.lane, literal(Lane.INTERACTIVE)).label("lane"),
    )
    .select_from(orders.outerjoin(tasks, tasks.c.id == orders.c.task_id))
    .where(orders.c.id == bindparam("order_id"))
)


@dataclass(frozen=True, slots=True)
class OfferedOrder:
    """An order that a worker hands over; `size` is the length of its body, which may not be read yet."""

    order: Order
    lane: str
    size: int
    is_read: bool


def offered(db: Database, order_id: str) -> OfferedOrder | None:
    """The order and how urgent it is; None if there is no such order in this database."""
    row = db.first(OFFERED, {"order_id": order_id})
    if row is None:
        return None
    is_read = row.body is not None
    body = row.body if is_read else b""
    values = {name: getattr(row, name) for name in Order.__dataclass_fields__ if name != "body"}
    lists = {"call_keys": tuple(row.call_keys), "weights": tuple(row.weights)}
    order = Order(**values | lists | {"state": CallState(row.state), "body": bytes(body)})
    return OfferedOrder(order, row.lane, row.size, is_read)


BODY = select(orders.c.body).where(orders.c.id == bindparam("order_id"))


def with_body(db: Database, offer: OfferedOrder) -> Order:
    """The order with its body."""
    if offer.is_read:
        return offer.order
    row = db.first(BODY, {"order_id": offer.order.id})
    return replace(offer.order, body=b"" if row is None else bytes(row.body))


# Whose order it is: the claim of the task under the token in the order.
HOLDER = (
    select(
        orders.c.holder,
        orders.c.tenant,
        orders.c.run_id,
        tasks.c.id.label("task_id"),
        tasks.c.head_id,
        tasks.c.generation,
        tasks.c.ordinal,
        tasks.c.epoch,
        tasks.c.token,
        tasks.c.owner,
        tasks.c.lane,
        tasks.c.priority,
        tasks.c.pipeline,
        tasks.c.phase,
        tasks.c.attempts,
        tasks.c.lease_until,
        runs.c.kind,
        runs.c.subject,
        heads.c.collection,
        orders.c.task_id.is_not(None).label("has_task"),
    )
    .select_from(
        orders.outerjoin(tasks, tasks.c.id == orders.c.task_id)
        .outerjoin(runs, runs.c.id == tasks.c.run_id)
        .outerjoin(heads, heads.c.id == tasks.c.head_id)
    )
    .where(orders.c.id == bindparam("order_id"))
)


def _claim(row: Row[Any]) -> Claim:
    """The claim that holds the order, as far as the fence and the journal need it."""
    return Claim(
        task_id=row.task_id or 0,
        run_id=row.run_id or "",
        head_id=row.head_id or 0,
        tenant=row.tenant,
        kind=row.kind or "query",
        subject=row.subject or "",
        collection=row.collection,
        generation=row.generation or 0,
        ordinal=row.ordinal or 0,
        epoch=row.epoch or 0,
        token=row.holder,
        owner=row.owner or "",
        lane=row.lane or "",
        priority=row.priority or 0,
        pipeline=row.pipeline or "",
        content="",
        options={},
        payload={},
        attempts=row.attempts or 0,
        lease_until=row.lease_until or 0.0,
        phase=row.phase or 0,
    )


def mark(db: Database, relay_id: str, order: Order, token: str) -> Order | Fenced:
    """The order is marked sent by the relay, under the fence of its holder. Only then may a byte of it leave.

    `token` is random for this mark. Raises OverBudgetError for an order in doubt whose price cannot be
    reserved again, and then nothing was marked. Never a relaxed commit: a mark that a power cut loses would
    be sent twice.
    """
    mark = calls.SendMark(token, relay_id, SLACK)

    def body(tx: Tx) -> Order | Fenced:
        if not relays.is_present(tx, relay_id):
            return Fenced(RELAY_GONE)
        row = tx.one(HOLDER, {"order_id": order.id})
        if row is None or row.holder != order.holder:
            return Fenced(calls.INTENT_LOST)
        claim = _claim(row)
        if row.has_task and (row.task_id is None or row.token != row.holder):
            return Fenced("stale_epoch")
        if (refused := calls.fence(tx, claim)) is not None:
            return refused
        if order.state is CallState.IN_DOUBT:
            return calls.mark_doubt(tx, order.id, claim, mark)
        return calls.mark_intent(tx, order, row.holder, mark)

    try:
        return db.write("mark", body)
    except calls.NotAllMineError:
        return Fenced(calls.INTENT_LOST)


ADOPT = (
    update(orders)
    .where(orders.c.id == bindparam("b_order"), orders.c.state == literal(CallState.IN_DOUBT))
    .values(holder=bindparam("b_holder"), task_id=bindparam("b_task"), run_id=bindparam("b_run"))
)


def adopt(db: Database, claim: Claim, order_id: str) -> Fenced | None:
    """The order in doubt is held by `claim`, so that a relay may resend it for it; otherwise why not."""
    holder = {"b_holder": claim.token, "b_task": claim.task_id or None, "b_run": claim.run_id or None}

    def body(tx: Tx) -> Fenced | None:
        if (refused := calls.fence(tx, claim)) is not None:
            return refused
        if not tx.execute(ADOPT, {"b_order": order_id, **holder}).rowcount:
            return Fenced("order_changed")
        return None

    return db.write("adopt", body)
