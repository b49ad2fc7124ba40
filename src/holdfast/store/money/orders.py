"""The outcome of an order: settled, void, in doubt, parked. Guarded by order id and state, not by the fence.

Settling is the only unfenced write: a paid result is kept even if the worker was superseded. The first result
wins; every charge is an appended row, so a second one shows in the bill. An order that was sent without a
known outcome is *in doubt*: its price counts as spent until it is cleared. A refusal of a *resend* says
nothing about earlier exchanges, so the order stays in doubt: the first may have been charged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, and_, bindparam, func, not_, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core import decide, states
from holdfast.core.errors import BadRequestError
from holdfast.core.states import CallState, GoneBy, RelayState, TaskState, Verb
from holdfast.core.text import plain
from holdfast.store.base import journal
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import calls as call_table
from holdfast.store.base.schema import carriers, charges, duties, orders, relays, tasks
from holdfast.store.money import budgets, calls

BATCH = 200
# The price table of a charge without a known price: it has tokens but no amount.
UNPRICED = "unpriced"
# Nano-dollars; see `OrderRules.cheap`.
CHEAP = 50_000_000


@dataclass(frozen=True, slots=True)
class Receipt:
    """The outcome of an exchange: a result per key of the order, its tokens and its price."""

    results: Sequence[bytes]
    tokens: Sequence[int]
    costs: Sequence[int]
    prices: str
    replayed: bool = False

    @property
    def total_cost(self) -> int:
        """The price of the whole order."""
        return sum(self.costs)


CHARGE = (
    upsert(charges)
    .values(
        order_id=bindparam("b_order"),
        send=bindparam("b_send"),
        tenant=bindparam("b_tenant"),
        scope=bindparam("b_scope"),
        run_id=bindparam("b_run"),
        model=bindparam("b_model"),
        sort=bindparam("b_sort"),
        tokens=bindparam("b_tokens"),
        amount=bindparam("b_amount"),
        prices=bindparam("b_prices"),
        at=now(),
    )
    .on_conflict_do_nothing()
)
SETTLE_CALL = (
    update(call_table)
    .where(
        call_table.c.tenant == bindparam("b_tenant"),
        call_table.c.key == bindparam("b_key"),
        call_table.c.order_id == bindparam("b_order"),
        call_table.c.state != literal(CallState.SETTLED),
    )
    .values(
        state=literal(CallState.SETTLED),
        result=bindparam("b_result"),
        tokens=bindparam("b_tokens"),
        cost=bindparam("b_cost"),
        settled_at=now(),
    )
)
SETTLE_ORDER = (
    update(orders)
    .where(orders.c.id == bindparam("b_order"))
    # The body was kept for a resend; a settled order is never resent.
    .values(state=literal(CallState.SETTLED), settled_at=now(), reason=None, body=b"")
)
CLEAR_DOUBTS = (
    update(charges)
    .where(
        charges.c.order_id == bindparam("b_order"),
        charges.c.sort == "in_doubt",
        or_(bindparam("b_all"), charges.c.send == bindparam("b_send")),
    )
    .values(cleared=True)
)
DOUBTED = select(func.coalesce(func.sum(charges.c.amount), 0)).where(
    charges.c.order_id == bindparam("b_order"), charges.c.sort == "in_doubt", not_(charges.c.cleared)
)
CHARGED = select(charges.c.sort).where(
    charges.c.order_id == bindparam("b_order"),
    charges.c.send == bindparam("b_send"),
    charges.c.sort.in_(["paid", "second"]),
)


def _charge(row: Row[Any], send: int, kind: str, tokens: int, amount: int, prices: str) -> dict[str, Any]:
    narrow = [scope for scope in row.scopes if scope.startswith("collection:")]
    return {
        "b_order": row.id,
        "b_send": send,
        "b_tenant": row.tenant,
        "b_scope": narrow[0] if narrow else budgets.TENANT,
        "b_run": row.run_id,
        "b_model": row.model,
        "b_sort": kind,
        "b_tokens": tokens,
        "b_amount": amount,
        "b_prices": prices,
    }


def _clear(tx: Tx, order_id: str, send: int, *, every: bool = False) -> int:
    """The doubt about `send` (or every send) is cleared. Returns the amount that was in doubt."""
    before = int(tx.execute(DOUBTED, {"b_order": order_id}).scalar_one())
    tx.execute(CLEAR_DOUBTS, {"b_order": order_id, "b_all": every, "b_send": send})
    return before - int(tx.execute(DOUBTED, {"b_order": order_id}).scalar_one())


def _take_back(tx: Tx, row: Row[Any], doubted: int) -> None:
    """A doubt that has counted as spent since its order settled no longer does."""
    budgets.account(tx, row.tenant, row.scopes, spent=-doubted, freed=0, counted_at=row.settled_at)


def _locked(tx: Tx, order_id: str) -> Row[Any]:
    row = tx.one(calls.ORDER_FOR_CHANGE, {"order_id": order_id})
    if row is None:
        raise BadRequestError(f"there is no order {order_id}; see: holdfast orders", code="unknown_order")
    return row


def settle(db: Database, order_id: str, send: int, receipt: Receipt) -> bool:
    """The order's results are stored and its charge is in the bill; True if these results count.

    A second result of a settled order changes no call. Unless the provider honours keys (then it was the same
    charge) it is appended as a second charge. What is still in doubt when an order settles counts as spent
    from then on: doubts of other sends, and a later send that is still under way.
    """

    def body(tx: Tx) -> bool:
        row = _locked(tx, order_id)
        tokens, cost = sum(receipt.tokens), receipt.total_cost
        if row.state == CallState.SETTLED:
            known = tx.one(CHARGED, {"b_order": order_id, "b_send": send})
            if known is None and not (row.keyed or receipt.replayed):
                tx.execute(CHARGE, _charge(row, send, "second", tokens, cost, receipt.prices))
                _take_back(tx, row, _clear(tx, order_id, send))
                budgets.account(tx, row.tenant, row.scopes, spent=cost, freed=0)
            return known is not None and known.sort == "paid"
        tx.execute(CHARGE, _charge(row, send, "paid", tokens, cost, receipt.prices))
        if row.doubts:
            _clear(tx, order_id, send, every=row.keyed)
        another = row.state == CallState.SENT and row.sends != send and not row.keyed
        if another:
            tx.execute(
                CHARGE,
                _charge(
                    row, row.sends, "in_doubt", 0, row.estimate, UNPRICED if row.unpriced else "estimate"
                ),
            )
        common = {"b_tenant": row.tenant, "b_order": order_id}
        values = [
            common | {"b_key": key, "b_result": result, "b_tokens": used, "b_cost": price}
            for key, result, used, price in zip(
                row.call_keys, receipt.results, receipt.tokens, receipt.costs, strict=True
            )
        ]
        tx.execute(SETTLE_CALL, values)
        tx.execute(SETTLE_ORDER, {"b_order": order_id})
        # Most orders were never in doubt and need no lookup in the bill.
        open_doubts = row.doubts or another
        doubted = int(tx.execute(DOUBTED, {"b_order": order_id}).scalar_one()) if open_doubts else 0
        freed = 0 if row.state == CallState.VOID else budgets.held(row)
        budgets.account(tx, row.tenant, row.scopes, spent=cost + doubted, freed=freed)
        return True

    return db.write("settle", body)


SET_ORDER = (
    update(orders)
    .where(orders.c.id == bindparam("b_order"))
    .values(state=bindparam("b_state"), reason=bindparam("b_reason"), status_code=bindparam("b_status"))
)
SET_CALLS = (
    update(call_table)
    .where(call_table.c.order_id == bindparam("b_order"), call_table.c.state != literal(CallState.SETTLED))
    .values(state=bindparam("b_state"))
)


def _set_state(tx: Tx, row: Row[Any], state: CallState, reason: str, status: int | None = None) -> None:
    values = {"b_order": row.id, "b_state": state.value}
    tx.execute(SET_ORDER, values | {"b_reason": plain(reason)[:300], "b_status": status})
    tx.execute(SET_CALLS, values)


def void(
    db: Database,
    order_id: str,
    send: int,
    *,
    reason: str,
    status: int | None = None,
    for_good: bool = False,
    send_token: str | None = None,
) -> CallState:
    """An exchange that was not charged is over: the order is void and its keys are free.

    If an earlier exchange of the same order is in doubt, the order is in doubt again instead. If an earlier
    one has settled it meanwhile, only the doubt about this one is cleared. `for_good`: this body will always
    be refused. Then the doubt stays in the bill but the keys are freed all the same; otherwise one bad input
    would block every other input of its order. With `send_token` only that mark is taken back: for a sender
    that does not know whether it has marked the order.
    """

    def body(tx: Tx) -> CallState:
        row = _locked(tx, order_id)
        if send_token is not None and row.send_token != send_token:
            return CallState(row.state)
        if row.state == CallState.SETTLED:
            _take_back(tx, row, _clear(tx, order_id, send))
        if row.state == CallState.IN_DOUBT and row.sends == send == 1 and _clear(tx, order_id, send):
            # The sweep gave it up before the refusal arrived; it was the only send, so nothing was charged.
            freed = budgets.held(row)
            _set_state(tx, row, CallState.VOID, reason, status)
            tx.execute(FORGET_DOUBTS, {"b_order": order_id})
            budgets.account(tx, row.tenant, row.scopes, spent=0, freed=freed)
            _note(tx, Verb.VOID, reason, row)
            return CallState.VOID
        if row.state not in {CallState.INTENT, CallState.SENT} or row.sends != send:
            return CallState(row.state)
        if row.doubts:
            _set_state(tx, row, CallState.IN_DOUBT, reason, status)
            if for_good:
                tx.execute(SET_CALLS, {"b_order": order_id, "b_state": CallState.VOID.value})
            if not row.keyed:
                budgets.account(tx, row.tenant, row.scopes, spent=0, freed=row.estimate)
            return CallState.IN_DOUBT
        _set_state(tx, row, CallState.VOID, reason, status)
        budgets.account(tx, row.tenant, row.scopes, spent=0, freed=row.estimate)
        _note(tx, Verb.VOID, reason, row)
        return CallState.VOID

    return db.write("void", body)


def _note(tx: Tx, verb: Verb, reason: str, row: Row[Any]) -> None:
    data = {"order": row.id, "send": row.sends, "calls": len(row.call_keys), "estimate": row.estimate}
    task = tx.one(PLACE, {"task_id": row.task_id})
    noted = journal.entry(
        verb,
        plain(reason)[:300],
        tenant=row.tenant,
        head_id=task.head_id if task is not None else None,
        run_id=row.run_id,
        task_id=row.task_id,
        generation=task.generation if task is not None else None,
        data=data,
    )
    journal.write(tx, noted)


PLACE = select(tasks.c.head_id, tasks.c.generation).where(tasks.c.id == bindparam("task_id"))


FORGET_DOUBTS = update(orders).where(orders.c.id == bindparam("b_order")).values(doubts=0)
COUNT_DOUBT = update(orders).where(orders.c.id == bindparam("b_order")).values(doubts=orders.c.doubts + 1)


def doubt(db: Database, order_id: str, send: int, *, reason: str, status: int | None = None) -> CallState:
    """The sent order is in doubt: recorded, priced and shown; it counts as spent until it is cleared."""

    def body(tx: Tx) -> CallState:
        row = _locked(tx, order_id)
        if row.state != CallState.SENT or row.sends != send:
            return CallState(row.state)
        _doubt(tx, row, reason, status)
        return CallState.IN_DOUBT

    return db.write("doubt", body)


def _doubt(tx: Tx, row: Row[Any], reason: str, status: int | None = None) -> None:
    _set_state(tx, row, CallState.IN_DOUBT, reason, status)
    tx.execute(COUNT_DOUBT, {"b_order": row.id})
    tx.execute(
        CHARGE, _charge(row, row.sends, "in_doubt", 0, row.estimate, UNPRICED if row.unpriced else "estimate")
    )
    _note(tx, Verb.DOUBT, reason, row)


@dataclass(frozen=True, slots=True)
class OrderRules:
    """The rules for taking over an order that another process carries.

    `died` says whether a process has provably died. An order without a key and estimated at `cheap` or less
    is taken over before its deadline. `ttl` is the length of a lease.
    """

    died: Callable[[str], bool] = lambda _process: False
    cheap: int = CHEAP
    ttl: float = 12.0
    waits: decide.RivalWaits = field(default_factory=decide.RivalWaits)


FACTS = (
    select(
        orders.c.state,
        orders.c.keyed,
        orders.c.estimate,
        orders.c.unpriced,
        orders.c.task_id,
        (now() - orders.c.deadline_at).label("overdue"),
        and_(tasks.c.state == literal(TaskState.RUNNING), tasks.c.token == orders.c.holder).label("held"),
        (now() - carriers.c.lease_until).label("silence"),
        carriers.c.process,
        carriers.c.ended_at,
        relays.c.state.label("relay_state"),
        relays.c.gone_by,
        select(func.max(duties.c.grace_until) > now())
        .where(duties.c.name.in_(["leases", "orders"]))
        .scalar_subquery()
        .label("grace"),
    )
    .select_from(
        orders.outerjoin(tasks, tasks.c.id == orders.c.task_id)
        .outerjoin(carriers, carriers.c.id == orders.c.carrier)
        .outerjoin(relays, relays.c.id == orders.c.carrier)
    )
    .where(orders.c.id == bindparam("order_id"))
)


def _verdict(db: Database, row: Row[Any], rules: OrderRules) -> decide.Recovery | None:
    # A caller outside a task has no claim to lose: it may send for as long as its process lives.
    lives = row.silence is not None and row.silence <= 0
    carriage = decide.Carriage(
        state=CallState(row.state),
        keyed=row.keyed,
        cheap=not row.unpriced and row.estimate <= rules.cheap,
        held=bool(row.held) if row.task_id is not None else lives,
        overdue=row.overdue,
        silence=row.silence,
        died=row.ended_at is not None or (bool(row.process) and rules.died(row.process)),
        grace=bool(row.grace) or db.was_away(rules.ttl),
        relay=_relay(row),
    )
    return decide.recover(carriage, rules.waits)


def _relay(row: Row[Any]) -> decide.CarryingRelay | None:
    if row.relay_state is None:
        return None
    return decide.relay_of(RelayState(row.relay_state), None if row.gone_by is None else GoneBy(row.gone_by))


def recover(db: Database, order_id: str, rules: OrderRules | None = None) -> CallState:
    """An order whose holder will not end it is recovered as `decide.recover` says. Returns its state.

    It reads first and writes only if there is something to recover, as waiting callers poll often.
    """
    rules = rules or OrderRules()
    seen = db.first(FACTS, {"order_id": order_id})
    if seen is not None and _verdict(db, seen, rules) is None:
        return CallState(seen.state)

    def body(tx: Tx) -> CallState:
        row = _locked(tx, order_id)
        verdict = _verdict(db, tx.execute(FACTS, {"order_id": order_id}).one(), rules)
        if verdict is None:
            return CallState(row.state)
        if verdict.state is CallState.IN_DOUBT:
            _doubt(tx, row, verdict.reason)
        else:
            _set_state(tx, row, verdict.state, verdict.reason)
            budgets.account(tx, row.tenant, row.scopes, spent=0, freed=row.estimate)
            _note(tx, Verb.VOID, verdict.reason, row)
        return verdict.state

    return db.write("recover", body)


# After the wait of `decide.Waits.settle` no order is left alone, so that none hides another.
FORGOTTEN = (
    select(orders.c.id)
    .where(
        orders.c.state.in_([literal(CallState.INTENT), literal(CallState.SENT)]),
        orders.c.deadline_at < now() - bindparam("settle"),
    )
    .order_by(orders.c.deadline_at)
    .limit(BATCH)
)


def recover_forgotten(db: Database, rules: OrderRules | None = None) -> int:
    """No order stays unsent or unanswered long after its deadline. Returns how many were recovered."""
    rules = rules or OrderRules()
    order_ids = [row.id for row in db.look(FORGOTTEN, {"settle": rules.waits.settle})]
    open_states = {CallState.INTENT, CallState.SENT}
    return sum(recover(db, order_id, rules) not in open_states for order_id in order_ids)


def park(db: Database, order_id: str, *, reason: str) -> CallState:
    """The in-doubt order waits for a person."""

    def body(tx: Tx) -> CallState:
        row = _locked(tx, order_id)
        if states.may("call", CallState(row.state), Verb.PARK):
            _set_state(tx, row, CallState.PARKED, reason)
            _note(tx, Verb.PARK, reason, row)
            return CallState.PARKED
        return CallState(row.state)

    return db.write("park", body)


def resolve(
    db: Database, order_id: str, *, charged: bool, actor: str = "", send: int | None = None
) -> CallState:
    """A person has decided: a parked order may be resent with its key, or is void if it was not charged.

    `charged=False` frees the keys for a new order. `charged=True` (or unknown) resends the same order. With
    `send` the decision is about that send: it changes nothing if the order was sent again.
    """

    def body(tx: Tx) -> CallState:
        row = _locked(tx, order_id)
        if not states.may("call", CallState(row.state), Verb.RESOLVE) or send not in {None, row.sends}:
            return CallState(row.state)
        state = CallState.IN_DOUBT if charged else CallState.VOID
        _set_state(tx, row, state, f"resolved by {actor or 'a person'}")
        tx.execute(APPROVE, {"b_order": order_id})
        if not charged:
            tx.execute(CLEAR_DOUBTS, {"b_order": order_id, "b_all": True, "b_send": 0})
            budgets.account(tx, row.tenant, row.scopes, spent=0, freed=budgets.held(row))
        _note(tx, Verb.RESOLVE, state.value, row)
        return state

    return db.write("resolve", body)


APPROVE = update(orders).where(orders.c.id == bindparam("b_order")).values(approved=True)
