"""What search reads: all in the caller's snapshot, and limited to what is published in it.

A chunk is visible if its head is of kind `index` in the collection, `visible`, and the chunk belongs to the
head's published generation. Every statement checks this itself; none relies on the result of another.

The databases differ: candidates come from FTS5 or from a GIN index over tsvector, each queried in its own
language; and PostgreSQL sends vectors and counts in its binary format, as its text format doubles every byte.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    ScalarSelect,
    Select,
    bindparam,
    func,
    literal_column,
    null,
    select,
    text,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core import subjects
from holdfast.core.chunk_edits import EDIT
from holdfast.core.records import Claim
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, Numbers, in_usual_order, key_in, now, only_tested
from holdfast.store.base.schema import calls, chunks, collections, documents, heads, word_counts

AT_ONCE = 500  # names per list: longer lists are split

PUT_COUNTS = upsert(word_counts)
PUT_COUNTS = PUT_COUNTS.on_conflict_do_update(
    index_elements=[word_counts.c.head_id, word_counts.c.generation, word_counts.c.slice],
    set_={name: PUT_COUNTS.excluded[name] for name in ("chunks", "length", "terms")},
)


def put_counts(tx: Tx, claim: Claim, counted: tuple[int, int, bytes]) -> None:
    """The counts of a finished slice (number of chunks, their length, packed terms) are stored with it."""
    number, length, terms = counted
    slice_key = {"head_id": claim.head_id, "generation": claim.generation, "slice": claim.ordinal}
    tx.execute(PUT_COUNTS, slice_key | {"chunks": number, "length": length, "terms": terms})


@dataclass(frozen=True, slots=True)
class CollectionSnapshot:
    """What one snapshot shows of a collection: its stamp, and the published generation of each head."""

    publish_seq: int
    heads: dict[int, int]
    _since: dict[int, tuple[Mapping[int, int], list[int], list[int]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def since(self, known: Mapping[int, int]) -> tuple[list[int], list[int]]:
        """Which of the `known` heads are gone or changed, and which have to be loaded.

        Everything cached for a collection was made from the same views, so the result is cached as well.
        """
        if (cached := self._since.get(id(known))) is not None and cached[0] is known:
            return cached[1:]
        fresh = [head for head, generation in self.heads.items() if known.get(head) != generation]
        gone = [head for head in fresh if head in known]
        if len(self.heads) - (len(fresh) - len(gone)) < len(known):
            gone = [head for head, generation in known.items() if self.heads.get(head) != generation]
        self._since.clear()
        self._since[id(known)] = known, gone, fresh
        return gone, fresh


@dataclass(frozen=True, slots=True)
class Stamp:
    """Identifies a snapshot: the collection's `publish_seq`, and the time when it was read."""

    publish_seq: int
    read_at: float


PUBLISH_SEQ = select(collections.c.publish_seq, now().label("read_at")).where(
    collections.c.tenant == bindparam("tenant"), collections.c.id == bindparam("collection")
)
# PostgreSQL's planner has no statistics of the terms and takes their expression for cheap: for `candidates`
# it would scan the whole table, or sort all matches before the limit. This leaves it only the bounded plan:
# the index, then the heads one by one, until there are enough. It applies to the transaction, whose other
# statements use keys.
PUBLISH_SEQ_POSTGRESQL = PUBLISH_SEQ.add_columns(
    *(
        func.set_config(name, value, literal_column("true"))
        for name, value in (
            ("enable_seqscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("max_parallel_workers_per_gather", "0"),
            ("jit", "off"),
        )
    )
)
_visible_heads = (
    heads.c.tenant == bindparam("tenant"),
    heads.c.collection == bindparam("collection"),
    heads.c.kind == subjects.INDEX,
    heads.c.visible,
)
# Two lists in one row: ten thousand rows, each made into an object, take four times as long.
VISIBLE_HEADS = {
    name: select(
        listed(heads.c.id).label("ids"), listed(heads.c.published_generation).label("generations")
    ).where(*_visible_heads)
    for name, listed in (("postgresql", func.array_agg), ("sqlite", func.json_group_array))
}
_listed = {name: one.subquery("listed") for name, one in VISIBLE_HEADS.items()}
STAMP_AND_VIEW = {
    name: stamped.add_columns(_listed[name].c.ids, _listed[name].c.generations).join_from(
        collections, _listed[name], true()
    )
    for name, stamped in (("postgresql", PUBLISH_SEQ_POSTGRESQL), ("sqlite", PUBLISH_SEQ))
}
HEADS_OF = select(heads.c.id).where(
    heads.c.tenant == bindparam("tenant"),
    heads.c.kind == subjects.INDEX,
    key_in(heads.c.subject, bindparam("subjects", type_=KeyList())),
    heads.c.collection == bindparam("collection"),
    heads.c.visible,
)


def stamp(tx: Tx, tenant: str, collection: str) -> Stamp:
    """The stamp of what is visible in the collection; `publish_seq` is 0 if nothing ever was.

    Call it first in a search: it also sets up the transaction as `candidates` needs it.
    """
    statement = PUBLISH_SEQ_POSTGRESQL if tx.db.postgresql else PUBLISH_SEQ
    row = tx.one(statement, {"tenant": tenant, "collection": collection})
    return Stamp(int(row.publish_seq), row.read_at) if row is not None else Stamp(0, 0.0)


def view(tx: Tx, tenant: str, collection: str, publish_seq: int) -> CollectionSnapshot:
    """The heads visible in the collection, with their published generations."""
    name = {"tenant": tenant, "collection": collection}
    (row,) = tx.in_binary(VISIBLE_HEADS[_database(tx)], name)
    return _view(publish_seq, row)


def stamp_and_view(tx: Tx, tenant: str, collection: str) -> tuple[Stamp, CollectionSnapshot]:
    """The results of `stamp` and `view`, in one statement."""
    rows = tx.in_binary(STAMP_AND_VIEW[_database(tx)], {"tenant": tenant, "collection": collection})
    if not rows:
        return Stamp(0, 0.0), CollectionSnapshot(0, {})
    return Stamp(int(rows[0].publish_seq), rows[0].read_at), _view(int(rows[0].publish_seq), rows[0])


def _database(tx: Tx) -> str:
    return "postgresql" if tx.db.postgresql else "sqlite"


def _view(publish_seq: int, row: Any) -> CollectionSnapshot:
    return CollectionSnapshot(
        publish_seq, dict(zip(_numbers(row.ids), _numbers(row.generations), strict=True))
    )


def _numbers(stored: Sequence[int] | str | None) -> Sequence[int]:
    """A list of numbers: PostgreSQL returns an array, or NULL for an empty one; SQLite returns JSON."""
    numbers: Sequence[int] = json.loads(stored) if isinstance(stored, str) else stored or ()
    return numbers


def heads_of(tx: Tx, tenant: str, collection: str, documents: Iterable[str]) -> list[int]:
    """The heads of the visible documents among these."""
    named = [subjects.of_document(document) for document in dict.fromkeys(documents)]
    ids: list[int] = []
    for part in _parts(named):
        values = {"tenant": tenant, "collection": collection, "subjects": part}
        ids += [row.id for row in tx.all(HEADS_OF, values)]
    return ids


THESE_HEADS = key_in(heads.c.id, bindparam("heads", type_=Numbers()))


class ChunkWords(NamedTuple):
    """A visible chunk and its terms."""

    head_id: int
    chunk_id: int
    words: str | None


_READING_ORDER = (chunks.c.slice, chunks.c.epoch, chunks.c.position)
WORDS_OF = (
    select(chunks.c.head_id, chunks.c.id, chunks.c.words)
    .join_from(
        heads,
        chunks,
        (chunks.c.head_id == heads.c.id) & (chunks.c.generation == heads.c.published_generation),
    )
    .where(THESE_HEADS, heads.c.visible)
    .order_by(chunks.c.head_id, *_READING_ORDER)
)
# A list per head: a hundred thousand rows, each made into an object, take several times as long. SQLite
# before 3.44 cannot order aggregates; it takes the rows in the order of the inner query.
_ordered = WORDS_OF.with_only_columns(chunks.c.head_id, chunks.c.id).subquery()
_IDS_OF: Mapping[str, Select[Any]] = {
    "postgresql": WORDS_OF.with_only_columns(
        chunks.c.head_id, func.array_agg(aggregate_order_by(chunks.c.id, *_READING_ORDER)).label("ids")
    )
    .group_by(chunks.c.head_id)
    .order_by(None),
    "sqlite": select(_ordered.c.head_id, func.json_group_array(_ordered.c.id).label("ids")).group_by(
        _ordered.c.head_id
    ),
}
_counts = select(
    word_counts.c.head_id, null().label("ids"), word_counts.c.slice, word_counts.c.terms
).join_from(
    heads,
    word_counts,
    (word_counts.c.head_id == heads.c.id) & (word_counts.c.generation == heads.c.published_generation),
)
# Rows of two kinds: the chunks of each head, and the counts of each of its slices.
COUNTED = {
    name: select(
        union_all(
            ids.add_columns(null().label("slice"), null().label("terms")),
            _counts.where(THESE_HEADS, heads.c.visible),
        ).subquery()
    )
    for name, ids in _IDS_OF.items()
}


class Counted(NamedTuple):
    """The visible chunks of a head and the packed counts of its slices, both in reading order."""

    ids: Sequence[int]
    terms: Sequence[bytes]


def counted(tx: Tx, heads: Sequence[int]) -> dict[int, Counted]:
    """The chunks and counts of those of these heads that have visible chunks."""
    ids: dict[int, Sequence[int]] = {}
    terms: dict[int, dict[int, bytes]] = {}
    for part in _parts(heads):
        for row in tx.in_binary(COUNTED[_database(tx)], {"heads": part}):
            if row.terms is None:
                ids[row.head_id] = _numbers(row.ids)
            else:
                terms.setdefault(row.head_id, {})[row.slice] = row.terms
    slices = {head: [packed for _, packed in sorted(each.items())] for head, each in terms.items()}
    return {head: Counted(each, slices.get(head, ())) for head, each in ids.items()}


def words_of(tx: Tx, heads: Sequence[int]) -> Iterator[ChunkWords]:
    """The visible chunks of these heads with their terms, in reading order."""
    for part in _parts(heads):
        yield from map(ChunkWords._make, tx.all(WORDS_OF, {"heads": part}))


class StoredVector(NamedTuple):
    """The embedding of one chunk as its provider returned it."""

    chunk_id: int
    head_id: int
    provider: str
    model: str
    vector: bytes


VECTORS_OF = (
    select(chunks.c.id, chunks.c.head_id, calls.c.provider, calls.c.model, calls.c.result)
    .select_from(
        heads.join(
            chunks, (chunks.c.head_id == heads.c.id) & (chunks.c.generation == heads.c.published_generation)
        ).join(calls, (calls.c.tenant == heads.c.tenant) & (calls.c.key == chunks.c.call_key))
    )
    .where(THESE_HEADS, heads.c.visible, calls.c.result.is_not(None))
)


def vectors_of(tx: Tx, heads: Sequence[int]) -> Iterator[list[StoredVector]]:
    """The embeddings of the visible chunks of these heads, some thousand at a time, unordered."""
    for part in _parts(heads):
        yield [StoredVector._make(row) for row in tx.in_binary(VECTORS_OF, {"heads": part})]


def _parts(names: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (names[at : at + AT_ONCE] for at in range(0, len(names), AT_ONCE))


class Candidate(NamedTuple):
    """A visible chunk and its terms, separated by spaces."""

    chunk_id: int
    words: str


# The full-text index first, then the chunk, then its head: any other order reads the whole collection.
_CANDIDATES_SQLITE = text(
    """
    SELECT chunks.id, chunks.words
    FROM holdfast_chunk_words
    CROSS JOIN holdfast_chunks chunks ON chunks.id = holdfast_chunk_words.rowid
    CROSS JOIN holdfast_heads heads
        ON heads.id = chunks.head_id AND heads.published_generation = chunks.generation
    WHERE holdfast_chunk_words MATCH :query
      AND heads.tenant = :tenant AND heads.collection = :collection AND heads.kind = 'index' AND heads.visible
      AND (:anywhere OR heads.id IN (SELECT value FROM json_each(:heads)))
    LIMIT :most
    """
)
_CANDIDATES_POSTGRESQL = text(
    """
    SELECT chunks.id, chunks.words
    FROM holdfast_chunks chunks
    JOIN holdfast_heads heads ON heads.id = chunks.head_id AND heads.published_generation = chunks.generation
    WHERE array_to_tsvector(string_to_array(chunks.words, ' ')) @@ CAST(:query AS tsquery)
      AND chunks.words IS NOT NULL
      AND heads.tenant = :tenant AND heads.collection = :collection AND heads.kind = 'index' AND heads.visible
      AND (:anywhere OR heads.id = ANY(CAST(:heads AS bigint[])))
    LIMIT :most
    """
)
# A list of groups of terms: a chunk matches if it has every term of at least one group.
Wanted = Sequence[Sequence[str]]


def candidates(
    tx: Tx, tenant: str, collection: str, groups: Wanted, *, heads: Sequence[int] | None = None, most: int
) -> list[Candidate]:
    """Visible chunks that have all terms of a group, at most `most`; only of `heads`, if given.

    If there are more, the database chooses which ones are returned (usually those stored first).
    """
    values = {"tenant": tenant, "collection": collection, "most": most, "anywhere": heads is None}
    if tx.db.postgresql:
        values |= {"query": _tsquery(groups), "heads": list(heads or ())}
        rows = tx.all(_CANDIDATES_POSTGRESQL, values)
    else:
        values |= {"query": _fts5(groups), "heads": json.dumps(list(heads or ()))}
        rows = tx.all(_CANDIDATES_SQLITE, values)
    return [Candidate._make(row) for row in rows]


def _fts5(groups: Wanted) -> str:
    return " OR ".join("(" + " AND ".join(f'"{_checked(term)}"' for term in group) + ")" for group in groups)


def _tsquery(groups: Wanted) -> str:
    return " | ".join("(" + " & ".join(f"'{_checked(term)}'" for term in group) + ")" for group in groups)


def _checked(term: str) -> str:
    """The term itself: our analysis never creates one that needs quoting."""
    if not term or any(sign in term for sign in " \"'\\\0"):
        raise ValueError(f"not a term: {term!r}")
    return term


class StoredChunk(NamedTuple):
    """What is shown of a chunk."""

    chunk_id: int
    document_id: str
    title: str
    page: int | None
    text: str
    generation: int
    slice: int
    position: int
    collection: str
    language: str | None
    data: Mapping[str, Any] | None

    @property
    def is_edited(self) -> bool:
        """True if a person replaced the text."""
        return EDIT in (self.data or ())

    @property
    def fields(self) -> Mapping[str, Any]:
        """What the steps of a flow made of it, as far as the flow publishes it."""
        fields = (self.data or {}).get("fields")
        return fields if isinstance(fields, Mapping) else {}


_document = func.substr(heads.c.subject, len(subjects.DOCUMENT) + 1)


def _of_document(column: ColumnElement[Any]) -> ScalarSelect[Any]:
    return (
        select(column)
        .where(documents.c.tenant == heads.c.tenant, documents.c.id == in_usual_order(_document))
        .correlate(heads)
        .scalar_subquery()
    )


CHUNKS_OF = (
    select(
        chunks.c.id,
        _document.label("document_id"),
        func.coalesce(_of_document(documents.c.title), literal_column("''")).label("title"),
        chunks.c.page,
        chunks.c.text,
        chunks.c.generation,
        chunks.c.slice,
        chunks.c.position,
        heads.c.collection,
        _of_document(documents.c.language).label("language"),
        chunks.c.data,
    )
    .join_from(
        chunks,
        heads,
        (heads.c.id == chunks.c.head_id) & (heads.c.published_generation == chunks.c.generation),
    )
    .where(
        key_in(chunks.c.id, bindparam("ids", type_=Numbers())),
        only_tested(heads.c.tenant) == bindparam("tenant"),
        heads.c.visible,
    )
)


# The stamp in every row: one statement is one snapshot, so the rows belong to the stamp.
CHUNKS_AT = CHUNKS_OF.add_columns(
    select(collections.c.publish_seq)
    .where(collections.c.tenant == bindparam("tenant"), collections.c.id == bindparam("collection"))
    .scalar_subquery()
    .label("publish_seq")
)


def chunks_at(
    db: Database, tenant: str, collection: str, publish_seq: int, ids: Sequence[int]
) -> dict[int, StoredChunk] | None:
    """Like `chunks_of`, at this stamp of the collection; None if it has another by now, or no chunks."""
    rows = db.look(CHUNKS_AT, {"tenant": tenant, "collection": collection, "ids": ids})
    if not rows or rows[0].publish_seq != publish_seq:
        return None
    return {row[0]: StoredChunk._make(row[:-1]) for row in rows}


def chunks_of(tx: Tx, tenant: str, ids: Sequence[int]) -> dict[int, StoredChunk]:
    """The visible ones among these chunks, by id."""
    return {row[0]: StoredChunk._make(row) for row in tx.all(CHUNKS_OF, {"tenant": tenant, "ids": ids})}
