"""The topics of documents, as the map of their collection reads them: in blocks, in an order of their own.

A block is the main topics of one document, or of a map over some documents. Its name is a hash of its titles,
and blocks are ordered by name: the order of documents, their ids and their titles are no part of a call.
Equal blocks are one. Where they are too many for one call, they are divided by the bits of their names, so
that an edit of one document changes the groups that it leaves and joins, and no other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.core.errors import WorkError
from holdfast.engine.models import Model
from holdfast.kinds import neighbour_groups, outlines, topic_maps
from holdfast.kinds.topic_maps import MapLine, Topic
from holdfast.kinds.topic_nodes import Mapped
from holdfast.ledger.pay import Call
from holdfast.store.derived.inputs import StoredState
from holdfast.store.derived.staging import NodeSourceDraft, StateDraft

# Lines of one call over documents, and the subtopics that a line names in brackets.
MOST_LINES = 800
MOST_DETAIL = 60


class BlockDocument(NamedTuple):
    """A document that a block has topics of."""

    name: str
    version: int


@dataclass(frozen=True, slots=True)
class TopicBlock:
    """Topics that belong together: their texts, and what each was taken from."""

    name: str
    texts: Sequence[str]
    sources: Sequence[Sequence[NodeSourceDraft]]

    @property
    def documents(self) -> list[BlockDocument]:
        """Whose topics these are, each document once."""
        every = (BlockDocument(each.document, each.version) for some in self.sources for each in some)
        return sorted(dict.fromkeys(every))

    def draft(self, tier: int) -> StateDraft:
        """The block as it is staged for the next phase."""
        sources = [
            [[each.document, each.version, each.first, each.last] for each in some] for some in self.sources
        ]
        return StateDraft(self.name, tier, {"texts": list(self.texts), "sources": sources})


def of_map(mapped: Mapped) -> TopicBlock:
    """The main topics of a map: of a document, or over several."""
    texts = [_text(topic) for topic in mapped.topics]
    return _block(texts, [mapped.sources_of(topic) for topic in mapped.topics])


def _block(texts: Sequence[str], sources: Sequence[Sequence[NodeSourceDraft]]) -> TopicBlock:
    return TopicBlock(neighbour_groups.digest("\n".join(texts)), texts, sources)


def _text(topic: Topic) -> str:
    below = outlines.short("; ".join(each.title for each in topic.topics), MOST_DETAIL)
    return f"{topic.title} ({below})" if below else topic.title


def merged(states: Sequence[StoredState]) -> list[TopicBlock]:
    """The staged blocks, ordered by name; equal ones are one with the sources of all."""
    blocks: dict[str, TopicBlock] = {}
    for state in sorted(states, key=lambda state: state.name):
        texts = [str(text) for text in state.data["texts"]]
        sources = [[NodeSourceDraft(*each) for each in some] for some in state.data["sources"]]
        known = blocks.get(state.name)
        if known is not None:
            sources = [[*mine, *more] for mine, more in zip(known.sources, sources, strict=True)]
        blocks[state.name] = TopicBlock(state.name, texts, sources)
    return list(blocks.values())


def groups(blocks: Sequence[TopicBlock]) -> list[list[TopicBlock]]:
    """The blocks in groups that fit into one call each; fewer groups than blocks."""
    divided = _divided(blocks, 0)
    return divided if len(divided) < len(blocks) or len(blocks) < 2 else [list(blocks)]


def _divided(blocks: Sequence[TopicBlock], bit: int) -> list[list[TopicBlock]]:
    """The blocks by the bits of their names."""
    if len(blocks) < 2 or sum(len(block.texts) for block in blocks) <= MOST_LINES:
        return [list(blocks)] if blocks else []
    halves: tuple[list[TopicBlock], list[TopicBlock]] = [], []
    for block in blocks:
        halves[int(block.name[bit // 4], 16) >> (3 - bit % 4) & 1].append(block)
    return [group for half in halves for group in _divided(half, bit + 1)]


def call(model: Model, group: Sequence[TopicBlock], notes: str) -> Call:
    """The paid call for a map over these blocks."""
    lines = [MapLine(text, opens=number == 0) for block in group for number, text in enumerate(block.texts)]
    return topic_maps.call(model, lines, topic_maps.COLLECTION, notes)


def read(
    answer: bytes | WorkError | None, group: Sequence[TopicBlock]
) -> tuple[Mapped, Sequence[BlockDocument]]:
    """The map over these blocks by the answer, and the documents that the model left out of it.

    A topic that it forgot belongs where another of the same document does. Where it forgot a document, that
    is a main topic of its own while there is room. Without an answer that can be used there are no topics.
    """
    sources = [some for block in group for some in block.sources]
    if answer is None:
        return Mapped((), sources, by_outline=True), ()
    reading = topic_maps.read(answer, len(sources))
    if not reading.topics:
        return Mapped((), sources, by_outline=True, error=reading.error), ()
    topics = list(reading.topics)
    absent = set(topic_maps.missing(topics, len(sources)))
    left_out: list[BlockDocument] = []
    for block, numbers in _numbered(group):
        present = [number for number in numbers if number not in absent]
        if present:
            for number in absent.intersection(numbers):
                topic_maps.join(topics, number, present[0])
        elif len(topics) < topic_maps.MOST_CHILDREN:
            topics.append(Topic(outlines.short(block.texts[0], topic_maps.MOST_TITLE), list(numbers)))
        else:
            left_out += block.documents
    return Mapped(topics, sources), left_out


def by_titles(group: Sequence[TopicBlock], titles: Mapping[str, str], error: WorkError | None) -> Mapped:
    """The map that needs no model: the documents by their titles, each with its main topics."""
    topics = []
    for block, numbers in _numbered(group):
        title = min((titles.get(document.name, "") for document in block.documents), default="")
        below = [
            Topic(outlines.short(text, topic_maps.MOST_TITLE), [number])
            for number, text in zip(numbers, block.texts, strict=True)
        ]
        topics.append(Topic(outlines.short(title or block.texts[0], topic_maps.MOST_TITLE), [], below))
    topics.sort(key=lambda topic: (topic.title.casefold(), topic.title))
    sources = [some for block in group for some in block.sources]
    return Mapped(topic_maps.folded(topics), sources, by_outline=True, error=error)


def _numbered(group: Sequence[TopicBlock]) -> Iterator[tuple[TopicBlock, range]]:
    start = 0
    for block in group:
        yield block, range(start, start + len(block.texts))
        start += len(block.texts)
