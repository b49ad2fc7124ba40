"""From the outline of a document, or of a collection, to topics with their sources, ready to be staged."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.core.errors import WorkError
from holdfast.engine.models import Model
from holdfast.kinds import neighbour_groups, outlines, raptor, raptor_nodes, topic_maps
from holdfast.kinds.topic_maps import MapLine, Topic
from holdfast.ledger.pay import Call
from holdfast.store.base.database import Database
from holdfast.store.derived import outlines as outline_reads
from holdfast.store.derived.staging import NodeDraft, NodeSourceDraft

TOPIC = "topic"

Sources = Sequence[NodeSourceDraft]


@dataclass(frozen=True, slots=True)
class DocumentOutline:
    """The lines of a document that are mapped, and what each of them was taken from."""

    document: str
    version: int
    title: str
    lines: Sequence[MapLine]
    sources: Sequence[Sources]


@dataclass(frozen=True, slots=True)
class Mapped:
    """A map, and what each of its lines was taken from.

    `by_outline`: the lines themselves are the map; with `error` because the answer of the model was none.
    """

    topics: Sequence[Topic]
    sources: Sequence[Sources]
    by_outline: bool = False
    error: WorkError | None = None

    def sources_of(self, topic: Topic) -> list[NodeSourceDraft]:
        """What a topic and those below it were taken from."""
        return raptor_nodes.merged(each for line in topic.every_line for each in self.sources[line])


def outline_of(
    db: Database, tenant: str, document: str, head_id: int, version: int
) -> DocumentOutline | None:
    """The outline of a version of a document; None if that is no longer the published one."""
    parts = outline_reads.parts_of(db, tenant, document, head_id, version, summaries=raptor.NAME)
    if parts is None:
        return None
    lines = outlines.fitted(outlines.of_document(parts), topic_maps.MOST_LINES)
    return DocumentOutline(
        document,
        version,
        parts.title,
        [MapLine(line.title, line.depth) for line in lines],
        [[NodeSourceDraft(document, version, line.first, line.last)] for line in lines],
    )


def call(model: Model, outline: DocumentOutline, notes: str) -> Call | None:
    """The paid call for the map; None where none is needed, or there is no language model."""
    if model.stand_in or len(outline.lines) < topic_maps.FEWEST_LINES:
        return None
    return topic_maps.call(model, outline.lines, topic_maps.DOCUMENT, notes)


def read(answer: bytes | WorkError | None, outline: DocumentOutline) -> Mapped:
    """The map of a document by the answer; its outline where there is none, or none that can be used.

    A line that the model forgot belongs where the line before it does: it is the next of the document.
    """
    count = len(outline.lines)
    reading = topic_maps.MapReading(()) if answer is None else topic_maps.read(answer, count)
    if not reading.topics:
        topics = topic_maps.of_outline(outline.lines)
        return Mapped(topics, outline.sources, by_outline=True, error=reading.error)
    absent = topic_maps.missing(reading.topics, count)
    present = sorted(set(range(count)) - set(absent))
    for line in absent:
        beside = line - 1 if line else present[0]
        topic_maps.join(reading.topics, line, beside)
    return Mapped(reading.topics, outline.sources)


def of_document(mapped: Mapped, outline: DocumentOutline, *, stand_in: bool) -> list[NodeDraft]:
    """The topics of a document's map."""
    return _nodes(mapped, outline.document, stand_in=stand_in)


def of_collection(mapped: Mapped, *, stand_in: bool) -> list[NodeDraft]:
    """The topics of a collection's map."""
    return _nodes(mapped, None, stand_in=stand_in)


def _nodes(mapped: Mapped, document: str | None, *, stand_in: bool) -> list[NodeDraft]:
    data: dict[str, Any] = {"stand_in": True} if stand_in else {}
    if mapped.by_outline:
        data["from_headings"] = True
    if mapped.error is not None:
        data["error"] = {"code": mapped.error.code, "message": mapped.error.message[:500]}
    nodes: list[NodeDraft] = []
    seen: Counter[str] = Counter()

    def add(topics: Sequence[Topic], path: str, level: int) -> list[str]:
        keys = []
        for topic in topics:
            content = f"{path}\n{topic.title}"
            seen[content] += 1
            key = neighbour_groups.digest(f"{content}\n{seen[content]}")
            keys.append(key)
            position = len(nodes)
            nodes.append(_node(mapped, topic, key, level, document, data))
            below = add(topic.topics, content, level + 1)
            nodes[position] = _node(mapped, topic, key, level, document, data, below)
        return keys

    add(mapped.topics, document or "", 1)
    return nodes


def _node(
    mapped: Mapped,
    topic: Topic,
    key: str,
    level: int,
    document: str | None,
    data: dict[str, Any],
    below: Sequence[str] = (),
) -> NodeDraft:
    return NodeDraft(
        key=key,
        type=TOPIC,
        level=level,
        title=topic.title,
        text="",
        sources=mapped.sources_of(topic),
        document=document,
        data=data,
        children=below,
    )
