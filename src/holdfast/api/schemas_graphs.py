"""What the knowledge graph of a collection looks like on the wire."""

from typing import Self

from holdfast.api.schemas_documents import Shape
from holdfast.service.graph_catalogue import EntityName, ReportName
from holdfast.service.graphs import (
    EntityDetails,
    EntityPage,
    GraphEntity,
    GraphFinding,
    GraphPosition,
    GraphReport,
    Neighbour,
    NeighbourPage,
    ReportDetails,
    ReportPage,
    SourcePassages,
)
from holdfast.service.records import SourcePassage


def cursor_of(position: GraphPosition | None) -> str | None:
    """A position as the cursor of the next page."""
    return None if position is None else f"{position.generation}.{position.number}"


class EntityNameResponse(Shape):
    """An entity. `names` are other spellings of it; `community` the key of its report."""

    key: str
    title: str
    kind: str
    names: list[str]
    mentions: int
    community: str | None

    @classmethod
    def named(cls, name: EntityName) -> Self:
        """The entity as it is listed."""
        return cls(**_name(name))


def _name(name: EntityName) -> dict[str, object]:
    own = ("key", "title", "kind", "mentions", "community")
    return {each: getattr(name, each) for each in own} | {"names": list(name.names)}


class EntityResponse(EntityNameResponse):
    """An entity with its description.

    `stale`: one of its documents has changed since the last run. `stand_in`: no language model wrote it.
    """

    description: str
    stale: bool
    stand_in: bool

    @classmethod
    def of(cls, entity: GraphEntity) -> Self:
        """The entity as it is shown."""
        more = {"description": entity.description, "stale": entity.stale, "stand_in": entity.name.stand_in}
        return cls(**_name(entity.name) | more)


class GraphCountsResponse(Shape):
    """How much of a graph you may see."""

    entities: int
    relations: int
    reports: int


class GraphResponse(Shape):
    """A knowledge graph, and its entities, the most mentioned first; without one `generation` is null.

    `kinds` are the numbers of entities by kind. What has anything from a document that is deleted, or that
    your key may not see, is left out. `stale`: a document has changed since the last run.
    """

    generation: int | None
    counts: GraphCountsResponse
    kinds: dict[str, int]
    stale: bool
    stand_in: bool
    entities: list[EntityResponse]
    next: str | None

    @classmethod
    def of(cls, page: EntityPage) -> Self:
        """A page as it goes over the wire."""
        summary = page.summary
        return cls(
            generation=summary.generation,
            counts=GraphCountsResponse(
                entities=summary.counts["entity"],
                relations=summary.counts["relation"],
                reports=summary.counts["report"],
            ),
            kinds=dict(summary.kinds),
            stale=summary.stale,
            stand_in=summary.stand_in,
            entities=[EntityResponse.of(each) for each in page.entities],
            next=cursor_of(page.next),
        )


class GraphPassageResponse(Shape):
    """A chunk that something of the graph rests on. `chunk` names it as in a search, for `like`."""

    document_id: str
    number: int
    chunk: str
    page: int | None
    text: str

    @classmethod
    def of(cls, passage: SourcePassage) -> Self:
        """The passage as it is shown."""
        return cls(
            document_id=passage.document,
            number=passage.number,
            chunk=f"{passage.document}@{passage.slice}.{passage.position}",
            page=passage.page,
            text=passage.text,
        )


class GraphSourceResponse(Shape):
    """The chunks `first` to `last` of a document; `passages` is empty if that version was replaced."""

    document_id: str
    title: str
    generation: int
    first: int
    last: int
    stale: bool
    passages: list[GraphPassageResponse]

    @classmethod
    def of(cls, each: SourcePassages) -> Self:
        """The source as it is shown."""
        source = each.source
        return cls(
            document_id=source.document,
            title=source.title,
            generation=source.version,
            first=source.first,
            last=source.last,
            stale=source.stale,
            passages=[GraphPassageResponse.of(one) for one in each.passages],
        )


class ReportNameResponse(Shape):
    """A report on a community of `size` entities; `parent` is the key of the community above."""

    key: str
    title: str
    level: int
    parent: str | None
    size: int

    @classmethod
    def named(cls, name: ReportName) -> Self:
        """The report as it is listed."""
        return cls(**{each: getattr(name, each) for each in ReportNameResponse.model_fields})


class EntityDetailsResponse(EntityResponse):
    """An entity, the report on its community, and the passages that it was made of, at most 50."""

    generation: int
    report: ReportNameResponse | None
    sources: list[GraphSourceResponse]

    @classmethod
    def whole(cls, details: EntityDetails) -> Self:
        """An entity as it goes over the wire."""
        shown = EntityResponse.of(details.entity).model_dump()
        report = None if details.community is None else ReportNameResponse.named(details.community)
        sources = [GraphSourceResponse.of(each) for each in details.sources]
        return cls(**shown, generation=details.generation, report=report, sources=sources)


class NeighbourResponse(Shape):
    """A relation of an entity, and the entity at its other end. `outgoing`: the relation points there."""

    key: str
    title: str
    label: str
    description: str
    weight: float
    outgoing: bool
    stale: bool
    entity: EntityNameResponse

    @classmethod
    def of(cls, each: Neighbour) -> Self:
        """The relation as it is shown."""
        return cls(
            key=each.relation.key,
            title=each.relation.title,
            label=each.label,
            description=each.relation.text,
            weight=each.weight,
            outgoing=each.outgoing,
            stale=each.relation.stale,
            entity=EntityNameResponse.named(each.entity),
        )


class NeighboursResponse(Shape):
    """The relations of an entity, the heaviest first."""

    generation: int
    entity: EntityNameResponse
    neighbours: list[NeighbourResponse]
    next: str | None

    @classmethod
    def of(cls, page: NeighbourPage) -> Self:
        """A page as it goes over the wire."""
        return cls(
            generation=page.generation,
            entity=EntityNameResponse.named(page.entity),
            neighbours=[NeighbourResponse.of(each) for each in page.neighbours],
            next=cursor_of(page.next),
        )


class ReportResponse(ReportNameResponse):
    """A report with its text; `stale` and `stand_in` as of an entity."""

    text: str
    stale: bool
    stand_in: bool

    @classmethod
    def of(cls, report: GraphReport) -> Self:
        """The report as it is shown."""
        named = ReportNameResponse.named(report.name).model_dump()
        return cls(**named, text=report.text, stale=report.stale, stand_in=report.name.stand_in)


class CommunitiesResponse(Shape):
    """Reports on communities, those of the highest level first; `levels` has how many there are of each."""

    generation: int | None
    levels: dict[int, int]
    communities: list[ReportResponse]
    next: str | None

    @classmethod
    def of(cls, page: ReportPage) -> Self:
        """A page as it goes over the wire."""
        return cls(
            generation=page.generation,
            levels=dict(page.levels),
            communities=[ReportResponse.of(each) for each in page.reports],
            next=cursor_of(page.next),
        )


class CitedNodeResponse(Shape):
    """An entity or a relation that a finding rests on."""

    key: str
    type: str
    title: str


class FindingResponse(Shape):
    """Something that a report says, with what it rests on: entities and relations, and passages of these."""

    text: str
    cites: list[CitedNodeResponse]
    passages: list[GraphPassageResponse]

    @classmethod
    def of(cls, finding: GraphFinding) -> Self:
        """The finding as it is shown."""
        cites = [CitedNodeResponse(key=key, type=kind, title=title) for key, kind, title in finding.cites]
        passages = [GraphPassageResponse.of(each) for each in finding.passages]
        return cls(text=finding.text, cites=cites, passages=passages)


class CommunityResponse(ReportResponse):
    """A report with its findings, the communities below it, and its entities, at most 100."""

    generation: int
    findings: list[FindingResponse]
    communities: list[ReportNameResponse]
    members: list[EntityNameResponse]
    sources: list[GraphSourceResponse]

    @classmethod
    def whole(cls, details: ReportDetails) -> Self:
        """A report as it goes over the wire."""
        return cls(
            **ReportResponse.of(details.report).model_dump(),
            generation=details.generation,
            findings=[FindingResponse.of(each) for each in details.findings],
            communities=[ReportNameResponse.named(each) for each in details.communities],
            members=[EntityNameResponse.named(each) for each in details.members],
            sources=[GraphSourceResponse.of(each) for each in details.sources],
        )
