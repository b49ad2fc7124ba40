"""Edits of chunks by people: to which chunk an edit belongs, and when two sets of edits are the same.

An edit belongs to a text, not to a position: to the chunk whose text, as the document says it, has the edit's
digest. Versions may number and cut other chunks as they like. Where a document has the same text several
times, the edit also has a `context`, made of the texts before and after on the same page: it stays with the
one it was made for. Only neighbours count: nothing far away, and no page number, moves an edit.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.core import keys
from holdfast.core.text import plain

DIGEST_LENGTH = 32
CONTEXT_LENGTH = 16
# In the options of a run, the fingerprint of its edits; in the result of a slice, the edits that it applied.
EDITS = "edits"
# In the data of an edited chunk: digest and context of its edit.
EDIT = "edit"
# The context of an edit that belongs to its text wherever that is.
ANYWHERE = ""


class CutText(Protocol):
    """A chunk as it was cut: its text, as the document says it, and its page."""

    @property
    def text(self) -> str:
        """The text."""

    @property
    def page(self) -> int | None:
        """Its page, if it has one."""


@dataclass(frozen=True, slots=True)
class EditMark:
    """An edit without its texts. `mark` differs whenever two edits of one chunk do."""

    digest: str
    context: str
    enabled: bool
    mark: str

    @property
    def key(self) -> tuple[str, str]:
        """To which chunk it belongs."""
        return self.digest, self.context


def text_digest(text: str) -> str:
    """The digest by which edits know the text of a chunk, as databases store it."""
    return keys.digest("chunk", plain(text))[:DIGEST_LENGTH]


def mark_of(text: str | None, *, enabled: bool) -> str:
    """The mark of an edit that switches the chunk on or off, and replaces its text unless that is None."""
    return keys.digest("edit", str(int(enabled)), *([] if text is None else [text]))[:CONTEXT_LENGTH]


def fingerprint(edits: Iterable[EditMark]) -> str | None:
    """The same for the same edits, in any order; None for none."""
    parts = sorted(f"{edit.digest}\n{edit.context}\n{edit.mark}" for edit in edits)
    return keys.digest("edits", *parts)[:DIGEST_LENGTH] if parts else None


def contexts(pieces: Sequence[CutText]) -> list[str]:
    """The context of each chunk: equal texts with equal neighbours are numbered, page by page."""
    seen: Counter[tuple[int | None, str]] = Counter()
    names = []
    for at, piece in enumerate(pieces):
        before = pieces[at - 1].text if at and pieces[at - 1].page == piece.page else ""
        after = pieces[at + 1].text if at + 1 < len(pieces) and pieces[at + 1].page == piece.page else ""
        around = keys.digest("context", plain(piece.text), plain(before), plain(after))[:CONTEXT_LENGTH]
        number = seen[(piece.page, around)]
        seen[(piece.page, around)] += 1
        names.append(f"{around}{number}" if number else around)
    return names


def matching(edits: Mapping[tuple[str, str], EditMark], pieces: Sequence[CutText]) -> list[EditMark | None]:
    """For each chunk the edit that belongs to it. One made for its context precedes one for its text."""
    digests = [text_digest(piece.text) for piece in pieces]
    placed = {digest for digest, context in edits if context != ANYWHERE}
    where: Sequence[str] = contexts(pieces) if not placed.isdisjoint(digests) else ()
    return [
        (edits.get((digest, where[at])) if where else None) or edits.get((digest, ANYWHERE))
        for at, digest in enumerate(digests)
    ]
