"""Money before and after: estimates, the bill, budgets, and orders that a person must decide about."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from fastapi.responses import Response
from pydantic import AfterValidator, Field

from holdfast.api import parameters, routing, schemas_money
from holdfast.api.access import Admin, Reader
from holdfast.api.errors import Problem
from holdfast.api.idempotency import IdempotencyKey, RouteReply, answer_once, fingerprint
from holdfast.api.limits import BodyKind
from holdfast.api.parameters import Services
from holdfast.api.schemas_actions import Sort
from holdfast.api.schemas_documents import Shape, dollars
from holdfast.bootstrap import AppServices
from holdfast.core.errors import BadRequestError
from holdfast.core.states import CallState
from holdfast.service import estimates
from holdfast.service.access import Scope
from holdfast.service.billing import checked_scope
from holdfast.service.estimates import Estimate
from holdfast.service.records import By, TimeRange
from holdfast.web.slow_requests import Pool

router = routing.router("money")

Unsettled = Literal["intent", "sent", "in_doubt", "parked"]
Moment = datetime | None


def _seconds(at: datetime | None) -> float | None:
    if at is None:
        return None
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()


def _limits(services: AppServices, tenant: str) -> list[schemas_money.BudgetResponse]:
    return [schemas_money.BudgetResponse.of(each) for each in services.billing.budgets(tenant)]


@router.get("/bill")
def bill(
    services: Services,
    caller: Reader,
    by: Annotated[By, Query(description="How to group the lines.")] = By.MODEL,
    since: Annotated[Moment, Query(alias="from", description="From then on.")] = None,
    until: Annotated[Moment, Query(alias="to", description="Before then.")] = None,
    cursor: parameters.Cursor = None,
) -> schemas_money.BillResponse:
    """Show what was paid, is in doubt and was saved: by reuse, and by refusing duplicates."""
    if cursor is not None and "\x00" in cursor:
        raise BadRequestError(
            "this cursor is not valid; use `next` from the previous page", code="bad_cursor"
        )
    span = TimeRange(_seconds(since), _seconds(until))
    page = services.billing.bill(caller.tenant, by, span, after=cursor)
    return schemas_money.BillResponse.of(page, _limits(services, caller.tenant))


@router.get("/budgets")
def budgets(services: Services, caller: Reader) -> schemas_money.Budgets:
    """List the budgets: that of the tenant, and those of its collections."""
    return schemas_money.Budgets(budgets=_limits(services, caller.tenant))


@router.put("/budgets", response_model=schemas_money.ChangedBudget)
def set_budget(
    request: Request,
    services: Services,
    caller: Admin,
    body: schemas_money.BudgetChange,
    key: IdempotencyKey = None,
) -> Response:
    """Set a limit of the tenant or of a collection; work that waited for the budget continues at once."""
    money = services.billing

    def do() -> RouteReply:
        collection = checked_scope(body.scope)
        if collection is not None and not money.limited(caller.tenant, body.scope):
            services.collections.get(caller.tenant, collection)
        changed = money.set_budget(
            caller.tenant, body.scope, **body.limits(), period=body.period, actor=caller.actor
        )
        budget = None if changed.budget is None else schemas_money.BudgetResponse.of(changed.budget)
        return RouteReply(200, schemas_money.ChangedBudget(budget=budget, resumed=changed.resumed))

    return answer_once(
        services,
        caller.tenant,
        key,
        lambda: fingerprint(request, body.model_dump_json(exclude_unset=True)),
        do,
    )


def _whole(text: str) -> str:
    """The text, if it could be that of a document; ValueError for one with half a character in it."""
    text.encode()
    return text


class EstimatedAction(Shape):
    """An action that is not added yet."""

    sort: Sort
    params: Annotated[dict[str, Any], Field(default_factory=dict)]


class EstimateRequest(Shape):
    """What is to be estimated.

    With `text`: indexing it, in `collection` if that is given. With `collection` alone: indexing again
    whatever is not as it would be with these `options` (null: the default). With `collection` and `kind`:
    that job with these `params`. With `collection` and `action` (`sort` and `params`): that action on every
    document of the collection that is ready.
    """

    collection: Annotated[str, Field(max_length=64)] | None = None
    text: Annotated[str, AfterValidator(_whole)] | None = None
    options: Annotated[dict[str, Any], Field(default_factory=dict)]
    kind: Annotated[str, Field(max_length=40)] | None = None
    params: Annotated[dict[str, Any], Field(default_factory=dict)]
    action: EstimatedAction | None = None


class EstimateShape(Shape):
    """What it would cost, in US dollars: `tokens` in `calls` are to be paid, the others are known already.

    `cost` is null when no price is known for the model; `unpriced_calls` are not in it.
    `calls_between`, the fewest and the most, is of jobs whose later phases depend on answers; else null.
    `documents` would be done, of which `unknown` have no text that is known yet and count as nothing. `exact`
    is false for a sample and for text that had to be put together again; `estimated_from` says what was
    looked at. `fingerprint` identifies what was estimated: pass it as `estimate` with the request, which is
    then refused if it is for something else.
    """

    documents: int
    unknown: int
    calls: int
    calls_between: Annotated[list[int], Field(min_length=2, max_length=2)] | None
    tokens: int
    cost: float | None
    unpriced_calls: int
    reused_calls: int
    reused_tokens: int
    model: str
    prices: str
    exact: bool
    estimated_from: str
    fingerprint: str

    @classmethod
    def of(cls, estimate: Estimate, fingerprint: str) -> "EstimateShape":
        """The estimate as it is shown."""
        forecast = estimate.forecast
        return cls(
            documents=estimate.documents,
            unknown=estimate.unknown,
            calls=forecast.calls,
            calls_between=None if estimate.calls_between is None else list(estimate.calls_between),
            tokens=forecast.tokens,
            cost=None if forecast.price is None else dollars(forecast.price),
            unpriced_calls=forecast.unpriced_calls,
            reused_calls=forecast.known_calls,
            reused_tokens=forecast.known_tokens,
            model=estimate.model,
            prices=estimate.prices,
            exact=estimate.exact,
            estimated_from=estimate.estimated_from,
            fingerprint=fingerprint,
        )


@router.post("/estimate")
@routing.takes(BodyKind.TEXT)
@routing.waits(Pool.ESTIMATES)
def estimate(services: Services, caller: Reader, body: EstimateRequest) -> EstimateShape:
    """Say what something would cost before it is asked for; nothing is paid, and nothing is changed."""
    estimator = services.estimates(services.settings.estimate_seconds)
    collection = None if body.collection is None else parameters.valid_id(body.collection)
    if body.text is not None and body.kind is None:
        result = estimator.of_text(caller.tenant, body.text, collection=collection, options=body.options)
    elif collection is None:
        raise BadRequestError("send a `text`, or a `collection` that exists", code="bad_request")
    elif body.action is not None:
        options = services.actions.checked(body.action.sort, body.action.params)
        result = estimator.of_action(caller.tenant, collection, options)
    elif body.kind is not None:
        result = estimator.of_job(caller.tenant, collection, body.kind, body.params)
    else:
        result = estimator.of_collection(caller.tenant, collection, options=body.options)
    action = None if body.action is None else body.action.model_dump()
    what = {"options": body.options, "kind": body.kind, "params": body.params, "action": action}
    return EstimateShape.of(result, estimates.fingerprint(collection or "", **what))


@router.get("/orders")
def orders(
    services: Services,
    caller: Reader,
    state: Annotated[Unsettled | None, Query(description="Only these.")] = None,
) -> schemas_money.Orders:
    """List the orders that are not settled, the oldest first."""
    call_state = None if state is None else CallState(state)
    open_orders = services.billing.open_orders(caller.tenant, call_state)
    return schemas_money.Orders(orders=[schemas_money.OrderResponse.of(each) for each in open_orders])


@router.post(
    "/orders/{order_id}/resolve",
    response_model=schemas_money.OrderResponse,
    responses={409: {"model": Problem, "description": "It is neither in doubt nor parked."}},
)
def resolve_order(
    request: Request,
    services: Services,
    caller: Reader,
    order_id: parameters.Id,
    body: schemas_money.Resolution,
    key: IdempotencyKey = None,
) -> Response:
    """Say whether an order in doubt or parked was charged, so that work can go on."""
    services.billing.order(caller.tenant, order_id)
    caller.require(Scope.ADMIN)

    def do() -> RouteReply:
        order = services.billing.order(caller.tenant, order_id)
        services.billing.resolve(order, charged=body.charged, actor=caller.actor)
        return RouteReply(
            200, schemas_money.OrderResponse.of(services.billing.order(caller.tenant, order_id))
        )

    return answer_once(services, caller.tenant, key, lambda: fingerprint(request, body.model_dump_json()), do)
