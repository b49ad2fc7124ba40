"""Actions of a collection, what they did with a document, and webhook deliveries."""

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from holdfast.api import estimates, parameters, routing, schemas_actions
from holdfast.api.access import OwnCollection, OwnDocument, PathCollection, PathDocument, Reader
from holdfast.api.collections import wish
from holdfast.api.errors import Problem
from holdfast.api.idempotency import IdempotencyKey, RouteReply, answer_once, fingerprint
from holdfast.api.parameters import Services
from holdfast.core.errors import BadRequestError, ConflictError, NotFoundError
from holdfast.service.access import Scope

router = routing.router("actions")


@router.post(
    "/collections/{collection_id}/actions",
    status_code=201,
    response_model=schemas_actions.AddedAction,
    responses={
        200: {"model": schemas_actions.AddedAction, "description": "The collection already has this action."},
        409: {"model": Problem, "description": "The estimate was made for a different action."},
    },
)
def add_action(
    request: Request,
    services: Services,
    caller: Reader,
    collection: OwnCollection,
    body: schemas_actions.NewAction,
    key: IdempotencyKey = None,
) -> Response:
    """Add an action that runs on each document that becomes ready, or on the ready ones too."""

    def do() -> RouteReply:
        action = {"sort": body.sort, "params": body.params}
        estimates.check(body.estimate, collection.id, action=action)
        added = services.actions.add(
            wish(caller),
            collection.id,
            body.sort,
            body.params,
            name=body.name,
            existing=body.existing == "run",
        )
        shown = schemas_actions.ActionResponse.of(added.action)
        response = schemas_actions.AddedAction(
            action=shown, secret=added.secret, existing_documents=added.ready
        )
        return RouteReply(201 if added.created else 200, response)

    return answer_once(services, caller.tenant, key, lambda: fingerprint(request, body.model_dump_json()), do)


@router.get("/collections/{collection_id}/actions")
def all_actions(services: Services, caller: Reader, collection: PathCollection) -> schemas_actions.ActionList:
    """List the actions of a collection, with the state of their follow-ups."""
    listed = services.actions.all(caller.tenant, collection.id)
    return schemas_actions.ActionList(actions=[schemas_actions.ActionResponse.of(each) for each in listed])


def _number(action_id: str) -> int:
    if not (action_id.isascii() and action_id.isdigit() and len(action_id) < 19):
        raise NotFoundError(f"there is no action {action_id} in this collection", code="unknown_action")
    return int(action_id)


@router.delete("/collections/{collection_id}/actions/{action_id}")
def remove_action(
    action_id: parameters.Id, services: Services, caller: Reader, collection: OwnCollection
) -> schemas_actions.RemovedAction:
    """Remove an action; its follow-ups and deliveries that have not ended are cancelled."""
    removed = services.actions.remove(wish(caller), collection.id, _number(action_id))
    return schemas_actions.RemovedAction(action=schemas_actions.ActionResponse.of(removed))


@router.post("/collections/{collection_id}/actions/{action_id}/test", status_code=202)
def test_action(
    action_id: parameters.Id, services: Services, caller: Reader, collection: OwnCollection
) -> schemas_actions.DeliveryResponse:
    """Send a signed `webhook.test` to the URL of a webhook, as a delivery like any other.

    If an earlier test is still being delivered, that one is retried at once and returned.
    """
    event_id = services.actions.test(wish(caller), collection.id, _number(action_id))
    return schemas_actions.DeliveryResponse.of(services.deliveries.one(caller.tenant, event_id))


@router.get("/documents/{document_id}/actions")
def document_actions(
    services: Services, caller: Reader, document: PathDocument
) -> schemas_actions.FollowUpList:
    """Show what actions did with a document: state, result and cost of each follow-up."""
    listed = services.actions.of_document(document, caller.tenant)
    return schemas_actions.FollowUpList(
        follow_ups=[schemas_actions.FollowUpResponse.of(each) for each in listed]
    )


@router.get("/deliveries")
def all_deliveries(
    services: Services,
    caller: Reader,
    state: Annotated[schemas_actions.DeliveryState | None, Query(description="Only in this state.")] = None,
    limit: parameters.Limit = 100,
    cursor: parameters.Cursor = None,
) -> schemas_actions.DeliveryList:
    """List webhook deliveries, the newest first."""
    before = parameters.numbers(cursor, 1)
    listed = services.deliveries.page(
        caller.tenant, state=state, before=before[0] if before is not None else None, limit=limit
    )
    following = str(listed[-1].head_id) if len(listed) == limit else None
    return schemas_actions.DeliveryList(
        deliveries=[schemas_actions.DeliveryResponse.of(each) for each in listed], next=following
    )


@router.post(
    "/documents/{document_id}/actions/{action_id}/retry",
    status_code=202,
    responses={
        409: {"model": Problem, "description": "It is queued or running, has succeeded, or was removed."}
    },
)
def retry_follow_up(
    action_id: parameters.Id, services: Services, caller: Reader, document: OwnDocument
) -> schemas_actions.FollowUpResponse:
    """Retry an action that failed on a document; calls that were paid for are reused."""
    try:
        return schemas_actions.FollowUpResponse.of(
            services.actions.retry(wish(caller), document, _number(action_id))
        )
    except BadRequestError as error:
        raise ConflictError(error.message, code=error.code) from error


@router.get("/deliveries/{delivery_id}")
def one_delivery(
    delivery_id: parameters.Id, services: Services, caller: Reader
) -> schemas_actions.DeliveryResponse:
    """Show a delivery."""
    return schemas_actions.DeliveryResponse.of(services.deliveries.one(caller.tenant, delivery_id))


@router.post(
    "/deliveries/{delivery_id}/resend",
    status_code=202,
    responses={409: {"model": Problem, "description": "It is being sent."}},
)
def resend_delivery(
    delivery_id: parameters.Id, services: Services, caller: Reader
) -> schemas_actions.DeliveryResponse:
    """Send an event once more, at once, with the same id and the same body."""
    services.deliveries.one(caller.tenant, delivery_id)
    caller.require(Scope.WRITE)
    if not services.deliveries.resend(wish(caller), delivery_id):
        raise ConflictError("this delivery is already queued or being sent", code="delivery_busy")
    return schemas_actions.DeliveryResponse.of(services.deliveries.one(caller.tenant, delivery_id))
