"""The mind map of a collection, or of one of its documents: topics that open to passages."""

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import RedirectResponse, Response

from holdfast.kinds import mindmap
from holdfast.web import derived_jobs, rendering
from holdfast.web.collections import PathCollection
from holdfast.web.documents import PathDocument
from holdfast.web.page_access import Services

router = rendering.router()


@router.get("/collections/{name}/mindmap")
def mind_map(
    request: Request, services: Services, who: rendering.Who, collection: PathCollection
) -> Response:
    """Show the mind map of a collection."""
    return rendering.page(
        request,
        who,
        "mindmap.html",
        f"Mind map of {collection.title}",
        collection=collection,
        actions=len(services.actions.all(who.tenant, collection.id)),
        mind_map=services.mind_maps.of_collection(collection),
        document=None,
        job=derived_jobs.of_collection(services, who.tenant, collection.id, mindmap.NAME),
        source=f"/api/v1/collections/{collection.id}/mindmap",
    )


@router.get("/documents/{name}/mindmap")
def document_mind_map(
    request: Request, services: Services, who: rendering.Who, document: PathDocument
) -> Response:
    """Show the mind map of a document."""
    collection = services.collections.get(who.tenant, document.collection)
    return rendering.page(
        request,
        who,
        "mindmap.html",
        f"Mind map of {document.title}",
        collection=collection,
        actions=len(services.actions.all(who.tenant, collection.id)),
        mind_map=services.mind_maps.of_document(document),
        document=document,
        job=derived_jobs.of_collection(services, who.tenant, collection.id, mindmap.NAME),
        source=f"/api/v1/documents/{document.id}/mindmap",
    )


@router.get("/documents/{name}/passage")
def passage(
    services: Services,
    document: PathDocument,
    number: Annotated[int, Query(ge=0, lt=2**31, description="The number of a chunk.")],
    generation: Annotated[int, Query(ge=0, lt=2**62, description="The version that it is of.")] = 0,
) -> Response:
    """Go to a chunk by its number; to the beginning of the document if that version was replaced."""
    chunk = services.trees.chunk(document, generation, number)
    where = "" if chunk is None else f"?at={chunk.slice}.{chunk.position}#c-{chunk.slice}-{chunk.position}"
    return RedirectResponse(f"/documents/{document.id}{where}", status_code=303)
