"""What a question is asked with, and what is answered: frozen records for the API, the web UI and the CLI."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.core.filters import Filter
from holdfast.search.citations import CheckedSentence
from holdfast.search.searcher import Hit, Mode

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

    @classmethod
    def of(cls, n: int, hit: Hit) -> "AnswerSource":
        """The passage of a hit."""
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
    """Nano-dollars paid for this answer, and saved because it was known; its tokens if it was paid for.

    `unpriced` says that the model has no known price: `paid` is then not all.
    """

    paid: int = 0
    saved: int = 0
    tokens: int = 0
    unpriced: bool = False


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """An answer with checked citations, or why there is none.

    `reason` of a refusal: `nothing_found`, `weak_matches` (both without a call), `not_in_sources` (the model
    said so). Of an answer: `cut_off` (at its output limit), `uncited`, `repetitive`; None if nothing is
    amiss. `replayed` is true if nothing was paid because the ledger had the answer.
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
