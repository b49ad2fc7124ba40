"""What a question is asked with, and what is answered: frozen records for the API, the web UI and the CLI."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.core.filters import Filter
from holdfast.core.records import Spent
from holdfast.search.citations import CheckedSentence
from holdfast.search.hits import Hit, HitPassage, QualityNotice
from holdfast.search.searcher import Mode
from holdfast.service.search_pages import GraphMode

MOST_QUESTION = 4_000
USUAL_SOURCES, MOST_SOURCES = 8, 30
USUAL_TOKENS, MOST_TOKENS = 600, 4_000


@dataclass(frozen=True, slots=True)
class AskRequest:
    """A question to one or several collections.

    `turns` is the conversation before it, as (role, text). `fresh` asks anew and pays, though an answer is
    known. `max_cost` is in nano-dollars.
    """

    tenant: str
    collections: Sequence[str]
    question: str
    k: int = USUAL_SOURCES
    documents: Sequence[str] | None = None
    only: Filter | None = None
    mode: Mode = "hybrid"
    max_tokens: int = USUAL_TOKENS
    fresh: bool = False
    max_cost: int | None = None
    turns: Sequence[tuple[str, str]] = ()
    # As in a search: who ranks the passages before the best are taken.
    rerank: bool | str | None = None
    graph: GraphMode | None = None


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """A passage that the answer may cite as `[n]`. `quote` is the part of it that best fits the question."""

    n: int
    document_id: str
    title: str
    collection: str
    page: int | None
    chunk: str
    generation: int
    quote: str
    text: str
    edited: bool = False
    # Of a report of the knowledge graph: its key, and the passages that it rests on, the best first.
    type: str = "chunk"
    node: str | None = None
    passages: tuple[HitPassage, ...] = ()

    @classmethod
    def of(cls, n: int, hit: Hit) -> "AnswerSource":
        """The passage of a hit; a report is cited by the best passage that it rests on."""
        if hit.passages:
            best = hit.passages[0]
            return cls(
                n,
                best.document_id,
                hit.title,
                hit.collection,
                best.page,
                best.chunk,
                best.generation,
                hit.snippet.text,
                hit.text,
                type=hit.type,
                node=hit.node,
                passages=hit.passages,
            )
        return cls(
            n,
            hit.document_id,
            hit.title,
            hit.collection,
            hit.page,
            f"{hit.document_id}@{hit.slice}.{hit.position}",
            hit.generation,
            hit.snippet.text,
            hit.text,
            hit.edited,
        )


@dataclass(frozen=True, slots=True)
class AnswerCost:
    """Nano-dollars paid for this answer, and saved because it was known; the tokens that were paid for.

    `output_tokens` are those of them that the model has written.

    The question's embedding and the ranking of the passages are part of it. `unpriced` says that a model has
    no known price: `paid` is then not all.
    """

    paid: int = 0
    saved: int = 0
    tokens: int = 0
    unpriced: bool = False
    output_tokens: int = 0

    @classmethod
    def of(cls, spent: Spent, output_tokens: int = 0) -> "AnswerCost":
        """The cost of what was paid."""
        return cls(spent.paid, spent.saved, spent.tokens, spent.unpriced_calls > 0, output_tokens)


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """An answer with checked citations, or why there is none.

    `reason` of a refusal: `nothing_found`, `weak_matches` (both without a call), `not_in_sources` (the model
    said so). Of an answer: `cut_off` (at its output limit), `uncited`, `repetitive`; None if nothing is
    amiss. `replayed` is true if the model was not paid because the ledger had the answer. `notices` say what
    was amiss with the search. `billed_to` is the collection whose bill has the answer; None if nothing was
    ordered.
    """

    answer: str
    sentences: tuple[CheckedSentence, ...]
    sources: tuple[AnswerSource, ...]
    refused: bool
    reason: str | None
    cost: AnswerCost
    replayed: bool
    stand_in: bool
    unknown_citations: int = 0
    notices: tuple[QualityNotice, ...] = ()
    billed_to: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """A piece of the answer as the model wrote it, unchecked, and where in it that begins; 0 begins anew."""

    text: str
    at: int


Heard: TypeAlias = Callable[[tuple[AnswerSource, ...] | AnswerPiece], None]
"""Told the sources once, then each piece of the answer; must neither wait nor raise."""


def nobody(_event: tuple[AnswerSource, ...] | AnswerPiece) -> None:
    """Nobody listens."""


SENTENCES = {
    "nothing_found": "Nothing in the collection matches the question, so no model was asked.",
    "weak_matches": "Only weak matches were found, so no model was asked.",
    "not_in_sources": "The passages that were found do not hold the answer.",
    "cut_off": "The answer was cut off at its output limit.",
    "uncited": "The model cited no source; nothing of this answer could be checked.",
    "repetitive": "The model repeated itself; repeated sentences were left out.",
}
"""What the reasons mean, for people."""
