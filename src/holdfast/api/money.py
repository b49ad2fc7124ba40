"""The bill, and orders that a person must decide about."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from holdfast.api import parts, shapes_more
from holdfast.api.access import Reader
from holdfast.api.errors import RESPONSES, ConflictError, Problem
from holdfast.api.once import IdempotencyKey, Reply, fingerprint
from holdfast.api.parts import Parts, PartsOf
from holdfast.core.errors import NotFoundError
from holdfast.core.states import CallState
from holdfast.service.access import Scope
from holdfast.store import billing
from holdfast.store import orders as store_orders
from holdfast.store.billing import By, OpenOrder

router = APIRouter(tags=["money"], responses=RESPONSES)

Unsettled = Literal["intent", "sent", "in_doubt", "parked"]


@router.get("/bill")
def bill(
    its: PartsOf, caller: Reader, by: Annotated[By, Query(description="What each line is about.")] = By.MODEL
) -> shapes_more.Bill:
    """Show what was paid, is in doubt and was saved."""
    return shapes_more.Bill.of(by, billing.bill(its.runtime.db, caller.tenant, by))


@router.get("/orders")
def orders(
    its: PartsOf, caller: Reader, state: Annotated[Unsettled | None, Query(description="Only these.")] = None
) -> shapes_more.Orders:
    """List the orders that are not settled, the oldest first."""
    wanted = None if state is None else CallState(state)
    found = billing.open_orders(its.runtime.db, caller.tenant, wanted)
    return shapes_more.Orders(orders=[shapes_more.Order.of(each) for each in found])


def _order(its: Parts, tenant: str, order_id: str) -> OpenOrder:
    found = billing.order(its.runtime.db, tenant, order_id)
    if found is None:
        raise NotFoundError(f"there is no order {order_id!r}", code="unknown_order")
    return found


@router.post(
    "/orders/{order_id}/resolve",
    response_model=shapes_more.Order,
    responses={409: {"model": Problem, "description": "It is neither in doubt nor parked."}},
)
def resolve_order(
    request: Request,
    its: PartsOf,
    caller: Reader,
    order_id: parts.Id,
    body: shapes_more.Resolution,
    key: IdempotencyKey = None,
) -> Response:
    """Say whether an order in doubt or parked was charged, so that work can go on."""
    _order(its, caller.tenant, order_id)
    caller.require(Scope.ADMIN)

    def do() -> Reply:
        found = _order(its, caller.tenant, order_id)
        if found.state not in {CallState.PARKED, CallState.IN_DOUBT}:
            message = f"order {order_id} is {found.state}; only one in doubt or parked can be resolved"
            raise ConflictError(message, code="nothing_to_resolve")
        store_orders.resolve(its.runtime.db, order_id, charged=body.charged, actor=caller.actor)
        return Reply(200, shapes_more.Order.of(_order(its, caller.tenant, order_id)))

    return its.once.answer(caller.tenant, key, lambda: fingerprint(request, body.model_dump_json()), do)
