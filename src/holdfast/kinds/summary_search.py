"""Summaries among the hits of a search: ranked by words and by meaning, as chunks are.

What a published generation holds never changes, so its vectors and terms are kept in memory by generation.
Whether a summary may be shown is not kept: that is looked up for the best of them, for every question.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.engine.job_specs import SearchQuery, SourceHit
from holdfast.extras import LazyModule
from holdfast.search import bm25, tokenizer
from holdfast.store.base.database import Tx
from holdfast.store.derived import trees
from holdfast.store.derived.trees import EmbeddedNode, TreeHead
from holdfast.vectors import encoding
from holdfast.vectors.encoding import Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

MOST_TREES = 200
MOST_NODES = 100_000
MOST_KEPT = 32
MOST_BARE = 10_000
DEPTH = 50
# Cosines below this are chance, for any model that is usual.
FLOOR = 0.28
MATCHED = 0.3  # of the weight of the question's words, for words alone to be a hit
RANK_CONSTANT = 60
MOST_COVERED = 20


@dataclass(frozen=True, slots=True)
class _Index:
    """The summaries of one generation: keys, terms and vectors, row by row."""

    keys: list[str]
    words: list[str]
    vectors: Vector
    average: float

    def ranked(
        self, terms: Sequence[str], vector: Sequence[float] | None, known: float = FLOOR
    ) -> dict[str, float]:
        """The best summaries by words and by meaning, fused by rank.

        `known` is the least cosine of a question that has a word which is in any of them.
        """
        scores: dict[str, float] = {}
        is_known = known < FLOOR and any(
            f" {term} " in f" {words} " for term in set(terms) for words in self.words
        )
        floor = known if is_known else FLOOR
        for rows in (self._by_words(terms), self._by_meaning(vector, floor)):
            for rank, row in enumerate(rows, start=1):
                key = self.keys[row]
                scores[key] = scores.get(key, 0.0) + 1.0 / (RANK_CONSTANT + rank)
        return scores

    def _by_words(self, terms: Sequence[str]) -> list[int]:
        counts = Counter(terms)
        padded = [f" {words} " for words in self.words]
        weighed = [
            bm25.Term(term, frequency, bm25.weight(frequency, len(padded), repeated))
            for term, repeated in counts.items()
            if (frequency := sum(f" {term} " in words for words in padded))
        ]
        absent = sum(bm25.weight(0, len(padded), repeated) for term, repeated in counts.items())
        if not weighed or not absent:
            return []
        scores, matched = bm25.scores(self.words, weighed, self.average)
        enough = matched >= MATCHED * max(sum(term.weight for term in weighed), 0.5 * absent)
        return [row for row in _best(scores) if enough[row] and scores[row] > 0]

    def _by_meaning(self, vector: Sequence[float] | None, floor: float) -> list[int]:
        if vector is None or len(vector) != self.vectors.shape[1]:
            return []
        cosines = self.vectors @ encoding.normalised(np.asarray(vector, dtype=np.float32))
        return [row for row in _best(cosines) if cosines[row] >= floor]


def _best(scores: NDArray[np.floating[Any]]) -> list[int]:
    rows: list[int] = np.argsort(-scores, kind="stable")[:DEPTH].tolist()
    return rows


class SummarySearch:
    """Finds summaries of one kind; shared by all threads of a process."""

    def __init__(self, kind: str, node_type: str) -> None:
        self._kind = kind
        self._type = node_type
        self._known: OrderedDict[tuple[int, int], _Index] = OrderedDict()
        # Collections without a tree, and the publication at which that was so.
        self._bare: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, query: SearchQuery) -> list[SourceHit]:
        """The summaries that answer best, all of whose documents the caller may see.

        One that is stale is left out: it may say what its documents do not say any more.

        Most collections have no tree. That costs one look after a publication, and nothing until the next.
        """
        name = (query.tenant, query.collection)
        with self._lock:
            if query.publish_seq is not None and self._bare.get(name) == query.publish_seq:
                return []
        if trees.are_there(query.db, *name, self._kind):
            return query.db.read(lambda tx: self._find(tx, query))
        if query.publish_seq is not None:
            with self._lock:
                self._bare[name] = query.publish_seq
                self._bare.move_to_end(name)
                while len(self._bare) > MOST_BARE:
                    self._bare.popitem(last=False)
        return []

    def _find(self, tx: Tx, query: SearchQuery) -> list[SourceHit]:
        reader = trees.TreeReader(query.tenant, query.collection, self._kind, query.only)
        terms = tokenizer.analyse(query.text)
        ranked: list[tuple[float, str, TreeHead]] = []
        for head in trees.of_collection(tx, query.tenant, query.collection, self._kind, MOST_TREES):
            scores = self._index(tx, query.tenant, head).ranked(terms, query.vector)
            ranked += [(score, key, head) for key, score in scores.items()]
        ranked.sort(key=lambda each: (-each[0], each[1]))
        hits: list[SourceHit] = []
        for head in {each[2].head_id: each[2] for each in ranked[: 3 * DEPTH]}.values():
            scored = {key: score for score, key, owner in ranked[: 3 * DEPTH] if owner == head}
            for key, node in reader.named(tx, head, list(scored)).items():
                if node.stale or not _is_within(tx, head, key, query.documents):
                    continue
                covers = tuple(trees.covered(tx, head, key, MOST_COVERED))
                hits.append(
                    SourceHit(
                        covers[0], node.text, scored[key], None, self._type, key, covers, title=node.title
                    )
                )
        hits.sort(key=lambda hit: (-hit.score, str(hit.node)))
        return hits[: query.limit]

    def ranked(
        self,
        tx: Tx,
        tenant: str,
        head: TreeHead,
        text: str,
        vector: Vector | None,
        known: float = FLOOR,
    ) -> list[tuple[float, str]]:
        """The keys of the best nodes of one generation with their scores; whoever asks tests who may see."""
        terms = tokenizer.analyse(text)
        numbers = None if vector is None else vector.tolist()
        scores = self._index(tx, tenant, head).ranked(terms, numbers, known)
        return sorted(((score, key) for key, score in scores.items()), key=lambda each: (-each[0], each[1]))

    def _index(self, tx: Tx, tenant: str, head: TreeHead) -> _Index:
        name = (head.head_id, head.generation)
        with self._lock:
            if (known := self._known.get(name)) is not None:
                self._known.move_to_end(name)
                return known
        index = _built(trees.embedded(tx, tenant, head, self._type, MOST_NODES))
        with self._lock:
            self._known[name] = index
            while len(self._known) > MOST_KEPT:
                self._known.popitem(last=False)
        return index


def _is_within(tx: Tx, head: TreeHead, key: str, documents: Collection[str] | None) -> bool:
    """True if the node is from these documents alone."""
    if documents is None:
        return True
    named = set(documents)
    return set(trees.covered(tx, head, key, len(named) + 1)) <= named


def _built(nodes: Sequence[EmbeddedNode]) -> _Index:
    models = Counter((node.provider, node.model) for node in nodes if node.vector)
    chosen = models.most_common(1)[0][0] if models else None
    vectors = [
        encoding.decode(node.vector) if node.vector and (node.provider, node.model) == chosen else None
        for node in nodes
    ]
    width = max((len(each) for each in vectors if each is not None), default=1)
    rows = np.zeros((len(nodes), width), dtype=np.float32)
    for at, vector in enumerate(vectors):
        if vector is not None and len(vector) == width:
            rows[at] = vector
    words = [node.words or "" for node in nodes]
    average = sum(each.count(" ") + 1 for each in words) / max(1, len(words))
    return _Index([node.key for node in nodes], words, encoding.normalised(rows), average)
