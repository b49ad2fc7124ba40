"""The title leg: documents whose title or file name has the words of a query.

Titles are short and few, so a collection's titles are cached by their words and brought to the stamp of the
query's snapshot by reading what changed since. The snapshot decides which chunk a title leads to: the best
one that the other legs found in the document, else the first of its published generation, or none.
"""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial

from holdfast.core import languages
from holdfast.search import bm25, tokenizer
from holdfast.store.base.database import Tx
from holdfast.store.search import search_reads as stamps
from holdfast.store.search import title_reads as stored
from holdfast.store.search.snapshot_cache import SnapshotCache

BUDGET = 64 << 20
MOST = 50  # documents that may match by title
LOOKED_UP, MOST_LOOKED_UP = 200, 2000  # at once, and in all, where only some documents are searched
LEAST = 0.25  # share of the query's weight below which a title does not match
_LONGEST = 60  # terms of a title and a name that count
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,5}$")


@dataclass(frozen=True, slots=True)
class Titles:
    """The terms of every title, and the documents that have each term. Immutable."""

    publish_seq: int
    read_at: float
    terms: Mapping[str, frozenset[str]]
    having: Mapping[str, AbstractSet[str]]
    changed: Mapping[str, float]

    @property
    def nbytes(self) -> int:
        """About how much memory this takes."""
        return 1300 * len(self.terms) + 200


class TitleCache:
    """The titles of recently searched collections."""

    def __init__(self, budget: int = BUDGET) -> None:
        self._cache: SnapshotCache[Titles] = SnapshotCache(budget)

    def is_at(self, tenant: str, collection: str, publish_seq: int) -> bool:
        """True if the titles are cached at this stamp."""
        return self._cache.known((tenant, collection), publish_seq) is not None

    def at(self, tx: Tx, tenant: str, collection: str, stamp: stamps.Stamp) -> Titles:
        """The titles at this stamp."""
        return self._cache.at(
            (tenant, collection), stamp.publish_seq, partial(_bring, tx, tenant, collection, stamp)
        )


@dataclass(frozen=True, slots=True)
class Titled:
    """A document whose title matches: its head, its first chunk, the score and the trust in it."""

    head_id: int
    chunk_id: int
    score: float
    trust: float


def rank(
    tx: Tx,
    tenant: str,
    collection: str,
    queries: Mapping[int, Mapping[str, int]],
    chunks: int,
    titles: Titles,
    *,
    heads: AbstractSet[int] | None,
) -> list[Titled]:
    """The visible documents whose titles match best, best first; only of `heads` if given.

    For each language `queries` maps the query's terms to how many of the `chunks` have each. Trust is the
    share of the query's weight that the title has, less if it has other words as well.
    """
    fitting: list[tuple[float, str, float]] = []
    for language, query in queries.items():
        weights = _weights({_tagged(term, language): query[term] for term in query}, chunks, titles)
        fitting += _fitting(weights, titles)
    fitting.sort(key=lambda one: (-round(one[0], 6), one[1]))
    titled: list[Titled] = []
    # Which documents have which head is only known to the database, so that those of others are read in vain.
    step = MOST if heads is None else LOOKED_UP
    for first in range(0, min(len(fitting), MOST if heads is None else MOST_LOOKED_UP), step):
        best = fitting[first : first + step]
        begins = stored.beginnings(tx, tenant, collection, [document for _, document, _ in best])
        titled += [
            Titled(beginning.head_id, beginning.chunk_id, score, score / whole)
            for score, document, whole in best
            if (beginning := begins.get(document)) is not None
            and (heads is None or beginning.head_id in heads)
        ]
        if len(titled) >= MOST:
            break
    return titled[:MOST]


def _fitting(weights: Mapping[str, float], titles: Titles) -> list[tuple[float, str, float]]:
    """The documents whose titles match, with their scores, and the weight of the whole query."""
    whole = sum(weights.values())
    scores: dict[str, float] = {}
    for term, weight in weights.items():
        for document in titles.having.get(term, ()):
            scores[document] = scores.get(document, 0.0) + weight
    return [
        (score * _fullness(titles.terms[document], weights), document, whole)
        for document, score in scores.items()
        if score >= LEAST * whole
    ]


def _weights(query: Mapping[str, int], chunks: int, titles: Titles) -> dict[str, float]:
    """The weight of each query term; one that many titles have is common, even if texts lack it."""
    return {
        term: bm25.weight(max(query[term], len(titles.having.get(term, ()))), chunks)
        for term in sorted(query)
    }


def _fullness(terms: frozenset[str], weights: Mapping[str, float]) -> float:
    """1.0 for a title with only the query's words, down to nearly 0.5."""
    return 0.5 + 0.5 * len(terms & weights.keys()) / len(terms)


def _bring(tx: Tx, tenant: str, collection: str, stamp: stamps.Stamp, old: Titles | None) -> Titles:
    """The titles that the snapshot shows; only those changed since `old` are read."""
    known = dict(old.terms) if old is not None else {}
    having = dict(old.having) if old is not None else {}
    changed = dict(old.changed) if old is not None else {}
    own: dict[str, set[str]] = {}  # sets that are not shared yet

    def those(term: str) -> set[str]:
        if term not in own:
            own[term] = set(having.get(term, ()))
        return own[term]

    rows = stored.titles(tx, tenant, collection, since=old.read_at if old is not None else 0.0)
    for document, title, name, updated_at, deleted, language in rows:
        if changed.get(document) == updated_at:
            continue
        changed[document] = updated_at
        terms = frozenset() if deleted else _terms(title, name, languages.rules(language))
        before = known.pop(document, frozenset())
        for gone in before - terms:
            those(gone).discard(document)
        for come in terms - before:
            those(come).add(document)
        if terms:
            known[document] = terms
    return Titles(stamp.publish_seq, stamp.read_at, known, having | own, changed)


def _terms(title: str, name: str, language: int = languages.ENGLISH_RULES) -> frozenset[str]:
    called = f"{_SUFFIX.sub('', title)}\n{_SUFFIX.sub('', name)}"
    return frozenset(_tagged(term, language) for term in tokenizer.analyse(called, _LONGEST, language))


def _tagged(term: str, language: int) -> str:
    """The term of a title in another language than English: no term has a colon."""
    return term if language == languages.ENGLISH_RULES else f"{language}:{term}"
