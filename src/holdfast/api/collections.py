"""Collections: create, read, change, delete."""

import secrets

from fastapi import Request
from fastapi.responses import Response

from holdfast.api import estimates, routing, schemas_documents
from holdfast.api.access import OwnCollection, PathCollection, Reader, Writer, filtered
from holdfast.api.errors import Problem
from holdfast.api.idempotency import IdempotencyKey, RouteReply, answer_once, fingerprint
from holdfast.api.parameters import Services
from holdfast.bootstrap import AppServices
from holdfast.core.errors import ConflictError, NotFoundError
from holdfast.service.access import Identity
from holdfast.service.records import Collection
from holdfast.service.requests import RequestContext

router = routing.router("collections")


def wish(caller: Identity) -> RequestContext:
    """What the caller does, in their name."""
    return RequestContext(caller.tenant, caller.actor, restriction=caller.restriction)


def _existing(services: AppServices, tenant: str, collection_id: str) -> Collection | None:
    try:
        return services.collections.get(tenant, collection_id)
    except NotFoundError:
        return None


@router.post(
    "/collections",
    status_code=201,
    response_model=schemas_documents.CollectionResponse,
    responses={
        200: {
            "model": schemas_documents.CollectionResponse,
            "description": "It already existed with the same title and options.",
        },
        409: {"model": Problem, "description": "It exists with another title or other options."},
    },
)
def make_collection(
    request: Request,
    services: Services,
    caller: Writer,
    body: schemas_documents.NewCollection,
    key: IdempotencyKey = None,
) -> Response:
    """Create a collection."""

    def do() -> RouteReply:
        name = body.id or secrets.token_hex(8)
        before = _existing(services, caller.tenant, name)
        collection = before or services.collections.make(
            wish(caller), name, title=body.title, options=body.options
        )
        differs = (
            body.title and " ".join(body.title.split()) != collection.title
        ) or body.options != collection.options
        if before is not None and differs:
            message = f"collection {name} exists with another title or other options; PATCH changes it"
            raise ConflictError(message, code="collection_exists")
        return RouteReply(
            201 if before is None else 200,
            schemas_documents.CollectionResponse.of(collection, services.collections.choices(collection)),
        )

    return answer_once(services, caller.tenant, key, lambda: fingerprint(request, body.model_dump_json()), do)


@router.get("/collections")
@filtered
def all_collections(services: Services, caller: Reader) -> schemas_documents.CollectionList:
    """List the collections, by id."""
    collections = services.collections.all(caller.tenant)
    return schemas_documents.CollectionList(
        collections=[
            schemas_documents.CollectionResponse.of(each, services.collections.choices(each))
            for each in collections
        ]
    )


@router.get("/collections/{collection_id}")
@filtered
def one_collection(services: Services, collection: PathCollection) -> schemas_documents.CollectionResponse:
    """Show a collection."""
    return schemas_documents.CollectionResponse.of(collection, services.collections.choices(collection))


@router.patch(
    "/collections/{collection_id}",
    responses={409: {"model": Problem, "description": "The estimate was made for different options."}},
)
def change_collection(
    services: Services, caller: Reader, collection: OwnCollection, body: schemas_documents.CollectionChange
) -> schemas_documents.ChangedCollection:
    """Change title or options; changed options reindex every document, at the lowest priority.

    Some are requested at once; the other `to_follow` documents follow in the background.
    """
    estimates.check(body.estimate, collection.id, options=body.options or {})
    mine = RequestContext(caller.tenant, caller.actor, max_cost=schemas_documents.nano_dollars(body.max_cost))
    changed = services.collections.change(
        mine, collection.id, title=body.title, options=body.options, search=body.search
    )
    response = schemas_documents.CollectionResponse.of(
        changed.collection, services.collections.choices(changed.collection)
    )
    return schemas_documents.ChangedCollection(
        collection=response, requested=changed.requested, to_follow=changed.to_follow
    )


@router.delete("/collections/{collection_id}")
def delete_collection(
    services: Services, caller: Reader, collection: OwnCollection
) -> schemas_documents.Deleted:
    """Delete a collection and all its documents; they are no longer visible."""
    gone = services.collections.delete(wish(caller), collection.id)
    return schemas_documents.Deleted(deleted=gone.deleted, to_follow=gone.to_follow)
