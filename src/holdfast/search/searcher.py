"""`Searcher.search`: one query, one snapshot, two legs, one ranking.

Everything a query sees comes from one read snapshot: the collection's stamp is read first, and cached data is
brought to exactly that stamp inside the snapshot before a leg uses it. So no leg can return a chunk of a
generation that another one does not see, whatever is published or deleted meanwhile (G3).

The query is embedded before the snapshot opens: that may be a paid call, and no transaction waits for a
provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple, NoReturn, get_args

from holdfast.core import languages
from holdfast.core import text as texts
from holdfast.core.errors import BadRequestError
from holdfast.core.filters import Filter
from holdfast.search import fusion, keyword, statistics, titles
from holdfast.search import query as query_form
from holdfast.search.fusion import Fused
from holdfast.search.hits import Found, Hit
from holdfast.search.query import (
    EXAMPLE_WORDS,
    KEYWORD,
    NO_FLOOR,
    NO_WORDS,
    TITLE,
    VECTOR,
    CollectionQuery,
    Embed,
    Floor,
    SearchPart,
)
from holdfast.search.rules import SearchRules
from holdfast.store.base.database import Database, Tx
from holdfast.store.search import examples, filtered_heads, title_reads
from holdfast.store.search import search_reads as stored
from holdfast.store.search.snapshot_cache import SnapshotCache
from holdfast.vectors.base import Ranked, VectorIndex
from holdfast.vectors.encoding import Vector
from holdfast.vectors.exact import ExactIndex

Mode = Literal["hybrid", "keyword", "vector"]
DEPTH = 100  # ranks of each leg that take part
DEEP = 1000  # the same, for pages beyond the first
MOST_HITS = 200
MOST_RANKED = DEEP
WEAK_SHARE = 0.2  # of the query's weight that words must match, for a hit that means something else
LONGEST_QUERY = 100_000  # characters; what follows is not read


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that a searcher caches for later queries."""

    vectors: int
    statistics: int


@dataclass(frozen=True, slots=True)
class _Seen:
    """A cached view, with an estimate of its size."""

    view: stored.CollectionSnapshot

    @property
    def publish_seq(self) -> int:
        return self.view.publish_seq

    @property
    def nbytes(self) -> int:
        return 100 * len(self.view.heads) + 200


class Searcher:
    """Searches for all threads of one process, with a cache for later queries."""

    def __init__(
        self,
        db: Database,
        embed: Embed | None = None,
        *,
        vectors: VectorIndex | None = None,
        statistics_budget: int = statistics.BUDGET,
    ) -> None:
        self._db = db
        self._embed = embed
        self._vectors = vectors if vectors is not None else ExactIndex()
        self._statistics = statistics.StatisticsCache(statistics_budget)
        self._titles = titles.TitleCache()
        self._views: SnapshotCache[_Seen] = SnapshotCache(64 << 20)

    @property
    def memory(self) -> Memory:
        """About how much memory the caches take now."""
        return Memory(self._vectors.nbytes, self._statistics.nbytes)

    def search(
        self,
        tenant: str,
        collection: str,
        text: str,
        k: int = 10,
        *,
        documents: Sequence[str] | None = None,
        only: Filter | None = None,
        mode: Mode = "hybrid",
        embed: Embed | None = None,
        provider: str | None = None,
        model: str | None = None,
        seen: int | None = None,
        floor: Floor = NO_FLOOR,
        rules: SearchRules | None = None,
    ) -> Found:
        """The best `k` published chunks of the collection, or of these `documents` in it, or those that pass.

        `only` is a filter; what it leaves is decided in the snapshot of the query, before anything is ranked.

        `embed` replaces the searcher's own and is called once, if the mode needs it and the query is not
        empty; if it returns None, only the keyword leg is used. `provider` and `model` name its vectors: only
        those are compared, otherwise all of the same dimension. `seen` is the collection's `publish_seq` as
        just read by the caller: data cached at that stamp answers with one statement instead of a snapshot.

        `floor` says which cosines are chance: what is below it and has no word of the query is no hit.
        """
        part = SearchPart(collection, embed, provider, model, floor, rules)
        query = self._query(tenant, part, text, k, documents=documents, only=only, mode=mode)
        if not all(map(texts.is_plain, (tenant, collection))):
            return Found((), 0, query.legs)
        if seen is not None and (result := self._remembered(query, seen)) is not None:
            return result
        is_new = seen is not None and self._views.known((tenant, collection), seen) is None
        return self._db.read(lambda tx: self._answer(tx, query, is_new=is_new))

    def search_several(
        self,
        tenant: str,
        parts: Sequence[SearchPart],
        text: str,
        k: int = 10,
        *,
        documents: Sequence[str] | None = None,
        only: Filter | None = None,
        mode: Mode = "hybrid",
    ) -> Found:
        """The best `k` chunks of several collections, all seen in one snapshot."""
        queries = [
            self._query(tenant, part, text, k, documents=documents, only=only, mode=mode) for part in parts
        ]
        return self._db.read(lambda tx: self._answer_several(tx, queries))

    def like(
        self,
        tenant: str,
        parts: Sequence[SearchPart],
        document_id: str,
        k: int = 10,
        *,
        at: tuple[int, int] | None = None,
        only: Filter | None = None,
    ) -> Found | None:
        """The chunks of other documents that are most like this one, or like its chunk at (slice, position).

        None if it has nothing published. Its stored vectors are used: nothing is embedded.
        """

        def body(tx: Tx) -> Found | None:
            example = examples.example(tx, tenant, document_id, at)
            if example is None:
                return None
            queries = [
                CollectionQuery(
                    tenant,
                    part.collection,
                    min(k, MOST_RANKED),
                    None,
                    only,
                    EXAMPLE_WORDS if any(example.words) else NO_WORDS,
                    query_form.mean_of(example.vectors, part),
                    part.provider,
                    part.model,
                    part.floor,
                    example,
                )
                for part in parts
            ]
            return self._answer_several(tx, queries)

        return self._db.read(body)

    def _query(
        self,
        tenant: str,
        part: SearchPart,
        text: str,
        k: int,
        *,
        documents: Sequence[str] | None,
        only: Filter | None,
        mode: Mode,
    ) -> CollectionQuery:
        if mode not in get_args(Mode):
            raise BadRequestError(f"mode {mode!r} is unknown; use one of: {', '.join(get_args(Mode))}")
        if k < 1:
            raise BadRequestError(f"k is {k}; use 1 or more")
        text = texts.plain(text[:LONGEST_QUERY])
        return CollectionQuery(
            tenant,
            part.collection,
            min(k, MOST_RANKED),
            tuple(documents) if documents is not None else None,
            only,
            query_form.words_of(text, part.rules, LONGEST_QUERY) if mode != VECTOR else NO_WORDS,
            self._embedded(text, part.embed) if mode != KEYWORD else None,
            part.provider,
            part.model,
            part.floor if mode != VECTOR else NO_FLOOR,
        )

    def _embedded(self, text: str, embed: Embed | None) -> Vector | None:
        function = embed or self._embed
        return function(text) if function is not None and text.strip() else None

    def _remembered(self, query: CollectionQuery, seen: int) -> Found | None:
        """The result from data cached at this stamp; None if more is needed or the stamp has changed.

        The statement that reads the hits reads the stamp with them: if that is the stamp by which they were
        ranked, its snapshot shows exactly what is cached.
        """
        if query.is_limited or not self._is_at(query, seen):
            return None
        try:
            ranked = self._ranked(_NoDatabase(self._db), query, stored.Stamp(seen, 0.0), None)
        except _NotInMemoryError:
            return None
        if not ranked.best:
            return Found((), seen, query.legs)
        ids = [one.chunk_id for one in ranked.best]
        shown = stored.chunks_at(self._db, query.tenant, query.collection, seen, ids)
        return None if shown is None else _result(query.legs, seen, ranked, shown)

    def _is_at(self, query: CollectionQuery, seen: int) -> bool:
        name = (query.tenant, query.collection)
        return (
            self._views.known(name, seen) is not None
            and (not query.words or (self._statistics.is_at(*name, seen) and self._titles.is_at(*name, seen)))
            and (query.vector is None or self._vectors.is_at(*name, seen))
        )

    def _answer(self, tx: Tx, query: CollectionQuery, *, is_new: bool) -> Found:
        """The result in the snapshot of `tx`; a stamp that `is_new` is read together with its view."""
        name = (query.tenant, query.collection)
        passing = None if query.only is None else filtered_heads.passing(tx, *name, query.only)
        shows = stored.stamp_and_view(tx, *name) if is_new else None
        stamp = stored.stamp(tx, *name) if shows is None else shows[0]
        if not stamp.publish_seq or not query.legs:
            return Found((), stamp.publish_seq, query.legs)
        if shows is not None:
            self._views.at(name, stamp.publish_seq, lambda _: _Seen(shows[1]))
        ranked = self._ranked(tx, query, stamp, query_form.heads_of(tx, query, passing))
        shown = stored.chunks_of(tx, query.tenant, [one.chunk_id for one in ranked.best])
        return _result(query.legs, stamp.publish_seq, ranked, shown)

    def _answer_several(self, tx: Tx, queries: Sequence[CollectionQuery]) -> Found:
        """As `_answer`, for one query to several collections."""
        names = [(query.tenant, query.collection) for query in queries]
        # All of them before the first stamp, which sets up the transaction for other statements.
        passing = [
            None if query.only is None else filtered_heads.passing(tx, *name, query.only)
            for name, query in zip(names, queries, strict=True)
        ]
        rankings: list[tuple[tuple[str | None, str | None], _Legs]] = []
        latest = 0
        for name, query, some in zip(names, queries, passing, strict=True):
            stamp = stored.stamp(tx, *name)
            latest = max(latest, stamp.publish_seq)
            if stamp.publish_seq and query.legs:
                legs = self._legs(tx, query, stamp, query_form.heads_of(tx, query, some))
                rankings.append(((query.provider, query.model), legs))
        chance = frozenset[int]().union(*(legs.chance for _, legs in rankings))
        merged = fusion.merged([(model, each.legs) for model, each in rankings])
        best = _fused(merged, queries[0].k, chance)
        weights: dict[int, dict[str, float]] = {}
        for _, legs in rankings:
            for language, worth in legs.weights.items():
                weights.setdefault(language, {}).update(worth)
        strong = frozenset[int]().union(*(legs.strong for _, legs in rankings))
        shown = stored.chunks_of(tx, queries[0].tenant, [one.chunk_id for one in best])
        named = tuple(dict.fromkeys(chain.from_iterable(query.legs for query in queries)))
        return _result(named, latest, _RankedChunks(best, weights, strong), shown)

    def _ranked(
        self, tx: Tx, query: CollectionQuery, stamp: stored.Stamp, heads: Sequence[int] | None
    ) -> _RankedChunks:
        """The best chunks at this stamp, only of `heads` if given."""
        legs = self._legs(tx, query, stamp, heads)
        return _RankedChunks(_fused(legs.legs, query.k, legs.chance), legs.weights, legs.strong)

    def _legs(
        self, tx: Tx, query: CollectionQuery, stamp: stored.Stamp, heads: Sequence[int] | None
    ) -> _Legs:
        """The ranking of each leg at this stamp, only of `heads` if given."""
        name, at = (query.tenant, query.collection), stamp.publish_seq
        view = self._views.at(name, at, lambda _: _Seen(stored.view(tx, *name, at))).view
        if query.example is not None:
            own = query.example.head_id
            heads = [each for each in (view.heads if heads is None else heads) if each != own]
        legs: dict[str, Sequence[Ranked]] = {}
        weights: dict[int, dict[str, float]] = {}
        titled: Sequence[titles.Titled] = ()
        depth = DEPTH if query.k <= DEPTH + 1 else DEEP
        knows = query.example is not None
        if query.words:
            counted = self._statistics.at(tx, *name, view)
            terms = keyword.terms_by_language(query_form.terms_by_language(query, counted), counted)
            if query.example is None:
                known = self._titles.at(tx, *name, stamp)
                among = None if heads is None else frozenset(heads)
                frequencies = {language: each.frequencies for language, each in terms.items()}
                titled = titles.rank(tx, *name, frequencies, counted.chunks, known, heads=among)
            legs[KEYWORD] = keyword.rank(tx, *name, terms, counted, heads=heads, depth=depth)
            weights = {
                language: {term.term: term.weight for term in each.known} for language, each in terms.items()
            }
            knows = knows or bool(titled or any(each.known for each in terms.values()))
        if query.vector is not None:
            legs[VECTOR] = self._vectors.nearest(
                tx, *name, view, query.vector, depth, heads=heads, provider=query.provider, model=query.model
            )
        if titled:
            legs[TITLE] = _by_title(tx, legs, titled)
        least = query.floor.known if knows else query.floor.unknown
        return _Legs(legs, weights, _strong(legs, query.floor.weak), _chance(legs, least))


class _NotInMemoryError(Exception):
    """The query needs data that is not cached."""


class _NoDatabase(Tx):
    """A transaction for queries that should need only cached data: every statement raises."""

    __slots__ = ()

    def __init__(self, db: Database) -> None:
        self.db = db

    def execute(self, *_: Any, **__: Any) -> NoReturn:
        """Raises _NotInMemoryError."""
        raise _NotInMemoryError

    in_binary = execute


class _Legs(NamedTuple):
    """The ranking of each leg, the worth of terms by language, and which chunks match well, or by chance."""

    legs: Mapping[str, Sequence[Ranked]]
    weights: Mapping[int, Mapping[str, float]]
    strong: frozenset[int]
    chance: frozenset[int]


class _RankedChunks(NamedTuple):
    """The best chunks, best first, what each term of the query is worth, and which match more than weakly."""

    best: Sequence[Fused]
    weights: Mapping[int, Mapping[str, float]]
    strong: frozenset[int]


def _strong(legs: Mapping[str, Sequence[Ranked]], weak: float) -> frozenset[int]:
    """The chunks that have enough of the query's words, or nearly its meaning, or its title."""
    share = WEAK_SHARE**keyword.TRUSTING
    return frozenset(
        [one.chunk_id for one in legs.get(KEYWORD, ()) if one.trust >= share]
        + [one.chunk_id for one in legs.get(VECTOR, ()) if one.score >= weak]
        + [one.chunk_id for one in legs.get(TITLE, ())]
    )


def _result(
    legs: tuple[str, ...], at: int, ranked: _RankedChunks, shown: Mapping[int, stored.StoredChunk]
) -> Found:
    hits = (_hit(one, shown[one.chunk_id], ranked) for one in ranked.best if one.chunk_id in shown)
    return Found(tuple(hits), at, legs)


def _chance(legs: Mapping[str, Sequence[Ranked]], least: float) -> frozenset[int]:
    """The chunks that have no word of the query and whose cosine is below `least`.

    They take part in the ranking, whose scale depends on them, and are dropped from its result.
    """
    having = {one.chunk_id for leg in (KEYWORD, TITLE) for one in legs.get(leg, ())}
    far = (one.chunk_id for one in legs.get(VECTOR, ()) if one.score < least)
    return frozenset(each for each in far if each not in having)


def _fused(legs: Mapping[str, Sequence[Ranked]], k: int, chance: frozenset[int]) -> list[Fused]:
    best = fusion.fuse(legs, k + len(chance))
    return [one for one in best if one.chunk_id not in chance][:k]


def _by_title(tx: Tx, legs: dict[str, Sequence[Ranked]], titled: Sequence[titles.Titled]) -> list[Ranked]:
    """The chunk that represents each document: its best one among the hits, or its first."""
    chunk_ids = [one.chunk_id for one in fusion.fuse(legs, 2 * MOST_HITS)]
    heads = title_reads.heads_of_chunks(tx, chunk_ids)
    best: dict[int, int] = {}
    for chunk_id in chunk_ids:
        best.setdefault(heads.get(chunk_id, 0), chunk_id)
    return [Ranked(best.get(one.head_id, one.chunk_id), one.score, one.trust) for one in titled]


def _hit(one: Fused, chunk: stored.StoredChunk, ranked: _RankedChunks) -> Hit:
    rules = languages.rules(chunk.language)
    return Hit(
        chunk.document_id,
        chunk.title,
        chunk.page,
        chunk.text,
        one.score,
        chunk.generation,
        chunk.slice,
        chunk.position,
        chunk.chunk_id,
        one.parts,
        ranked.weights.get(rules, {}),
        collection=chunk.collection,
        weak=one.chunk_id not in ranked.strong,
        language=chunk.language,
        edited=chunk.is_edited,
        fields=chunk.fields,
    )
