"""Trees of summaries: of a collection, and of a document."""

from typing import Annotated

from fastapi import Query

from holdfast.api import parameters, routing
from holdfast.api.access import PathDocument, Reader, filtered
from holdfast.api.parameters import Services
from holdfast.api.schemas_documents import Shape
from holdfast.service.trees import Passages, TreeNode, TreePage, TreePosition

router = routing.router("trees")

NodeKey = Annotated[
    str | None,
    Query(pattern="^[0-9a-f]{1,64}$", description="A node's key: what is below it, and its passages."),
]
PageLimit = Annotated[int, Query(ge=1, le=100, description="Maximum number of nodes.")]


class TreeNodeResponse(Shape):
    """A summary. `covers` are the documents that it is about, at most 20; `children` how many are below it.

    `stale`: one of its documents has changed since; the next run makes it anew. `stand_in`: no language model
    wrote it. A `passage` is a text that stands alone and is quoted as it is.
    """

    key: str
    type: str
    level: int
    title: str
    text: str
    document_id: str | None
    covers: list[str]
    children: int
    stale: bool
    stand_in: bool

    @classmethod
    def of(cls, each: TreeNode) -> "TreeNodeResponse":
        """The node as it is shown."""
        node = each.node
        return cls(
            key=node.key,
            type=node.type,
            level=node.level,
            title=node.title,
            text=node.text,
            document_id=node.document,
            covers=list(each.covers),
            children=node.children,
            stale=node.stale,
            stand_in=each.stand_in,
        )


class PassageResponse(Shape):
    """A chunk that a summary was made of, by its number in the document."""

    number: int
    page: int | None
    text: str


class TreeSourceResponse(Shape):
    """The chunks `first` to `last` of one document; `passages` is empty if that version is gone."""

    document_id: str
    title: str
    generation: int
    first: int
    last: int
    stale: bool
    passages: list[PassageResponse]

    @classmethod
    def of(cls, each: Passages) -> "TreeSourceResponse":
        """The source as it is shown."""
        source = each.source
        return cls(
            document_id=source.document,
            title=source.title,
            generation=source.version,
            first=source.first,
            last=source.last,
            stale=source.stale,
            passages=[
                PassageResponse(number=one.number, page=one.page, text=one.text) for one in each.chunks
            ],
        )


class TreeResponse(Shape):
    """Nodes of one generation: the topmost, or those below `node`. `generation` is null without a tree.

    `sources` is filled for a `node` that no other is below. A summary with a document that is deleted, or
    that your key may not see, is left out, and what is below it is listed instead.
    """

    generation: int | None
    node: TreeNodeResponse | None
    nodes: list[TreeNodeResponse]
    sources: list[TreeSourceResponse]
    next: str | None

    @classmethod
    def of(cls, page: TreePage) -> "TreeResponse":
        """A page as it goes over the wire."""
        return cls(
            generation=page.generation,
            node=None if page.node is None else TreeNodeResponse.of(page.node),
            nodes=[TreeNodeResponse.of(each) for each in page.nodes],
            sources=[TreeSourceResponse.of(each) for each in page.sources],
            next=None if page.next is None else ".".join(map(str, page.next)),
        )


def _after(cursor: str | None) -> TreePosition | None:
    numbers = parameters.numbers(cursor, 4)
    return None if numbers is None else TreePosition(*numbers)


@router.get("/collections/{collection_id}/tree")
@filtered
def collection_tree(
    services: Services,
    caller: Reader,
    collection_id: parameters.Id,
    node: NodeKey = None,
    limit: PageLimit = 50,
    cursor: parameters.Cursor = None,
) -> TreeResponse:
    """Read the tree of summaries of a collection: its top, or what is below a node."""
    collection = services.collections.get(caller.tenant, collection_id)
    page = services.trees.of_collection(
        caller.tenant, collection.id, only=caller.only, node=node, after=_after(cursor), limit=limit
    )
    return TreeResponse.of(page)


@router.get("/documents/{document_id}/tree")
def document_tree(
    services: Services,
    caller: Reader,
    document: PathDocument,
    node: NodeKey = None,
    limit: PageLimit = 50,
    cursor: parameters.Cursor = None,
) -> TreeResponse:
    """Read the tree of summaries of a document: its root, or what is below a node."""
    page = services.trees.of_document(
        document, only=caller.only, node=node, after=_after(cursor), limit=limit
    )
    return TreeResponse.of(page)
