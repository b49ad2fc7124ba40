"""Knowledge graphs: entities with their neighbours and passages, communities with their reports.

Each answer is of one generation. What has anything from a document that the reader may not see is left out,
whole; so is a relation one of whose entities is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from holdfast.core.errors import ConflictError, NotFoundError
from holdfast.core.filters import Filter
from holdfast.engine.engine import Engine
from holdfast.service import graph_catalogue
from holdfast.service.graph_catalogue import EntityName, GraphCatalogues, GraphView, ReportName
from holdfast.store.base.database import Tx
from holdfast.store.derived import graphs, trees
from holdfast.store.derived.graphs import ENTITY, RELATION, REPORT, GraphEdge, SourcePassage, SourceRange
from holdfast.store.derived.trees import DerivedNode, NodeSource

# Documents and passages that are shown for one node, and the members of a community.
MOST_SOURCES = 100
MOST_PASSAGES = 50
MOST_MEMBERS = 100
MOST_CITES = 20
PICTURE = 300
EXPANDED = 40

T = TypeVar("T")


class GraphPosition(NamedTuple):
    """Where a page begins: the generation, and how many were before it."""

    generation: int
    number: int


@dataclass(frozen=True, slots=True)
class GraphEntity:
    """An entity with its description; `stale` if one of its documents has changed since."""

    name: EntityName
    description: str
    stale: bool


@dataclass(frozen=True, slots=True)
class GraphSummary:
    """What is in a graph, as its reader sees it. `generation` is None without one."""

    generation: int | None
    counts: Mapping[str, int]
    kinds: Mapping[str, int]
    stale: bool
    stand_in: bool


@dataclass(frozen=True, slots=True)
class EntityPage:
    """Some entities of a graph, the most mentioned first; `next` is where the next page begins."""

    summary: GraphSummary
    entities: tuple[GraphEntity, ...]
    next: GraphPosition | None


@dataclass(frozen=True, slots=True)
class SourcePassages:
    """What a node was made of, in one document; no passages where that version was replaced."""

    source: NodeSource
    passages: tuple[SourcePassage, ...]


@dataclass(frozen=True, slots=True)
class EntityDetails:
    """An entity, the report of its community if that is shown, and the passages it was made of."""

    generation: int
    entity: GraphEntity
    community: ReportName | None
    sources: tuple[SourcePassages, ...]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A relation of an entity, and the entity at its other end. `outgoing`: it points there."""

    relation: DerivedNode
    label: str
    weight: float
    outgoing: bool
    entity: EntityName


@dataclass(frozen=True, slots=True)
class NeighbourPage:
    """Some neighbours of an entity, by the weight of the relation."""

    generation: int
    entity: EntityName
    neighbours: tuple[Neighbour, ...]
    next: GraphPosition | None


@dataclass(frozen=True, slots=True)
class GraphReport:
    """A report on a community."""

    name: ReportName
    text: str
    stale: bool


@dataclass(frozen=True, slots=True)
class ReportPage:
    """Some reports of a graph, those of the highest level first."""

    generation: int | None
    reports: tuple[GraphReport, ...]
    levels: Mapping[int, int]
    next: GraphPosition | None


@dataclass(frozen=True, slots=True)
class GraphFinding:
    """Something that a report says, and the nodes and passages that it rests on."""

    text: str
    cites: tuple[tuple[str, str, str], ...]
    passages: tuple[SourcePassage, ...]


@dataclass(frozen=True, slots=True)
class ReportDetails:
    """A report with its findings, the communities below it, its entities and its passages."""

    generation: int
    report: GraphReport
    above: ReportName | None
    findings: tuple[GraphFinding, ...]
    communities: tuple[ReportName, ...]
    members: tuple[EntityName, ...]
    sources: tuple[SourcePassages, ...]
    titles: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GraphPicture:
    """The entities to draw, the most mentioned first, and the relations among them."""

    generation: int | None
    entities: tuple[EntityName, ...]
    edges: tuple[GraphEdge, ...]


NO_GRAPH = GraphSummary(None, {ENTITY: 0, RELATION: 0, REPORT: 0}, {}, False, False)


def missing(collection: str) -> ConflictError:
    """The error for a collection without a graph."""
    message = (
        f"collection {collection!r} has no knowledge graph; build one with: "
        f"holdfast jobs graph --collection {collection} (or POST /collections/{collection}/jobs, kind graph)"
    )
    return ConflictError(message, code="no_graph")


class Graphs:
    """The graphs of an installation, as one process reads them."""

    def __init__(self, engine: Engine) -> None:
        self._db = engine.db
        self.catalogues = GraphCatalogues()

    def _read(
        self,
        tenant: str,
        collection: str,
        only: Filter | None,
        answer: Callable[[Tx, GraphView], T],
        otherwise: T | NotFoundError,
    ) -> T:
        """The answer of one snapshot, or the other where there is no graph."""
        reader = graphs.reader(tenant, collection, only)

        def body(tx: Tx) -> T:
            view = self.catalogues.view(tx, reader)
            if view is not None:
                return answer(tx, view)
            if isinstance(otherwise, NotFoundError):
                raise otherwise
            return otherwise

        return self._db.read(body)

    def entities(
        self,
        tenant: str,
        collection: str,
        *,
        only: Filter | None = None,
        q: str = "",
        kind: str | None = None,
        after: GraphPosition | None = None,
        limit: int = 50,
    ) -> EntityPage:
        """What is in the graph, and the entities whose names have the words of `q`, page by page."""

        def answer(tx: Tx, view: GraphView) -> EntityPage:
            begin = _begin(view, after)
            entries = view.catalogue.matching(q, kind)
            keys, follows = graph_catalogue.page_of(entries, view.withheld, begin, limit)
            return EntityPage(_summary(tx, view), _entities(tx, view, keys), _position(view, follows))

        return self._read(tenant, collection, only, answer, EntityPage(NO_GRAPH, (), None))

    def named(self, tenant: str, collection: str, name: str, *, only: Filter | None = None) -> EntityName:
        """The entity with this key or name, or the most mentioned that has its words; NotFoundError."""

        def answer(_tx: Tx, view: GraphView) -> EntityName:
            by_key = view.catalogue.entity(name)
            matching = [] if by_key is not None else view.catalogue.matching(name, None)
            for each in [by_key, *matching]:
                if each is not None and view.shows(each.key) and graph_catalogue.folded(name):
                    return each
            raise _no_entity(name)

        return self._read(tenant, collection, only, answer, _no_entity(name))

    def entity(self, tenant: str, collection: str, key: str, *, only: Filter | None = None) -> EntityDetails:
        """One entity and what it was made of; NotFoundError."""

        def answer(tx: Tx, view: GraphView) -> EntityDetails:
            shown = _entities(tx, view, [key])
            if not shown:
                raise _no_entity(key)
            report = view.catalogue.by_key.get(shown[0].name.community or "")
            above = report if isinstance(report, ReportName) and view.shows(report.key) else None
            return EntityDetails(view.head.generation, shown[0], above, _sources(tx, view, key))

        return self._read(tenant, collection, only, answer, _no_entity(key))

    def neighbours(
        self,
        tenant: str,
        collection: str,
        key: str,
        *,
        only: Filter | None = None,
        after: GraphPosition | None = None,
        limit: int = 50,
    ) -> NeighbourPage:
        """The relations of an entity with their other ends, the heaviest first; NotFoundError."""

        def answer(tx: Tx, view: GraphView) -> NeighbourPage:
            entity = view.catalogue.entity(key)
            if entity is None or not view.reader.named(tx, view.head, [key]):
                raise _no_entity(key)
            edges = graphs.edges_of(tx, view.head, [key])
            begin = _begin(view, after)
            shown: list[GraphEdge] = []
            follows = None
            for at in range(begin, len(edges)):
                edge = edges[at]
                if not (view.shows(edge.node) and view.shows(edge.other(key))):
                    continue
                if len(shown) == limit:
                    follows = at
                    break
                shown.append(edge)
            neighbours = _neighbours(tx, view, key, shown)
            return NeighbourPage(view.head.generation, entity, neighbours, _position(view, follows))

        return self._read(tenant, collection, only, answer, _no_entity(key))

    def communities(
        self,
        tenant: str,
        collection: str,
        *,
        only: Filter | None = None,
        level: int | None = None,
        parent: str | None = None,
        after: GraphPosition | None = None,
        limit: int = 50,
    ) -> ReportPage:
        """The reports of a level, or on the communities below one; all of them if nothing is said."""

        def answer(tx: Tx, view: GraphView) -> ReportPage:
            begin = _begin(view, after)
            entries = [
                each
                for each in view.catalogue.reports
                if (level is None or each.level == level) and (parent is None or each.parent == parent)
            ]
            keys, follows = graph_catalogue.page_of(entries, view.withheld, begin, limit)
            levels: dict[int, int] = {}
            for each in view.catalogue.reports:
                if view.shows(each.key):
                    levels[each.level] = levels.get(each.level, 0) + 1
            return ReportPage(
                view.head.generation, _reports(tx, view, keys), levels, _position(view, follows)
            )

        return self._read(tenant, collection, only, answer, ReportPage(None, (), {}, None))

    def community(
        self, tenant: str, collection: str, key: str, *, only: Filter | None = None
    ) -> ReportDetails:
        """One report with what it rests on; NotFoundError."""

        def answer(tx: Tx, view: GraphView) -> ReportDetails:
            node = view.reader.named(tx, view.head, [key]).get(key)
            name = view.catalogue.by_key.get(key)
            if node is None or not isinstance(name, ReportName):
                raise _no_community(key)
            above = view.catalogue.by_key.get(name.parent or "")
            members = graph_catalogue.entities_below(view.catalogue, key)
            findings = _findings(tx, view, node)
            sources = _sources(tx, view, key)
            return ReportDetails(
                view.head.generation,
                GraphReport(name, node.text, node.stale),
                above if isinstance(above, ReportName) and view.shows(above.key) else None,
                findings,
                tuple(each for each in view.catalogue.reports if each.parent == key and view.shows(each.key)),
                tuple([each for each in members if view.shows(each.key)][:MOST_MEMBERS]),
                sources,
                {each.source.document: each.source.title for each in sources},
            )

        return self._read(tenant, collection, only, answer, _no_community(key))

    def picture(
        self,
        tenant: str,
        collection: str,
        *,
        only: Filter | None = None,
        around: str | None = None,
        community: str | None = None,
        most: int = PICTURE,
    ) -> GraphPicture:
        """The most mentioned entities, with `around` and its neighbours among them, and their relations."""

        def answer(tx: Tx, view: GraphView) -> GraphPicture:
            chosen: dict[str, EntityName] = {}
            if around is not None and (entity := view.catalogue.entity(around)) and view.shows(around):
                chosen[around] = entity
                for edge in graphs.edges_of(tx, view.head, [around]):
                    other = view.catalogue.entity(edge.other(around))
                    if other and view.shows(edge.node) and view.shows(other.key) and len(chosen) <= EXPANDED:
                        chosen[other.key] = other
            members = [] if community is None else graph_catalogue.entities_below(view.catalogue, community)
            for each in (*members, *view.catalogue.entities):
                if len(chosen) >= most:
                    break
                if view.shows(each.key):
                    chosen.setdefault(each.key, each)
            edges = graphs.edges_of(tx, view.head, list(chosen), among=True)
            shown = tuple(edge for edge in edges if view.shows(edge.node))
            return GraphPicture(view.head.generation, tuple(chosen.values()), shown)

        return self._read(tenant, collection, only, answer, GraphPicture(None, (), ()))


def _no_entity(name: str) -> NotFoundError:
    message = f"there is no entity {name!r:.80} in the graph; a new run may have replaced it"
    return NotFoundError(message, code="unknown_node")


def _no_community(name: str) -> NotFoundError:
    message = f"there is no community {name!r:.80} in the graph; a new run may have replaced it"
    return NotFoundError(message, code="unknown_node")


def _begin(view: GraphView, after: GraphPosition | None) -> int:
    if after is not None and after.generation != view.head.generation:
        message = f"generation {view.head.generation} was published meanwhile; start again without a cursor"
        raise ConflictError(message, code="stale_cursor")
    return 0 if after is None else after.number


def _position(view: GraphView, number: int | None) -> GraphPosition | None:
    return None if number is None else GraphPosition(view.head.generation, number)


def _summary(tx: Tx, view: GraphView) -> GraphSummary:
    return GraphSummary(
        view.head.generation,
        graph_catalogue.visible_counts(tx, view),
        view.catalogue.kinds(view.withheld),
        view.stale,
        view.catalogue.stand_in,
    )


def _entities(tx: Tx, view: GraphView, keys: Sequence[str]) -> tuple[GraphEntity, ...]:
    nodes = view.reader.named(tx, view.head, keys)
    named = ((view.catalogue.entity(key), nodes.get(key)) for key in keys)
    return tuple(GraphEntity(name, node.text, node.stale) for name, node in named if name and node)


def _reports(tx: Tx, view: GraphView, keys: Sequence[str]) -> tuple[GraphReport, ...]:
    nodes = view.reader.named(tx, view.head, keys)
    named = ((view.catalogue.by_key.get(key), nodes.get(key)) for key in keys)
    return tuple(
        GraphReport(name, node.text, node.stale)
        for name, node in named
        if isinstance(name, ReportName) and node
    )


def _neighbours(tx: Tx, view: GraphView, key: str, edges: Sequence[GraphEdge]) -> tuple[Neighbour, ...]:
    nodes = view.reader.named(tx, view.head, [edge.node for edge in edges])
    result = []
    for edge in edges:
        entity = view.catalogue.entity(edge.other(key))
        if entity is not None and (relation := nodes.get(edge.node)) is not None:
            label = edge.label or str(relation.data.get("relation") or "")
            result.append(Neighbour(relation, label, edge.weight, edge.source == key, entity))
    return tuple(result)


def _sources(tx: Tx, view: GraphView, key: str) -> tuple[SourcePassages, ...]:
    """The documents of a node with the first of its passages."""
    sources = trees.sources_of(tx, view.head, key, MOST_SOURCES)
    room = MOST_PASSAGES
    ranges = []
    for each in sources:
        if room > 0 and not each.stale:
            last = min(each.last, each.first + room - 1)
            ranges.append(SourceRange(each.document, each.version, each.first, last))
            room -= last - each.first + 1
    passages = graphs.passages(tx, view.reader.tenant, ranges)
    result = []
    for each in sources:
        numbers = () if each.stale else range(each.first, each.last + 1)
        some = (passages.get((each.document, number)) for number in numbers)
        result.append(SourcePassages(each, tuple(one for one in some if one is not None)))
    return tuple(result)


def _findings(tx: Tx, view: GraphView, report: DerivedNode) -> tuple[GraphFinding, ...]:
    """What the report says, each with the nodes it names that are shown, and some of their passages."""
    findings = [each for each in report.data.get("findings") or () if isinstance(each, Mapping)]
    cited = [[str(key) for key in each.get("cites") or ()][:MOST_CITES] for each in findings]
    keys = list(dict.fromkeys(key for some in cited for key in some if view.shows(key)))
    nodes = view.reader.named(tx, view.head, keys) if keys else {}
    ranges = graphs.ranges_of(tx, view.head, list(nodes), MOST_SOURCES)
    first = {key: some[:2] for key, some in ranges.items()}
    passages = graphs.passages(tx, view.reader.tenant, [one for some in first.values() for one in some])
    result = []
    for each, some in zip(findings, cited, strict=True):
        shown = [nodes[key] for key in some if key in nodes]
        numbers = ((one.document, one.first) for node in shown for one in first.get(node.key, ()))
        own = dict.fromkeys(passages[at] for at in numbers if at in passages)
        names = tuple((node.key, node.type, node.title) for node in shown)
        result.append(GraphFinding(str(each.get("text") or ""), names, tuple(own)[:3]))
    return tuple(result)
