"""Mind maps: the topics of a collection or of a document, as a tree of one generation.

A topic that may not be shown is left out, and what is below it takes its position, as in trees of summaries.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.core.filters import Filter
from holdfast.engine.engine import Engine
from holdfast.kinds import mindmap
from holdfast.store.base.database import Tx
from holdfast.store.derived import trees
from holdfast.store.derived.trees import DerivedNode, NodeSource, TreeHead, TreeReader
from holdfast.store.library.collections import Collection
from holdfast.store.library.documents import Document

# A map has at most 7 + 49 + 343 topics; of maps of several documents so many topics are shown.
MOST_TOPICS = 1000
MOST_SOURCES = 20


@dataclass(frozen=True, slots=True)
class MapTopic:
    """A topic with those below it. `source_count` may be more than the sources that are listed.

    `from_headings`: it is a heading, or another line of the outline, and no model put it there. A topic
    without a key is a document whose map is shown among those of others.
    """

    key: str
    title: str
    level: int
    stale: bool
    stand_in: bool
    from_headings: bool
    sources: Sequence[NodeSource]
    source_count: int
    topics: Sequence["MapTopic"]


@dataclass(frozen=True, slots=True)
class MindMap:
    """The map of a subject. `generation` is None if there is none; `truncated` if there are more topics."""

    generation: int | None
    title: str
    topics: Sequence[MapTopic] = ()
    truncated: bool = False

    @property
    def stale(self) -> bool:
        """True if a document that is shown has another version by now."""
        return any(topic.stale for topic in self.every_topic())

    @property
    def stand_in(self) -> bool:
        """True if no language model made it."""
        return any(topic.stand_in for topic in self.every_topic())

    def every_topic(self) -> Iterator[MapTopic]:
        """The topics, each before those below it."""
        return _walk(self.topics)


def _walk(topics: Sequence[MapTopic]) -> Iterator[MapTopic]:
    for topic in topics:
        yield topic
        yield from _walk(topic.topics)


class MindMaps:
    """The mind maps of an installation, as one process reads them."""

    def __init__(self, engine: Engine) -> None:
        self._db = engine.db

    def of_collection(self, collection: Collection, *, only: Filter | None = None) -> MindMap:
        """The map of a collection; those of its documents where it has none of its own."""
        reader = TreeReader(collection.tenant, collection.id, mindmap.NAME, only)

        def body(tx: Tx) -> MindMap:
            head = reader.head(tx, f"collection:{collection.id}")
            if head is None:
                return MindMap(None, collection.title)
            nodes = reader.across(tx, head, MOST_TOPICS)
            if nodes:
                return MindMap(head.generation, collection.title, self._topics(tx, head, nodes))
            nodes = reader.of_documents(tx, head, MOST_TOPICS + 1)
            truncated = len(nodes) > MOST_TOPICS
            if truncated:  # the last document may not be all there
                nodes = [node for node in nodes if node.document != nodes[-1].document]
            topics = _of_documents(self._by_document(tx, head, nodes))
            return MindMap(head.generation, collection.title, topics, truncated=truncated)

        return self._db.read(body)

    def of_document(self, document: Document, *, only: Filter | None = None) -> MindMap:
        """The map of a document: of its own job, or as a part of the collection's."""
        reader = TreeReader(document.tenant, document.collection, mindmap.NAME, only)

        def body(tx: Tx) -> MindMap:
            for subject in (f"document:{document.id}", f"collection:{document.collection}"):
                head = reader.head(tx, subject)
                nodes = [] if head is None else reader.of_documents(tx, head, MOST_TOPICS, document.id)
                if head is not None and nodes:
                    return MindMap(head.generation, document.title, self._topics(tx, head, nodes))
            return MindMap(None, document.title)

        return self._db.read(body)

    def _by_document(
        self, tx: Tx, head: TreeHead, nodes: Sequence[DerivedNode]
    ) -> dict[str, Sequence[MapTopic]]:
        names = dict.fromkeys(str(node.document) for node in nodes)
        topics = {
            name: self._topics(tx, head, [node for node in nodes if node.document == name]) for name in names
        }
        return {name: some for name, some in topics.items() if some}

    @staticmethod
    def _topics(tx: Tx, head: TreeHead, nodes: Sequence[DerivedNode]) -> list[MapTopic]:
        """The topics to show, each below the nearest one above it that is shown."""
        keys = {node.key for node in nodes}
        sources = trees.first_sources(
            tx, head, [node.key for node in nodes if not node.withheld], MOST_SOURCES
        )
        below: dict[str | None, list[DerivedNode]] = {}
        for node in nodes:
            below.setdefault(node.parent if node.parent in keys else None, []).append(node)

        def shown(parent: str | None) -> Iterator[MapTopic]:
            for node in below.get(parent, ()):
                if node.withheld:
                    yield from shown(node.key)
                    continue
                count, listed = sources.get(node.key, (0, []))
                yield MapTopic(
                    key=node.key,
                    title=node.title,
                    level=node.level,
                    stale=node.stale,
                    stand_in=bool(node.data.get("stand_in")),
                    from_headings=bool(node.data.get("from_headings")),
                    sources=listed,
                    source_count=count,
                    topics=list(shown(node.key)),
                )

        return list(shown(None))


def _of_documents(by_document: Mapping[str, Sequence[MapTopic]]) -> Sequence[MapTopic]:
    """Maps of documents side by side; a single one as it is."""
    if len(by_document) == 1:
        return next(iter(by_document.values()))
    return [
        MapTopic(
            key="",
            title=topics[0].sources[0].title if topics[0].sources else name,
            level=0,
            stale=any(topic.stale for topic in topics),
            stand_in=any(topic.stand_in for topic in topics),
            from_headings=False,
            sources=(),
            source_count=0,
            topics=topics,
        )
        for name, topics in by_document.items()
    ]
