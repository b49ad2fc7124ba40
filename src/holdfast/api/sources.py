"""Sources of a collection: what documents come from by themselves."""

import base64
import binascii
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from fastapi.responses import Response

from holdfast.api import parameters, routing, schemas_sources
from holdfast.api.access import OwnCollection, PathCollection, PathDocument, Reader
from holdfast.api.collections import wish
from holdfast.api.errors import Problem
from holdfast.api.idempotency import IdempotencyKey, RouteReply, answer_once, fingerprint
from holdfast.api.parameters import Services
from holdfast.core.errors import BadRequestError
from holdfast.core.text import is_plain

router = routing.router("sources")

ItemCursor = Annotated[
    str | None, Query(max_length=4000, description="Where to continue: `next` from the previous page.")
]


@router.post(
    "/collections/{collection_id}/sources", status_code=201, response_model=schemas_sources.LookRequested
)
def add_source(
    request: Request,
    services: Services,
    caller: Reader,
    collection: OwnCollection,
    body: schemas_sources.NewSource,
    key: IdempotencyKey = None,
) -> Response:
    """Add a source, whose items become documents of the collection; its first look is requested."""

    def do() -> RouteReply:
        source, answer = services.sources.add(
            wish(caller),
            collection.id,
            body.type,
            body.options,
            name=body.name,
            refresh_every=body.refresh_every,
            prune=body.prune,
            metadata=body.metadata,
            labels=body.labels or (),
        )
        return RouteReply(201, schemas_sources.LookRequested.of(source, answer))

    return answer_once(services, caller.tenant, key, lambda: fingerprint(request, body.model_dump_json()), do)


@router.get("/collections/{collection_id}/sources")
def all_sources(services: Services, caller: Reader, collection: PathCollection) -> schemas_sources.SourceList:
    """List the sources of a collection, with their last and next looks."""
    listed = services.sources.all(caller.tenant, collection.id)
    return schemas_sources.SourceList(sources=[schemas_sources.CollectionSource.of(each) for each in listed])


@router.get("/collections/{collection_id}/sources/{source_id}")
def one_source(
    source_id: parameters.Id, services: Services, caller: Reader, collection: PathCollection
) -> schemas_sources.CollectionSource:
    """Show a source."""
    return schemas_sources.CollectionSource.of(services.sources.get(caller.tenant, collection.id, source_id))


@router.patch(
    "/collections/{collection_id}/sources/{source_id}",
    responses={409: {"model": Problem, "description": "Someone else has changed it at the same moment."}},
)
def change_source(
    source_id: parameters.Id,
    services: Services,
    caller: Reader,
    collection: OwnCollection,
    body: schemas_sources.SourceChange,
) -> schemas_sources.CollectionSource:
    """Change a source from its next look on; what is not named stays as it is."""
    source = services.sources.get(caller.tenant, collection.id, source_id)
    changes: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    return schemas_sources.CollectionSource.of(services.sources.change(wish(caller), source, **changes))


@router.delete("/collections/{collection_id}/sources/{source_id}", status_code=202)
def remove_source(
    source_id: parameters.Id,
    services: Services,
    caller: Reader,
    collection: OwnCollection,
    documents: Annotated[
        Literal["keep", "delete"], Query(description="What becomes of the documents of the source.")
    ] = "keep",
) -> schemas_sources.RemovedSource:
    """Remove a source; a look that is under way ends. Its documents stay, or go in the background.

    With `documents=delete`, those that a person uploaded as well, or that another source holds, stay.
    """
    source = services.sources.get(caller.tenant, collection.id, source_id)
    answer = services.sources.remove(wish(caller), source, delete_documents=documents == "delete")
    return schemas_sources.RemovedSource(id=source.id, documents=documents, run_id=answer.run_id)


@router.post("/collections/{collection_id}/sources/{source_id}/refresh", status_code=202)
def refresh_source(
    source_id: parameters.Id, services: Services, caller: Reader, collection: OwnCollection
) -> schemas_sources.LookRequested:
    """Look at a source now. While a look is under way that is answered as its duplicate."""
    source = services.sources.get(caller.tenant, collection.id, source_id)
    answer = services.sources.refresh(wish(caller), source)
    current = services.sources.get(caller.tenant, collection.id, source_id)
    return schemas_sources.LookRequested.of(current, answer)


@router.get("/collections/{collection_id}/sources/{source_id}/items")
def source_items(
    source_id: parameters.Id,
    services: Services,
    caller: Reader,
    collection: PathCollection,
    state: Annotated[schemas_sources.ItemStateName | None, Query(description="Only in this state.")] = None,
    limit: parameters.Limit = 100,
    cursor: ItemCursor = None,
) -> schemas_sources.SourceItemList:
    """List what a source held at its last look, by external id, with the document of each item."""
    source = services.sources.get(caller.tenant, collection.id, source_id)
    listed = services.sources.items(source, state=state, after=after(cursor), limit=limit)
    following = next_of(listed[-1].external_id) if len(listed) == limit else None
    return schemas_sources.SourceItemList(
        items=[schemas_sources.SourceItemResponse.of(each) for each in listed], next=following
    )


@router.get("/documents/{document_id}/sources")
def document_sources(
    services: Services, caller: Reader, document: PathDocument
) -> schemas_sources.OriginList:
    """Show which items of sources, and which uploads with an external id, a document came from."""
    origins = services.sources.of_document(caller.tenant, document.id)
    return schemas_sources.OriginList(origins=[schemas_sources.OriginResponse.of(each) for each in origins])


def next_of(external_id: str) -> str:
    """The cursor behind this external id: it may hold any character."""
    return base64.urlsafe_b64encode(external_id.encode()).decode().rstrip("=")


def after(cursor: str | None) -> str:
    """The external id that a cursor stands for; the empty text for none."""
    if cursor is None:
        return ""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, ValueError) as error:
        message = "this cursor is not valid; use `next` from the previous page"
        raise BadRequestError(message, code="bad_cursor") from error
    if not is_plain(text):
        raise BadRequestError("this cursor is not valid; use `next`", code="bad_cursor")
    return text
