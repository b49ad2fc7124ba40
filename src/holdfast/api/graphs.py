"""The knowledge graph of a collection: entities, relations, communities and their reports."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import AfterValidator

from holdfast.api import parameters, routing
from holdfast.api.access import PathCollection, Reader, filtered
from holdfast.api.parameters import Services
from holdfast.api.schemas_graphs import (
    CommunitiesResponse,
    CommunityResponse,
    EntityDetailsResponse,
    GraphResponse,
    NeighboursResponse,
)
from holdfast.service.graphs import GraphPosition

router = routing.router("graph")

PageLimit = Annotated[int, Query(ge=1, le=100, description="Maximum number of items.")]
NodeKey = Annotated[str, Path(description="A key."), AfterValidator(parameters.valid_id)]
Level = Annotated[int | None, Query(ge=1, le=100, description="Only reports of this level; 1 is the lowest.")]
Parent = Annotated[
    str | None, Query(pattern="^[0-9a-f]{1,64}$", description="Only communities below this one.")
]


def _after(cursor: str | None) -> GraphPosition | None:
    numbers = parameters.numbers(cursor, 2)
    return None if numbers is None else GraphPosition(*numbers)


@router.get("/collections/{collection_id}/graph")
@filtered
def graph(
    services: Services,
    caller: Reader,
    collection: PathCollection,
    q: Annotated[str, Query(max_length=200, description="Words of a name, or their beginnings.")] = "",
    kind: Annotated[
        str | None, Query(max_length=100, description="Only entities of this kind, like `person`.")
    ] = None,
    limit: PageLimit = 50,
    cursor: parameters.Cursor = None,
) -> GraphResponse:
    """Read what is in the knowledge graph of a collection, and its entities, the most mentioned first."""
    page = services.graphs.entities(
        caller.tenant, collection.id, only=caller.only, q=q, kind=kind, after=_after(cursor), limit=limit
    )
    return GraphResponse.of(page)


@router.get("/collections/{collection_id}/graph/entities/{entity}")
@filtered
def graph_entity(
    services: Services, caller: Reader, collection: PathCollection, entity: NodeKey
) -> EntityDetailsResponse:
    """Read an entity with its description and the passages that it was made of."""
    details = services.graphs.entity(caller.tenant, collection.id, entity, only=caller.only)
    return EntityDetailsResponse.whole(details)


@router.get("/collections/{collection_id}/graph/entities/{entity}/neighbours")
@filtered
def graph_neighbours(
    services: Services,
    caller: Reader,
    collection: PathCollection,
    entity: NodeKey,
    limit: PageLimit = 50,
    cursor: parameters.Cursor = None,
) -> NeighboursResponse:
    """Read the relations of an entity with the entities at their other ends, the heaviest first."""
    page = services.graphs.neighbours(
        caller.tenant, collection.id, entity, only=caller.only, after=_after(cursor), limit=limit
    )
    return NeighboursResponse.of(page)


@router.get("/collections/{collection_id}/graph/communities")
@filtered
def graph_communities(
    services: Services,
    caller: Reader,
    collection: PathCollection,
    level: Level = None,
    parent: Parent = None,
    limit: PageLimit = 50,
    cursor: parameters.Cursor = None,
) -> CommunitiesResponse:
    """Read the reports on communities of a knowledge graph, those of the highest level first."""
    page = services.graphs.communities(
        caller.tenant,
        collection.id,
        only=caller.only,
        level=level,
        parent=parent,
        after=_after(cursor),
        limit=limit,
    )
    return CommunitiesResponse.of(page)


@router.get("/collections/{collection_id}/graph/communities/{community}")
@filtered
def graph_community(
    services: Services, caller: Reader, collection: PathCollection, community: NodeKey
) -> CommunityResponse:
    """Read the report on a community with its findings, its entities and its passages."""
    details = services.graphs.community(caller.tenant, collection.id, community, only=caller.only)
    return CommunityResponse.whole(details)
