"""What a question and its answer look like on the wire."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field

from holdfast.api.schemas_documents import MaxCost, Shape, dollars
from holdfast.search.citations import CheckedSentence, Support
from holdfast.service.answers import (
    MOST_QUESTION,
    MOST_SOURCES,
    MOST_TOKENS,
    USUAL_SOURCES,
    USUAL_TOKENS,
    AnswerCost,
    AnswerSource,
    CitedAnswer,
)
from holdfast.service.search_pages import MOST_COLLECTIONS


class AskBody(Shape):
    """A question to a collection. `k` is how many passages the answer may be made from.

    With `stream` the answer comes as events. `fresh` asks anew and pays, though the answer is known.
    `max_cost` is what it may cost at most, in US dollars.
    """

    question: Annotated[str, Field(min_length=1, max_length=MOST_QUESTION)]
    k: Annotated[int, Field(ge=1, le=MOST_SOURCES)] = USUAL_SOURCES
    mode: Literal["hybrid", "keyword", "vector"] = "hybrid"
    documents: Annotated[list[str], Field(max_length=100)] | None = None
    filter: dict[str, Any] | None = None
    max_tokens: Annotated[int, Field(ge=16, le=MOST_TOKENS)] = USUAL_TOKENS
    max_cost: MaxCost = None
    stream: bool = False
    fresh: bool = False


class AskSeveralBody(AskBody):
    """A question to one or several collections. What is paid is in the bill of the first."""

    collections: Annotated[list[str], Field(min_length=1, max_length=MOST_COLLECTIONS)]


class SentenceResponse(Shape):
    """A sentence of the answer, the numbers of the sources that it cites, and how far they support it.

    `quoted`: it stands there word for word. `worded`: its numbers, dates and names are there. `none`: they
    are not, or it cites nothing.
    """

    text: str
    cites: list[int]
    support: Support

    @classmethod
    def of(cls, sentence: CheckedSentence) -> Self:
        """A sentence as it goes over the wire."""
        return cls(text=sentence.text, cites=list(sentence.cites), support=sentence.support)


class SourceResponse(Shape):
    """A passage that the answer may cite as `[n]`; `quote` is the part of it that best fits the question.

    `edited`: a person replaced its text.
    """

    n: int
    document_id: str
    title: str
    collection: str
    page: int | None
    chunk: str
    generation: int
    quote: str
    edited: bool

    @classmethod
    def of(cls, source: AnswerSource) -> Self:
        """A source as it goes over the wire."""
        return cls(**{name: getattr(source, name) for name in cls.model_fields})


class AnswerCostResponse(Shape):
    """US dollars paid and saved, and the tokens that were paid for; `paid` is null without a known price."""

    paid: float | None
    saved: float
    tokens: int

    @classmethod
    def of(cls, cost: AnswerCost) -> Self:
        """A cost as it goes over the wire."""
        paid = None if cost.unpriced and not cost.paid else dollars(cost.paid)
        return cls(paid=paid, saved=dollars(cost.saved), tokens=cost.tokens)


class AnswerResponse(Shape):
    """An answer with checked citations, or a refusal.

    `reason` of a refusal: `nothing_found` or `weak_matches` (no model was asked), `not_in_sources` (it said
    so). Of an answer: `cut_off`, `uncited`, `repetitive`, or null. `unknown_citations` is how many citations
    were removed because they name no source. `replayed`: the ledger had the answer and nothing was paid.
    `stand_in`: the built-in stand-in answered, which quotes and is no language model.
    """

    answer: str
    sentences: list[SentenceResponse]
    sources: list[SourceResponse]
    refused: bool
    reason: str | None
    cost: AnswerCostResponse
    replayed: bool
    stand_in: bool
    unknown_citations: int

    @classmethod
    def of(cls, answer: CitedAnswer) -> Self:
        """An answer as it goes over the wire."""
        return cls(
            answer=answer.answer,
            sentences=[SentenceResponse.of(each) for each in answer.sentences],
            sources=[SourceResponse.of(each) for each in answer.sources],
            refused=answer.refused,
            reason=answer.reason,
            cost=AnswerCostResponse.of(answer.cost),
            replayed=answer.replayed,
            stand_in=answer.stand_in,
            unknown_citations=answer.unknown_citations,
        )
