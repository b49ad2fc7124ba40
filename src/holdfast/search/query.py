"""A query in the form that the legs need: terms, a vector, and which documents are searched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from holdfast.core import text as texts
from holdfast.core.filters import Filter
from holdfast.core.languages import ENGLISH_RULES, LANGUAGES
from holdfast.extras import LazyModule
from holdfast.search import statistics, tokenizer
from holdfast.search.rules import SearchRules
from holdfast.store.base.database import Tx
from holdfast.store.search import search_reads as stored
from holdfast.store.search.examples import Example, ExampleVector
from holdfast.vectors.encoding import Vector, normalised

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

Embed: TypeAlias = "Callable[[str], Vector | None]"

KEYWORD, VECTOR, TITLE = "keyword", "vector", "title"


@dataclass(frozen=True, slots=True)
class Floor:
    """Cosines below which similar meaning is chance: without a word of the query a chunk below is no hit.

    `unknown` holds where the collection has no word of the query at all, `known` where it has. Below `weak` a
    hit is marked as weak.
    """

    weak: float = 0.0
    known: float = 0.0
    unknown: float = 0.0


NO_FLOOR = Floor(-1.0, -1.0, -1.0)


@dataclass(frozen=True, slots=True)
class SearchPart:
    """A collection to be searched: who embeds the query for it, and what is particular to it."""

    collection: str
    embed: Embed | None = None
    provider: str | None = None
    model: str | None = None
    floor: Floor = NO_FLOOR
    rules: SearchRules | None = None


@dataclass(frozen=True, slots=True)
class QueryWords:
    """The words of a query, which have another form in documents of another language. False without any."""

    is_there: bool
    text: str = ""
    rules: SearchRules | None = None
    most: int = tokenizer.MOST_TERMS
    english: tuple[str, ...] = ()

    def terms(self, language: int) -> tuple[str, ...]:
        """The terms by which documents of this language are found."""
        terms = self.english
        if language != ENGLISH_RULES:
            terms = tuple(tokenizer.analyse(self.text, self.most, language))
        return terms if self.rules is None else self.rules.in_language(language).applied(terms)

    def __bool__(self) -> bool:
        return self.is_there


NO_WORDS = QueryWords(is_there=False)
EXAMPLE_WORDS = QueryWords(is_there=True)


def words_of(text: str, rules: SearchRules | None, most: int) -> QueryWords:
    """The words of this text, at most so many."""
    english = tuple(tokenizer.analyse(text, most))
    # *Not* is no word to search for in English, and an emergency in German.
    is_there = bool(english) or any(tokenizer.analyse(text, 1, each.number) for each in LANGUAGES.values())
    return QueryWords(is_there, text, rules, most, english)


@dataclass(frozen=True, slots=True)
class CollectionQuery:
    """A query to one collection. `example` is what hits should be like; it is not among them."""

    tenant: str
    collection: str
    k: int
    documents: tuple[str, ...] | None
    only: Filter | None
    words: QueryWords
    vector: Vector | None
    provider: str | None
    model: str | None
    floor: Floor = NO_FLOOR
    example: Example | None = None

    @property
    def is_limited(self) -> bool:
        """True if only some documents are searched."""
        return self.documents is not None or self.only is not None

    @property
    def legs(self) -> tuple[str, ...]:
        """The legs that take part."""
        return ((KEYWORD,) if self.words else ()) + ((VECTOR,) if self.vector is not None else ())


def heads_of(tx: Tx, query: CollectionQuery, passing: Sequence[int] | None) -> Sequence[int] | None:
    """The heads that are searched: those that pass the filter and are named; None for all."""
    if query.documents is None:
        return passing
    name = (query.tenant, query.collection)
    heads = stored.heads_of(tx, *name, filter(texts.is_plain, query.documents))
    return heads if passing is None else sorted({*heads} & {*passing})


def terms_by_language(query: CollectionQuery, counted: statistics.Statistics) -> dict[int, Sequence[str]]:
    """The terms of the query for each language that the collection has.

    Those of an example stand as they are in its own language; only those that other documents have count.
    """
    if query.example is None:
        return {language: query.words.terms(language) for language in counted.languages}
    shared = _shared_terms(query.example, counted)
    return dict.fromkeys(counted.languages, shared)


def _shared_terms(example: Example, counted: statistics.Statistics) -> Sequence[str]:
    own = Counter(chain.from_iterable(set(each.split()) for each in example.words))
    names = list(own)
    shared = {
        name
        for name, frequency in zip(names, counted.frequencies(names), strict=True)
        if frequency > own[name]
    }
    return [term for each in example.words for term in each.split() if term in shared]


def mean_of(vectors: Sequence[ExampleVector], part: SearchPart) -> Vector | None:
    """The direction of the vectors that the collection's model made; None if there are none."""
    rows = [
        each.vector
        for each in vectors
        if part.provider in {None, each.provider} and part.model in {None, each.model}
    ]
    if not rows or len({len(each) for each in rows}) > 1:
        return None
    mean: Vector = normalised(np.frombuffer(b"".join(rows), "<f4").reshape(len(rows), -1)).mean(axis=0)
    return mean
