"""`Searcher.search`: one query, one snapshot, two legs, one ranking.

Everything a query sees comes from one read snapshot: the collection's stamp is read first, and what is kept
in memory is brought to exactly that stamp inside the snapshot before a leg uses it. So no leg can find a
chunk of a generation that another one does not see, whatever is published or deleted meanwhile (G3).

The embedding of the query is asked for before the snapshot opens: it may be a paid call, and no transaction
waits for a provider.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from holdfast.core.errors import BadRequestError
from holdfast.search import fuse, keyword, snippet, statistics, titles, words
from holdfast.search.fuse import Fused, Part
from holdfast.search.snippet import Snippet
from holdfast.store import search as stored
from holdfast.store import text as texts
from holdfast.store import title_reads
from holdfast.store.database import Database, Tx
from holdfast.vectors.base import Ranked, VectorIndex
from holdfast.vectors.exact import ExactIndex
from holdfast.vectors.form import Vector
from holdfast.vectors.kept import Kept

Mode = Literal["hybrid", "keyword", "vector"]
Embed = Callable[[str], Vector | None]

KEYWORD, VECTOR, TITLE = "keyword", "vector", "title"
DEPTH = 100  # ranks of each leg that take part
MOST_HITS = 200
LONGEST_QUERY = 100_000  # characters; what follows is not read


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that answers, of the generation that is published."""

    document_id: str
    title: str
    page: int | None
    text: str
    snippet: Snippet
    score: float
    generation: int
    slice: int
    position: int
    chunk_id: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The hits, best first; the stamp of what was searched; the legs that took part."""

    hits: tuple[Hit, ...]
    publish_seq: int
    legs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that a searcher keeps for later queries."""

    vectors: int
    statistics: int


@dataclass(frozen=True, slots=True)
class _Seen:
    """A view that is kept, at about what its dictionary takes."""

    view: stored.View

    @property
    def publish_seq(self) -> int:
        return self.view.publish_seq

    @property
    def nbytes(self) -> int:
        return 100 * len(self.view.heads) + 200


class Searcher:
    """Searches for the threads of one process; what it keeps in memory serves every later query."""

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
        self._statistics = statistics.Keeper(statistics_budget)
        self._titles = titles.Keeper()
        self._views: Kept[_Seen] = Kept(64 << 20)

    @property
    def memory(self) -> Memory:
        """About how much memory this takes now."""
        return Memory(self._vectors.nbytes, self._statistics.nbytes)

    def search(
        self,
        tenant: str,
        collection: str,
        text: str,
        k: int = 10,
        *,
        documents: Sequence[str] | None = None,
        mode: Mode = "hybrid",
        embed: Embed | None = None,
        model: str | None = None,
    ) -> Found:
        """The best `k` published chunks of the collection, or of these `documents` in it.

        `embed` is asked once, where the mode wants it and there is a query; None from it leaves the keyword
        leg alone to answer. It stands in for the one given at the start, `model` names the model it uses:
        then only vectors of that model are compared, else all of the same number of dimensions.
        """
        if mode not in get_args(Mode):
            raise BadRequestError(f"mode {mode!r} is unknown; use one of: {', '.join(get_args(Mode))}")
        if k < 1:
            raise BadRequestError(f"k is {k}; ask for at least one hit")
        text = texts.plain(text[:LONGEST_QUERY])
        asked = _Asked(
            tenant,
            collection,
            min(k, MOST_HITS),
            tuple(documents) if documents is not None else None,
            tuple(words.analyse(text, LONGEST_QUERY)) if mode != VECTOR else (),
            self._embedded(text, embed) if mode != KEYWORD else None,
            model,
        )
        if not all(map(texts.is_plain, (tenant, collection))):
            return Found((), 0, asked.legs)
        return self._db.read(lambda tx: self._answer(tx, asked))

    def _embedded(self, text: str, embed: Embed | None) -> Vector | None:
        asked = embed or self._embed
        return asked(text) if asked is not None and text.strip() else None

    def _answer(self, tx: Tx, asked: "_Asked") -> Found:
        name = (asked.tenant, asked.collection)
        stamp = stored.stamp(tx, *name)
        if not stamp.publish_seq or not asked.legs:
            return Found((), stamp.publish_seq, asked.legs)
        at = stamp.publish_seq
        view = self._views.at(name, at, lambda _: _Seen(stored.view(tx, *name, at))).view
        heads = None
        if asked.documents is not None:
            heads = stored.heads_of(tx, *name, filter(texts.is_plain, asked.documents))
        legs: dict[str, Sequence[Ranked]] = {}
        weights: dict[str, float] = {}
        depth = max(DEPTH, asked.k)
        if asked.terms:
            counted = self._statistics.at(tx, *name, view)
            terms = keyword.terms_of(asked.terms, counted)
            legs[KEYWORD] = keyword.rank(tx, *name, terms, counted, heads=heads, depth=depth)
            weights = {term.term: term.weight for term in terms.known}
        if asked.vector is not None:
            legs[VECTOR] = self._vectors.nearest(
                tx, *name, view, asked.vector, depth, heads=heads, model=asked.model
            )
        if asked.terms:
            known = self._titles.at(tx, *name, stamp)
            titled = titles.rank(tx, *name, terms.frequencies, counted.chunks, known, heads=heads)
            legs |= {TITLE: _by_title(tx, legs, titled)} if titled else {}
        fused = fuse.fuse(legs, asked.k)
        shown = stored.chunks_of(tx, asked.tenant, [one.chunk_id for one in fused])
        hits = (_hit(one, shown[one.chunk_id], weights) for one in fused if one.chunk_id in shown)
        return Found(tuple(hits), at, asked.legs)


def _by_title(tx: Tx, legs: dict[str, Sequence[Ranked]], titled: Sequence[titles.Titled]) -> list[Ranked]:
    """What stands for each document: the best of its chunks that was found, or its first."""
    found = [one.chunk_id for one in fuse.fuse(legs, 2 * MOST_HITS)]
    heads = title_reads.heads_of_chunks(tx, found)
    best: dict[int, int] = {}
    for chunk_id in found:
        best.setdefault(heads.get(chunk_id, 0), chunk_id)
    return [Ranked(best.get(one.head_id, one.chunk_id), one.score, one.trust) for one in titled]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query as the legs take it."""

    tenant: str
    collection: str
    k: int
    documents: tuple[str, ...] | None
    terms: tuple[str, ...]
    vector: Vector | None
    model: str | None

    @property
    def legs(self) -> tuple[str, ...]:
        return ((KEYWORD,) if self.terms else ()) + ((VECTOR,) if self.vector is not None else ())


def _hit(one: Fused, chunk: stored.StoredChunk, weights: dict[str, float]) -> Hit:
    return Hit(
        chunk.document_id,
        chunk.title,
        chunk.page,
        chunk.text,
        snippet.cut(chunk.text, weights),
        one.score,
        chunk.generation,
        chunk.slice,
        chunk.position,
        chunk.chunk_id,
        one.parts,
    )
