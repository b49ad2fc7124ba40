"""Trees of summaries: what is at the top, what is below a node, and the passages that it was made of.

Each answer is of one generation. A node that may not be shown is left out, and what is below it takes its
position; so a deleted document removes the summaries above it and nothing else.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.core.errors import ConflictError, NotFoundError
from holdfast.core.filters import Filter
from holdfast.engine.engine import Engine
from holdfast.kinds import raptor
from holdfast.store.base.database import Tx
from holdfast.store.derived import trees
from holdfast.store.derived.trees import DerivedNode, NodeSource, TreeHead, TreeReader
from holdfast.store.jobs import job_sources
from holdfast.store.jobs.job_sources import NumberedChunk
from holdfast.store.library import documents
from holdfast.store.library.documents import Document

MOST_COVERED = 20
MOST_SOURCES = 100
# Passages of one node that are shown, and withheld nodes that are looked behind for one answer.
MOST_PASSAGES = 50
MOST_WITHHELD = 2000


class TreePosition(NamedTuple):
    """Where a page begins: the generation, a sibling by slice and position, and a number below it."""

    generation: int
    slice: int
    position: int
    number: int


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node and the documents that it is about, at most twenty of them."""

    node: DerivedNode
    covers: tuple[str, ...]

    @property
    def stand_in(self) -> bool:
        """True if no language model wrote it."""
        return bool(self.node.data.get("stand_in"))


@dataclass(frozen=True, slots=True)
class Passages:
    """What a node was made of, in one document; the chunks are empty where that version is gone."""

    source: NodeSource
    chunks: tuple[NumberedChunk, ...]


@dataclass(frozen=True, slots=True)
class TreePage:
    """Some nodes of a generation. `node` is the one above them, `next` where the next page begins."""

    generation: int | None
    node: TreeNode | None
    nodes: tuple[TreeNode, ...]
    sources: tuple[Passages, ...]
    next: TreePosition | None


NOTHING = TreePage(None, None, (), (), None)


class Trees:
    """The trees of an installation, as one process reads them."""

    def __init__(self, engine: Engine) -> None:
        self._db = engine.db

    def of_collection(
        self,
        tenant: str,
        collection: str,
        *,
        only: Filter | None = None,
        node: str | None = None,
        after: TreePosition | None = None,
        limit: int = 50,
    ) -> TreePage:
        """The top of the collection's tree, or what is below `node`; NotFoundError for a node it has not."""
        reader = TreeReader(tenant, collection, raptor.NAME, only)

        def body(tx: Tx) -> TreePage:
            head = reader.head(tx, f"collection:{collection}")
            if head is None:
                if node is not None:
                    raise _no_node(node)
                return NOTHING
            return self._page(tx, reader, head, node, after, limit)

        return self._with_passages(tenant, self._db.read(body))

    def of_document(
        self,
        document: Document,
        *,
        only: Filter | None = None,
        node: str | None = None,
        after: TreePosition | None = None,
        limit: int = 50,
    ) -> TreePage:
        """The same of one document: of its own job, or as a part of the collection's tree."""
        reader = TreeReader(document.tenant, document.collection, raptor.NAME, only)

        def body(tx: Tx) -> TreePage:
            for subject in (f"document:{document.id}", f"collection:{document.collection}"):
                head = reader.head(tx, subject)
                level = 0 if head is None else trees.top_level(tx, head, document.id)
                if head is None or not level:
                    continue
                if node is not None:
                    page = self._page(tx, reader, head, node, after, limit)
                    if page.node is None or page.node.node.document != document.id:
                        raise _no_node(node)
                    return page
                roots = [each for each in reader.level_of(tx, head, document.id, level) if not each.withheld]
                return TreePage(head.generation, None, self._nodes(tx, head, roots), (), None)
            if node is not None:
                raise _no_node(node)
            return NOTHING

        return self._with_passages(document.tenant, self._db.read(body))

    def chunk(self, document: Document, generation: int, number: int) -> NumberedChunk | None:
        """A chunk of a document by its number; None if that version is no longer the published one."""
        if document.head_id is None:
            return None
        pieces = job_sources.pieces(self._db, document.head_id, generation, [number])
        return pieces[0] if pieces else None

    def _page(
        self,
        tx: Tx,
        reader: TreeReader,
        head: TreeHead,
        node: str | None,
        after: TreePosition | None,
        limit: int,
    ) -> TreePage:
        above = None
        if node is not None:
            above = reader.named(tx, head, [node]).get(node)
            if above is None:
                raise _no_node(node)
        begin = (-1, 0, 0) if after is None else after[1:]
        if after is not None and after.generation != head.generation:
            message = f"generation {head.generation} was published meanwhile; start again without a cursor"
            raise ConflictError(message, code="stale_cursor")
        shown: list[DerivedNode] = []
        cursor = None
        for position, number, each in self._visible(tx, reader, head, node, begin):
            if len(shown) == limit:
                cursor = TreePosition(head.generation, *position, number)
                break
            shown.append(each)
        covering = None if above is None else self._nodes(tx, head, [above])[0]
        sources = (
            () if above is None or above.children else trees.sources_of(tx, head, above.key, MOST_SOURCES)
        )
        return TreePage(
            head.generation,
            covering,
            self._nodes(tx, head, shown),
            tuple(Passages(source, ()) for source in sources),
            cursor,
        )

    def _visible(
        self, tx: Tx, reader: TreeReader, head: TreeHead, parent: str | None, begin: tuple[int, int, int]
    ) -> Iterator[tuple[tuple[int, int], int, DerivedNode]]:
        """The nodes to show, from a position on: each with its sibling's position, and its number there."""
        left = iter(range(MOST_WITHHELD))
        after = (begin[0], begin[1] - 1)
        while page := reader.children(tx, head, parent, after=after):
            for sibling in page:
                sibling_at = (sibling.slice, sibling.position)
                skip = begin[2] if sibling_at == begin[:2] else 0
                for number, each in enumerate(self._behind(tx, reader, head, sibling, left)):
                    if number >= skip:
                        yield sibling_at, number, each
            after = (page[-1].slice, page[-1].position)

    def _behind(
        self, tx: Tx, reader: TreeReader, head: TreeHead, node: DerivedNode, left: Iterator[int]
    ) -> Iterator[DerivedNode]:
        """The node, or, if it is withheld, what is to be shown below it."""
        if not node.withheld:
            yield node
            return
        after = (-1, -1)
        while next(left, None) is not None and (page := reader.children(tx, head, node.key, after=after)):
            for each in page:
                yield from self._behind(tx, reader, head, each, left)
            after = (page[-1].slice, page[-1].position)

    @staticmethod
    def _nodes(tx: Tx, head: TreeHead, nodes: list[DerivedNode]) -> tuple[TreeNode, ...]:
        return tuple(TreeNode(each, tuple(trees.covered(tx, head, each.key, MOST_COVERED))) for each in nodes)

    def _with_passages(self, tenant: str, page: TreePage) -> TreePage:
        """The answer with the texts of the chunks that its node was made of."""
        filled = []
        room = MOST_PASSAGES
        for each in page.sources:
            last = min(each.source.last, each.source.first + room - 1)
            document = documents.document(self._db, tenant, each.source.document) if room > 0 else None
            chunks: tuple[NumberedChunk, ...] = ()
            if document is not None and document.head_id is not None:
                numbers = range(each.source.first, last + 1)
                pieces = job_sources.pieces(self._db, document.head_id, each.source.version, numbers)
                chunks = tuple(pieces or ())
            room -= len(chunks)
            filled.append(Passages(each.source, chunks))
        return TreePage(page.generation, page.node, page.nodes, tuple(filled), page.next)


def _no_node(node: str) -> NotFoundError:
    message = f"there is no node {node!r:.80}; a new run may have replaced it: begin at the top of the tree"
    return NotFoundError(message, code="unknown_node")
