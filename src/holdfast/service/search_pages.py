"""The parameters of a search, and its hits page by page, one by one or grouped by document."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

from holdfast.core.errors import BadRequestError
from holdfast.core.filters import Filter
from holdfast.core.records import TENANT, Spent
from holdfast.search.hits import Found, Hit, QualityNotice
from holdfast.search.searcher import Mode

QuestionMode = Literal["hybrid", "keyword", "vector", "local", "global"]
"""By words and meaning, by one of them, or by the knowledge graph."""
GraphMode = Literal["local", "global"]

MOST_COLLECTIONS = 20
MOST_OFFSET = 900
PER_DOCUMENT = 3  # hits that are shown of each document


@dataclass(frozen=True, slots=True)
class LikeThis:
    """A document, or its chunk at (slice, position), that hits should be like."""

    document_id: str
    at: tuple[int, int] | None = None

    @classmethod
    def read(cls, text: str) -> Self:
        """From `DOCUMENT` or `DOCUMENT@SLICE.POSITION`; BadRequestError for anything else."""
        document, _, position = text.partition("@")
        numbers = position.split(".") if position else []
        fits = all(each.isascii() and each.isdigit() and len(each) < 10 for each in numbers)
        if not TENANT.fullmatch(document) or not fits or len(numbers) not in {0, 2}:
            message = "`like` is the id of a document, or of a chunk: DOCUMENT@SLICE.POSITION"
            raise BadRequestError(message, code="bad_request")
        return cls(document, (int(numbers[0]), int(numbers[1])) if numbers else None)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A question to one or several collections, and which page of the hits is wanted."""

    tenant: str
    collections: Sequence[str]
    text: str = ""
    like: LikeThis | None = None
    k: int = 10
    offset: int = 0
    documents: Sequence[str] | None = None
    only: Filter | None = None
    mode: Mode = "hybrid"
    sources: Sequence[str] | None = None
    grouped: bool = False
    # True, or the name of a provider: hits in its order. None: as the collections say.
    rerank: bool | str | None = None
    # What ranking them may cost, in nano-dollars.
    max_cost: int | None = None
    graph: GraphMode | None = None


@dataclass(frozen=True, slots=True)
class DocumentHits:
    """A document with its best hits, the best first."""

    document_id: str
    title: str
    collection: str
    score: float
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class SearchPage:
    """Hits, or groups of them; `next_offset` is where the next page begins, None on the last.

    `spent` is what embedding the question and ranking the hits has cost.
    """

    hits: tuple[Hit, ...]
    groups: tuple[DocumentHits, ...]
    legs: tuple[str, ...]
    notices: tuple[QualityNotice, ...]
    publish_seq: int
    next_offset: int | None
    spent: Spent = field(default_factory=Spent)


def modes(mode: QuestionMode) -> tuple[Mode, GraphMode | None]:
    """The mode of the usual search, and that of a search by the knowledge graph."""
    if mode == "local" or mode == "global":  # noqa: PLR1714 - so that mypy follows
        return "hybrid", mode
    return mode, None


def page(result: Found, request: SearchRequest) -> SearchPage:
    """The part of the hits that the request wants."""
    groups = _groups(result.hits) if request.grouped else ()
    number = len(groups) if request.grouped else len(result.hits)
    end = request.offset + request.k
    follows = end if number > end and end <= MOST_OFFSET else None
    part = slice(request.offset, end)
    hits = () if request.grouped else result.hits[part]
    return SearchPage(
        hits, groups[part], result.legs, result.notices, result.publish_seq, follows, result.spent
    )


def _groups(hits: Sequence[Hit]) -> tuple[DocumentHits, ...]:
    """The hits by document, in the order of the best of each."""
    by_document: dict[str, list[Hit]] = {}
    for hit in hits:
        by_document.setdefault(hit.document_id, []).append(hit)
    return tuple(
        DocumentHits(name, some[0].title, some[0].collection, some[0].score, tuple(some[:PER_DOCUMENT]))
        for name, some in by_document.items()
    )
