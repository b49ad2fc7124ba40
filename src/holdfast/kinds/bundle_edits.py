"""Edits of chunks in bundles: each with the places that the exported version has it in.

A context is a number in the order of the document, where chunks that are switched off count as well. So an
imported document has its chunks, and those switched off, in the order that they had.
"""

import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from holdfast.core import chunk_edits
from holdfast.core.chunk_edits import EDIT, EditMark
from holdfast.core.text import is_plain
from holdfast.documents import bundles
from holdfast.store.base.database import Tx
from holdfast.store.library import chunk_edits as store
from holdfast.store.library.chunk_edits import AppliedEdit, ChunkEdit

MOST_TEXT = 1_000_000
MOST_ACTOR = 200
MOST_PLACES = 100_000
# Characters of all edits of a document: they are in memory at once.
MOST_DOCUMENT_TEXT = 50_000_000
MOST_NUMBER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class BundleEdit:
    """An edit, and what the exported version has of it: where, and as what."""

    edit: ChunkEdit
    applied: Sequence[AppliedEdit]


def written(
    tx: Tx, tenant: str, document_id: str, head_id: int, positions: Sequence[tuple[int, int]]
) -> list[dict[str, Any]]:
    """The edits of a document whose chunks are at these (slice, position), as lines of a bundle."""
    version = store.published(tx, head_id)
    applied = version.applied if version is not None else ()
    off = [(each.slice, each.position) for each in applied if not each.edit.enabled]
    places: dict[tuple[str, str], list[list[Any]]] = {}
    for each in applied:
        where = each.slice, each.position
        number = bisect.bisect_left(positions, where) + bisect.bisect_left(off, where)
        places.setdefault(each.edit.key, []).append([number, each.page, each.edit.enabled, each.edit.mark])
    return [
        {
            "context": edit.context,
            "page": edit.page,
            "original": edit.original,
            "text": edit.text,
            "enabled": edit.enabled,
            "actor": edit.actor,
            "at": places.get(edit.mark.key, []),
        }
        for edit in store.seen(tx, tenant, document_id)
    ]


def read(line: Mapping[str, Any]) -> BundleEdit:
    """The edit of a line; BadRequestError for one that cannot be taken."""
    original, text, page = line.get("original"), line.get("text"), line.get("page")
    context, actor, places = line.get("context"), line.get("actor"), line.get("at")
    fits = (
        _is_text(original, MOST_TEXT)
        and (text is None or (_is_text(text, MOST_TEXT) and bool(text)))
        and _is_text(context, 40)
        and _is_text(actor, MOST_ACTOR)
        and type(line.get("enabled")) is bool
        and (page is None or _is_number(page))
        and isinstance(places, list)
        and len(places) <= MOST_PLACES
    )
    if not fits or not isinstance(places, list):
        raise bundles.bad("an edit of a chunk cannot be stored")
    digest = chunk_edits.text_digest(str(original))
    edit = ChunkEdit(digest, str(context), page, str(original), text, bool(line["enabled"]), str(actor))
    if edit.changes_nothing:
        raise bundles.bad("an edit changes nothing")
    return BundleEdit(edit, [_applied(edit, each) for each in places])


def read_all(lines: Iterable[Mapping[str, Any]], chunks: int) -> list[BundleEdit]:
    """The edits of a document that has so many chunks; BadRequestError if they cannot be those of one.

    Each chunk has one edit, those that are switched off among them, and each edit is there once. What is held
    in memory is bounded, however large the bundle is.
    """
    edits: list[BundleEdit] = []
    keys: set[tuple[str, str]] = set()
    positions: set[int] = set()
    size = off = 0
    for line in lines:
        each = read(line)
        edits.append(each)
        size += len(each.edit.original) + len(each.edit.text or "")
        keys.add(each.edit.mark.key)
        off += sum(not at.edit.enabled for at in each.applied)
        before = len(positions)
        positions.update(at.position for at in each.applied)
        if len(positions) != before + len(each.applied) or len(keys) != len(edits):
            raise bundles.bad("a chunk has two edits")
        if size > MOST_DOCUMENT_TEXT or len(positions) > MOST_PLACES:
            raise bundles.bad("the edits of a document are too large")
    if positions and max(positions) >= chunks + off:
        raise bundles.bad("an edit is of a chunk that is not there")
    return edits


def _applied(edit: ChunkEdit, values: Any) -> AppliedEdit:
    match values:
        case [int(number), int() | None as page, bool(enabled), str(mark)] if (
            _is_number(number) and (page is None or _is_number(page)) and _is_text(mark, 40)
        ):
            return AppliedEdit(0, number, page, EditMark(edit.digest, edit.context, enabled, mark))
        case _:
            raise bundles.bad("an edit has a context that is none")


def _is_text(value: object, most: int) -> bool:
    return isinstance(value, str) and len(value) <= most and is_plain(value)


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST_NUMBER


def fingerprint(chosen: Mapping[str, Any], edits: Sequence[BundleEdit]) -> str | None:
    """That of the exported version's edits. It is part of how the document was indexed there."""
    known = chosen.get(chunk_edits.EDITS)
    return known if edits and isinstance(known, str) and len(known) == chunk_edits.DIGEST_LENGTH else None


class ImportedPlaces:
    """Where the chunks of an imported document go, and which of them have which edit."""

    def __init__(self, edits: Iterable[BundleEdit]) -> None:
        self.applied = sorted((at for each in edits for at in each.applied), key=lambda at: at.position)
        self._on = {at.position: at for at in self.applied if at.edit.enabled}
        off = {at.position for at in self.applied if not at.edit.enabled}
        self._free: Iterator[int] = (number for number in count() if number not in off)

    def next(self, data: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """The position of the next chunk, and its data."""
        number = next(self._free)
        at = self._on.get(number)
        return number, {**data, EDIT: list(at.edit.key)} if at is not None else dict(data)

    @property
    def facts(self) -> dict[str, Any]:
        """For the result of the import."""
        edits = [at.as_json() for at in self.applied]
        return {chunk_edits.EDITS: edits} if edits else {}
