"""The knowledge graph of a collection: a picture, its entities and reports, and one of them opened."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query, Request
from fastapi.responses import Response

from holdfast.bootstrap import AppServices
from holdfast.core.errors import NotFoundError
from holdfast.kinds import graph as kind_of_graphs
from holdfast.service.graphs import (
    EntityDetails,
    GraphPosition,
    NeighbourPage,
    ReportDetails,
)
from holdfast.web import derived_jobs, graph_pictures, rendering
from holdfast.web.collections import PathCollection
from holdfast.web.page_access import Services

PAGE = 50
NEIGHBOURS = 40
REPORTS = 30

Key = Annotated[str | None, Query(pattern="^[0-9a-f]{1,64}$")]
Place = Annotated[str | None, Query(pattern=r"^\d{1,18}\.\d{1,9}$")]

router = rendering.router()


@dataclass(frozen=True, slots=True)
class GraphQuery:
    """What the URL says."""

    collection: str
    q: str = ""
    kind: str = ""
    entity: str = ""
    community: str = ""

    def at(self, **changes: str) -> str:
        """The URL with these changes."""
        fields = {"q": self.q, "kind": self.kind, "entity": self.entity, "community": self.community}
        shown = {name: value for name, value in (fields | changes).items() if value}
        return f"/collections/{self.collection}/graph" + (f"?{urlencode(shown)}" if shown else "")

    def opening(self, key: str) -> str:
        """The URL that opens an entity."""
        return self.at(entity=key, community="")

    def reporting(self, key: str) -> str:
        """The URL that opens a report."""
        return self.at(community=key, entity="")


@dataclass(frozen=True, slots=True)
class GraphPanel:
    """What is shown beside the picture: an entity with its neighbours, or a report. `gone`: it is no more."""

    entity: EntityDetails | None = None
    neighbours: NeighbourPage | None = None
    report: ReportDetails | None = None
    gone: bool = False


@router.get("/collections/{name}/graph")
def graph(
    request: Request,
    services: Services,
    who: rendering.Who,
    collection: PathCollection,
    q: Annotated[str, Query(max_length=200)] = "",
    kind: Annotated[str, Query(max_length=100)] = "",
    entity: Key = None,
    community: Key = None,
    after: Place = None,
) -> Response:
    """Show the graph of a collection, with an entity or a report opened."""
    owner = (who.tenant, collection.id)
    query = GraphQuery(collection.id, q.strip(), kind, entity or "", community or "")
    position = None if after is None else GraphPosition(*map(int, after.split(".")))
    page = services.graphs.entities(*owner, q=query.q, kind=kind or None, after=position, limit=PAGE)
    opened = _opened(services, owner, entity, community)
    picture = services.graphs.picture(*owner, around=entity, community=community)
    members = frozenset(each.key for each in opened.report.members) if opened.report else frozenset()
    return rendering.page(
        request,
        who,
        "graph.html",
        f"Knowledge graph of {collection.title}",
        collection=collection,
        actions=len(services.actions.all(*owner)),
        graph=page,
        query=query,
        drawing=graph_pictures.draw(picture, entity, members),
        opened=opened,
        job=derived_jobs.of_collection(services, *owner, kind_of_graphs.NAME),
        reports=services.graphs.communities(*owner, limit=REPORTS),
        after=None if page.next is None else f"{page.next.generation}.{page.next.number}",
    )


def _opened(
    services: AppServices, owner: tuple[str, str], entity: str | None, community: str | None
) -> GraphPanel:
    try:
        if entity is not None:
            details = services.graphs.entity(*owner, entity)
            return GraphPanel(details, services.graphs.neighbours(*owner, entity, limit=NEIGHBOURS))
        if community is not None:
            return GraphPanel(report=services.graphs.community(*owner, community))
    except NotFoundError:
        return GraphPanel(gone=True)
    return GraphPanel()
