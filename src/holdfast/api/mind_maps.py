"""Mind maps: of a collection, and of a document, as JSON, Markdown or a picture."""

from typing import Annotated, Any, Literal

from fastapi import Query
from fastapi.responses import Response

from holdfast.api import parameters, routing
from holdfast.api.access import PathDocument, Reader, filtered
from holdfast.api.parameters import Services
from holdfast.api.schemas_documents import Shape
from holdfast.service import mind_map_forms
from holdfast.service.mind_maps import MapTopic, MindMap

router = routing.router("mind maps")

Format = Annotated[
    Literal["json", "markdown", "svg"],
    Query(alias="format", description="JSON, a nested list in Markdown, or a picture."),
]
# What is drawn is text of documents: nothing in it may be carried out.
DRAWN = {"Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'"}


class TopicSourceResponse(Shape):
    """The chunks `first` to `last`, by number, of one version of a document."""

    document_id: str
    title: str
    generation: int
    first: int
    last: int
    stale: bool


class TopicResponse(Shape):
    """A topic and those below it. `sources` are at most 20 of `source_count`.

    `stale`: one of its documents has changed since. `stand_in`: no language model was asked.
    `from_headings`: it is a line of the outline, because none was asked or its answer was no map. A topic of
    level 0, without a key, is a document among others.
    """

    key: str
    title: str
    level: int
    stale: bool
    stand_in: bool
    from_headings: bool
    sources: list[TopicSourceResponse]
    source_count: int
    topics: list["TopicResponse"]

    @classmethod
    def of(cls, topic: MapTopic) -> "TopicResponse":
        """The topic as it is shown."""
        return cls(
            key=topic.key,
            title=topic.title,
            level=topic.level,
            stale=topic.stale,
            stand_in=topic.stand_in,
            from_headings=topic.from_headings,
            sources=[
                TopicSourceResponse(
                    document_id=each.document,
                    title=each.title,
                    generation=each.version,
                    first=each.first,
                    last=each.last,
                    stale=each.stale,
                )
                for each in topic.sources
            ],
            source_count=topic.source_count,
            topics=[cls.of(each) for each in topic.topics],
        )


class MindMapResponse(Shape):
    """The topics of one generation, at most three levels of seven. `generation` is null without a map.

    A topic with a document that is deleted, or that your key may not see, is left out, and what is below it
    takes its position. `truncated`: maps of further documents are not shown here.
    """

    generation: int | None
    title: str
    stale: bool
    stand_in: bool
    truncated: bool
    topics: list[TopicResponse]

    @classmethod
    def of(cls, mind_map: MindMap) -> "MindMapResponse":
        """A map as it goes over the wire."""
        return cls(
            generation=mind_map.generation,
            title=mind_map.title,
            stale=mind_map.stale,
            stand_in=mind_map.stand_in,
            truncated=mind_map.truncated,
            topics=[TopicResponse.of(each) for each in mind_map.topics],
        )


def _response(mind_map: MindMap, form: str) -> Response:
    if form == "markdown":
        return Response(mind_map_forms.markdown(mind_map), media_type="text/markdown")
    if form == "svg":
        return Response(mind_map_forms.svg(mind_map), media_type="image/svg+xml", headers=DRAWN)
    return Response(MindMapResponse.of(mind_map).model_dump_json(), media_type="application/json")


_FORMS: dict[int | str, dict[str, Any]] = {200: {"content": {"text/markdown": {}, "image/svg+xml": {}}}}


@router.get(
    "/collections/{collection_id}/mindmap",
    response_model=MindMapResponse,
    responses=_FORMS,
)
@filtered
def collection_mind_map(
    services: Services,
    caller: Reader,
    collection_id: parameters.Id,
    form: Format = "json",
) -> Response:
    """Read the mind map of a collection; without one, the maps of its documents."""
    collection = services.collections.get(caller.tenant, collection_id)
    return _response(services.mind_maps.of_collection(collection, only=caller.only), form)


@router.get(
    "/documents/{document_id}/mindmap",
    response_model=MindMapResponse,
    responses=_FORMS,
)
def document_mind_map(
    services: Services,
    caller: Reader,
    document: PathDocument,
    form: Format = "json",
) -> Response:
    """Read the mind map of a document: of its own job, or as a part of the collection's."""
    return _response(services.mind_maps.of_document(document, only=caller.only), form)
