"""The edits of a document, applied to the slices of its run.

A slice is cut from the document as ever; then each chunk that an edit belongs to has the edit's text, or is
left out. What is left out keeps its position: the chunks after it stay where they are. Only the new texts are
paid for; every other chunk is in the ledger, and a slice without a change is taken over as it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.core import chunk_edits, subjects
from holdfast.core.chunk_edits import EDITS, EditMark
from holdfast.core.errors import WorkError
from holdfast.core.records import Ask
from holdfast.documents.chunk import ChunkText
from holdfast.engine.work import Work
from holdfast.store.library import chunk_edits as store
from holdfast.store.library.chunk_edits import AppliedEdit
from holdfast.store.protocol.slices import DoneSlice

# The option that names a flow.
FLOW = "flow"
# A worker of a release that knows no edits must not claim a run that has some: it would publish without them.
# Nor one that knows no flows a run with one.
VERSION = 1
EDITED_VERSION = 2
FLOW_VERSION = 3


def with_edits(ask: Ask, edits: str | None) -> Ask:
    """The request to index a document with the edits of this fingerprint."""
    options = {name: value for name, value in ask.options.items() if name != EDITS}
    if edits is not None:
        options[EDITS] = edits
    return replace(ask, options=options, pipeline=pipeline_of(options))


def pipeline_of(options: Mapping[str, Any]) -> str:
    """The oldest version of `index` that can carry out a run with these options."""
    version = FLOW_VERSION if options.get(FLOW) else EDITED_VERSION if EDITS in options else VERSION
    return f"{subjects.INDEX}@{version}"


@dataclass(frozen=True, slots=True)
class EditedPiece:
    """A chunk to be staged: its position in the slice, its text, and the edit that it has."""

    position: int
    piece: ChunkText
    edit: EditMark | None = None


@dataclass(frozen=True, slots=True)
class EditedSlice:
    """The chunks of a slice that stay, and every edit that was applied to it."""

    pieces: Sequence[EditedPiece]
    applied: Sequence[AppliedEdit] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """For the result of the slice."""
        return {EDITS: [each.as_json() for each in self.applied]} if self.applied else {}

    @property
    def note(self) -> str:
        """For the log of the run; empty without edits."""
        off = sum(not each.edit.enabled for each in self.applied)
        return f", {len(self.applied) - off} edited, {off} switched off" if self.applied else ""


def are_same(done: DoneSlice, edited: EditedSlice) -> bool:
    """True if a finished slice has the same edits at the same chunks."""
    return list(done.result.get(EDITS, ())) == list(edited.facts.get(EDITS, ()))


@dataclass(frozen=True, slots=True)
class DocumentEdits:
    """The edits of the document that a task works on."""

    edits: Mapping[tuple[str, str], EditMark] = field(default_factory=dict)

    @classmethod
    def of(cls, work: Work) -> "DocumentEdits":
        """Those that the run was requested with; WorkError `edits_changed` if they are not there any more."""
        chunk_change = work.options.get(EDITS)
        if chunk_change is None:
            return cls()
        marks = store.marks(work.db, work.claim.tenant, subjects.document_id(work.claim.subject))
        if chunk_edits.fingerprint(marks) != chunk_change:
            raise WorkError("the edits of the document have changed; request it again", code="edits_changed")
        return cls({each.key: each for each in marks})

    def reusable(self, earlier: Mapping[str, DoneSlice]) -> frozenset[str]:
        """The digests of slices that need not be cut to know that they can be taken over."""
        if self.edits:
            return frozenset()
        return frozenset(digest for digest, done in earlier.items() if not done.result.get(EDITS))

    def apply(self, work: Work, pieces: Sequence[ChunkText]) -> EditedSlice:
        """The slice of these chunks with the edits that belong to them."""
        if not self.edits:
            return EditedSlice([EditedPiece(at, piece) for at, piece in enumerate(pieces)])
        edits = chunk_edits.matching(self.edits, pieces)
        texts = self._texts(work, edits)
        chunks, applied = [], []
        for at, (piece, edit) in enumerate(zip(pieces, edits, strict=True)):
            if edit is not None:
                applied.append(AppliedEdit(work.claim.ordinal, at, piece.page, edit))
            if edit is None or edit.enabled:
                text = piece.text if edit is None else texts[edit.key]
                chunks.append(EditedPiece(at, replace(piece, text=text), edit))
        return EditedSlice(chunks, applied)

    def _texts(self, work: Work, edits: Sequence[EditMark | None]) -> dict[tuple[str, str], str]:
        digests = {edit.digest for edit in edits if edit is not None and edit.enabled}
        if not digests:
            return {}
        name = work.claim.tenant, subjects.document_id(work.claim.subject)
        stored = work.db.read(lambda tx: store.some_of(tx, *name, digests))
        # One that changed in between is of a later generation: this one cannot publish any more.
        texts = {edit.mark.key: edit.original if edit.text is None else edit.text for edit in stored}
        if any(edit is not None and edit.enabled and edit.key not in texts for edit in edits):
            raise WorkError("the edits of the document have changed; request it again", code="edits_changed")
        return texts
