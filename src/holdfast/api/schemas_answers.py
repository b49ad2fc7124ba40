"""What a question and its answer look like on the wire."""

from dataclasses import asdict
from typing import Annotated, Any, Self

from pydantic import Field

from holdfast.api.schemas_documents import MaxCost, Rerank, Shape, dollars
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
from holdfast.service.search_pages import MOST_COLLECTIONS, QuestionMode


class AskBody(Shape):
    """A question to a collection. `k` is how many passages the answer may be made from.

    With `stream` the answer comes as events. `fresh` asks anew and pays, though the answer is known.
    `max_cost` is what it may cost at most, in US dollars. `rerank` as in a search.
    """

    question: Annotated[str, Field(min_length=1, max_length=MOST_QUESTION)]
    k: Annotated[int, Field(ge=1, le=MOST_SOURCES)] = USUAL_SOURCES
    mode: QuestionMode = "hybrid"
    documents: Annotated[list[str], Field(max_length=100)] | None = None
    filter: dict[str, Any] | None = None
    max_tokens: Annotated[int, Field(ge=16, le=MOST_TOKENS)] = USUAL_TOKENS
    max_cost: MaxCost = None
    stream: bool = False
    fresh: bool = False
    rerank: Rerank = None


class AskSeveralBody(AskBody):
    """A question to one or several collections. `billed_to` of the answer says which one's bill has it."""

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


class SourcePassageResponse(Shape):
    """A passage that a report rests on."""

    document_id: str
    title: str
    page: int | None
    chunk: str
    generation: int
    text: str


class SourceResponse(Shape):
    """A passage that the answer may cite as `[n]`; `quote` is the part of it that best fits the question.

    `edited`: a person replaced its text. In the mode `global` a source is a `report` of the knowledge graph,
    which `node` names; `passages` are those it rests on, and `chunk` is the best of them.
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
    type: str
    node: str | None
    passages: list[SourcePassageResponse]

    @classmethod
    def of(cls, source: AnswerSource) -> Self:
        """A source as it goes over the wire."""
        own = {name: getattr(source, name) for name in cls.model_fields if name != "passages"}
        return cls(**own, passages=[SourcePassageResponse(**asdict(each)) for each in source.passages])


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


class AnswerNotice(Shape):
    """What was amiss with the search, for instance `not_embedded` or `not_reranked`."""

    code: str
    message: str


class AnswerResponse(Shape):
    """An answer with checked citations, or a refusal.

    `reason` of a refusal: `nothing_found` or `weak_matches` (no model was asked), `not_in_sources` (it said
    so). Of an answer: `cut_off`, `uncited`, `repetitive`, or null. `unknown_citations` is how many citations
    were removed because they name no source. `replayed`: the ledger had the answer, the model was not paid.
    `stand_in`: the built-in stand-in answered, which quotes and is no language model. `cost` includes the
    question's embedding and the ranking of the passages. `billed_to` is the collection that most of the
    passages are from; null if no model was asked. `notices` is empty where nothing is amiss.
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
    notices: list[AnswerNotice]
    billed_to: str | None

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
            notices=[AnswerNotice(code=each.code, message=each.message) for each in answer.notices],
            billed_to=answer.billed_to,
        )
