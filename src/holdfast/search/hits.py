"""What a search returns: hits, how they were reached, and what is amiss."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.core import languages
from holdfast.core.records import Spent
from holdfast.search import snippet
from holdfast.search.fusion import LegScore
from holdfast.search.snippet import Snippet


@dataclass(frozen=True, slots=True)
class PathStep:
    """A node of a knowledge graph that led to a hit."""

    type: str
    key: str
    title: str


@dataclass(frozen=True, slots=True)
class HitPassage:
    """A chunk that a hit rests on which is no chunk itself; `chunk` is its name."""

    document_id: str
    title: str
    page: int | None
    chunk: str
    generation: int
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A matching chunk of a published generation."""

    document_id: str
    title: str
    page: int | None
    text: str
    score: float
    generation: int
    slice: int
    position: int
    chunk_id: int
    parts: tuple[LegScore, ...]
    weights: Mapping[str, float] = field(compare=False, repr=False)
    source: str = "chunks"
    collection: str = ""
    weak: bool = False
    language: str | None = None
    # A person replaced the text.
    edited: bool = False

    # What it is, where it is no chunk: its type, its name in a tree, and the documents that it is about.
    type: str = "chunk"
    node: str | None = None
    covers: tuple[str, ...] = ()
    # How a knowledge graph led there, and the chunks that a report rests on.
    path: tuple[PathStep, ...] = ()
    passages: tuple[HitPassage, ...] = ()

    # What a reranking model says of it; None if none was asked.
    relevance: float | None = None
    # What the steps of a flow made of it, as far as the flow publishes it.
    fields: Mapping[str, object] = field(default_factory=dict, compare=False)

    @property
    def snippet(self) -> Snippet:
        """The part of the text that best shows the match; computed on access."""
        return snippet.cut(self.text, self.weights, language=languages.rules(self.language))

    @property
    def marks(self) -> tuple[tuple[int, int], ...]:
        """Where words of the query are in the text, as (from, to) in characters; computed on access."""
        return snippet.marks(self.text, self.weights, languages.rules(self.language))


@dataclass(frozen=True, slots=True)
class QualityNotice:
    """Why the results are degraded, and how many documents are affected."""

    code: str
    message: str
    documents: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """The hits, best first; the stamp that was searched; the legs that took part; notices; the cost."""

    hits: tuple[Hit, ...]
    publish_seq: int
    legs: tuple[str, ...]
    notices: tuple[QualityNotice, ...] = ()
    spent: Spent = field(default_factory=Spent)
