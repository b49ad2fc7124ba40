"""How often each term occurs in one collection: what BM25 needs to know, of that collection alone.

Each slice of a published document has one row of `word_counts`, written when the slice was finished. A reader
adds them up: number of chunks, their length, and for each term in how many chunks it occurs. The sum is kept
in memory and stamped with the collection's `publish_seq`; at another stamp only the documents that came,
went or changed are added and taken off, inside the snapshot of the query.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from holdfast.search import counts
from holdfast.search.counts import encode
from holdfast.store import search as stored
from holdfast.store.database import Tx
from holdfast.vectors.kept import Kept

__all__ = ["Counted", "Keeper", "Statistics", "encode"]

BUDGET = 256 << 20
# Above this many changed documents, or changed terms, everything is added up anew.
_FEW_DOCUMENTS = 300
_FEW_TERMS = 200_000


@dataclass(frozen=True, slots=True)
class Counted:
    """What one document adds to its collection."""

    generation: int
    chunks: int
    length: int
    terms: tuple[bytes, ...]

    @property
    def nbytes(self) -> int:
        """The size of its packed terms."""
        return sum(map(len, self.terms))


@dataclass(frozen=True, slots=True)
class Statistics:
    """The sum over the documents that one `publish_seq` shows. Never changed once made."""

    publish_seq: int
    documents: Mapping[int, Counted]
    chunks: int
    length: int
    base: counts.Sum
    changes: Mapping[int, int] = field(default_factory=dict)
    packed: int = 0

    @property
    def nbytes(self) -> int:
        """About how much memory this takes now."""
        return self.base.nbytes + self.packed + 300 * len(self.documents) + 100 * len(self.changes)

    @property
    def average(self) -> float:
        """The mean length of a chunk, in terms; never zero."""
        return max(1.0, self.length / self.chunks) if self.chunks else 1.0

    def frequencies(self, terms: Sequence[str]) -> list[int]:
        """In how many chunks each term occurs."""
        wanted = counts.numbers_of(terms)
        found = self.base.frequencies(wanted)
        if not self.changes:
            return found
        return [
            count + self.changes.get(number, 0) for count, number in zip(found, wanted.tolist(), strict=True)
        ]

    def chunks_of(self, heads: Iterable[int]) -> int:
        """How many chunks these documents have together."""
        return sum(self.documents[head].chunks for head in heads if head in self.documents)


def _added_up(publish_seq: int, documents: Mapping[int, Counted]) -> Statistics:
    base = counts.Sum([terms for counted in documents.values() for terms in counted.terms])
    return Statistics(
        publish_seq,
        documents,
        sum(counted.chunks for counted in documents.values()),
        sum(counted.length for counted in documents.values()),
        base,
        packed=sum(counted.nbytes for counted in documents.values()),
    )


def _changed(
    old: Statistics, publish_seq: int, gone: Sequence[int], come: Mapping[int, Counted]
) -> Statistics:
    """The old sum with some documents taken off and others added."""
    documents, changes = dict(old.documents), dict(old.changes)
    chunks, length = old.chunks, old.length
    steps = [(-1, documents.pop(head)) for head in gone] + [(1, counted) for counted in come.values()]
    documents.update(come)
    for sign, counted in steps:
        chunks += sign * counted.chunks
        length += sign * counted.length
        for terms in counted.terms:
            once, several, how_often = counts.decode(terms)
            for number in once.tolist():
                changes[number] = changes.get(number, 0) + sign
            for number, count in zip(several.tolist(), how_often.tolist(), strict=True):
                changes[number] = changes.get(number, 0) + sign * count
    if len(changes) > _FEW_TERMS:
        return _added_up(publish_seq, documents)
    packed = old.packed + sum(sign * counted.nbytes for sign, counted in steps)
    return Statistics(publish_seq, documents, chunks, length, old.base, changes, packed)


class Keeper:
    """The statistics of the collections that were asked for last, about `budget` bytes of them."""

    def __init__(self, budget: int = BUDGET) -> None:
        self._kept: Kept[Statistics] = Kept(budget)

    @property
    def nbytes(self) -> int:
        """About how much memory they take."""
        return self._kept.nbytes

    def at(self, tx: Tx, tenant: str, collection: str, view: stored.View) -> Statistics:
        """The statistics of exactly what this snapshot shows."""
        return self._kept.at((tenant, collection), view.publish_seq, partial(_bring, tx, view))


def _bring(tx: Tx, view: stored.View, old: Statistics | None) -> Statistics:
    """What the snapshot of `tx` shows; only what `old` does not know is loaded."""
    known = old.documents if old is not None else {}
    gone = [head for head, counted in known.items() if view.heads.get(head) != counted.generation]
    left = set(gone)
    fresh = [head for head in view.heads if head not in known or head in left]
    come = _counted(view, fresh, stored.counts_of(tx, fresh))
    if old is None or len(fresh) + len(gone) > _FEW_DOCUMENTS:
        kept = {head: counted for head, counted in known.items() if head not in left}
        return _added_up(view.publish_seq, kept | come)
    return _changed(old, view.publish_seq, gone, come)


def _counted(
    view: stored.View, fresh: Sequence[int], rows: Iterable[stored.SliceCounts]
) -> dict[int, Counted]:
    """What each fresh document adds; nothing for one that was published before terms were counted."""
    found = {head: Counted(view.heads[head], 0, 0, ()) for head in fresh}
    for row in rows:
        if (one := found.get(row.head_id)) is not None:
            found[row.head_id] = Counted(
                one.generation, one.chunks + row.chunks, one.length + row.length, (*one.terms, row.terms)
            )
    return found
