"""Edits of chunks: a person replaces the text of a chunk, switches it off, or takes that back.

Nothing published is changed. The edit is requested as a new version of the document, which is indexed like
any other and pays for the new text alone; the old version answers until it is published.
"""

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.core.errors import BadRequestError, ConflictError, NotFoundError
from holdfast.core.records import Ask
from holdfast.core.text import plain
from holdfast.documents import chunk
from holdfast.engine.engine import Engine
from holdfast.service import journal_phrases, key_restrictions, missing_content
from holdfast.service.collections import Collections
from holdfast.service.documents import Documents
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import UploadResult
from holdfast.store.library import chunk_edits as store
from holdfast.store.library import document_edits, quotas
from holdfast.store.library.chunk_edits import AppliedEdit, ChunkEdit
from holdfast.store.library.document_edits import ChunkChange
from holdfast.store.library.documents import Document
from holdfast.store.library.quotas import UNLIMITED, Quota
from holdfast.store.views import chunk_lists
from holdfast.store.views.chunk_lists import ChunkList, ListedChunk

# The reason of the request, in the journal and in `why`.
EDITED = "edited"
# A corrected text may be longer than the document's chunks; embedders take that much more.
MOST_TIMES_CHUNK_SIZE = 2
STEP = 1000
_NAME = re.compile(r"([0-9a-f]{32})(?:~([0-9a-f]{0,24})|\.([0-9]{1,9})\.([0-9]{1,9}))?")


class EditState(StrEnum):
    """What became of an edit: `not_applied` if the published version lacks the text that it belongs to."""

    APPLIED = "applied"
    PENDING = "pending"
    NOT_APPLIED = "not_applied"


@dataclass(frozen=True, slots=True)
class EditView:
    """An edit, what became of it, and where the published version has it."""

    edit: ChunkEdit
    state: EditState
    places: Sequence[AppliedEdit]

    @property
    def id(self) -> str:
        """Names the chunk, also while no version has its text."""
        return f"{self.edit.digest}~{self.edit.context}"

    @property
    def who(self) -> str:
        """Who made it, for people."""
        return journal_phrases.ACTORS.get(self.edit.actor, self.edit.actor)

    @property
    def sentence(self) -> str:
        """What became of it, in words."""
        match self.state:
            case EditState.APPLIED:
                return "applied" if len(self.places) == 1 else f"applied in {len(self.places)} places"
            case EditState.PENDING:
                return "waiting: the version with it is not published yet"
            case _:
                return "not applied: the text is gone"


class Edits:
    """The edits of an installation's documents, as one process sees them."""

    def __init__(
        self, engine: Engine, documents: Documents, collections: Collections, quota: Quota = UNLIMITED
    ) -> None:
        self._engine = engine
        self._db = engine.db
        self._documents = documents
        self._collections = collections
        self._quota = quota

    def chunks(
        self,
        document: Document,
        *,
        after: tuple[int, int] = (-1, -1),
        limit: int,
        with_disabled: bool = True,
    ) -> ChunkList | None:
        """Chunks of the published version, in order; None when nothing is published."""
        if document.head_id is None:
            return None
        return chunk_lists.listed(self._db, document, after=after, limit=limit, with_disabled=with_disabled)

    def all_of(self, document: Document) -> list[EditView]:
        """Every edit of the document and what became of it, in the order of the document; lost ones last."""
        version = None
        if document.head_id is not None:
            head_id = document.head_id
            version = self._db.read(lambda tx: store.published(tx, head_id))
        places: dict[tuple[str, str, str], list[AppliedEdit]] = {}
        for each in version.applied if version is not None else ():
            places.setdefault((*each.edit.key, each.edit.mark), []).append(each)
        is_published = version is not None and version.fingerprint == document.edits
        views = []
        for edit in store.all_of(self._db, document.tenant, document.id):
            here = places.get((*edit.mark.key, edit.mark.mark), [])
            lost = EditState.NOT_APPLIED if is_published else EditState.PENDING
            views.append(EditView(edit, EditState.APPLIED if here else lost, here))
        return sorted(
            views,
            key=lambda view: [(each.slice, each.position) for each in view.places[:1]] or [(1 << 31, 0)],
        )

    def change(
        self,
        wish: RequestContext,
        document_id: str,
        chunk_id: str,
        chunk_change: ChunkChange,
        *,
        expect_generation: int | None = None,
    ) -> UploadResult:
        """The chunk is changed in the next version of the document, which is requested.

        NotFoundError `no_chunk` if the document has no such chunk, and no such edit.
        """
        document = self._documents.get(wish.tenant, document_id, only=wish.only)
        if not document.has_content:
            raise missing_content.refused(document)
        collection = self._collections.get(wish.tenant, document.collection)
        request = self._documents.request(wish, collection, expect_generation=expect_generation)

        def ask(record: Document) -> Ask:
            return dataclasses.replace(request.ask(record), change=EDITED)

        chunk_change = self._checked(chunk_change, request.ask(document))
        with key_restrictions.without_totals(wish), quotas.noting(self._db, wish.tenant, wish.actor):
            answer = document_edits.change(
                self._db,
                document,
                self._target(document, chunk_id),
                chunk_change,
                dataclasses.replace(request, ask=ask),
                actor=wish.actor,
                quota=self._quota,
                expect_generation=expect_generation,
            )
        return self._documents.settled(wish, document_id, answer)

    def _checked(self, chunk_change: ChunkChange, ask: Ask) -> ChunkChange:
        """The change with its text cleaned as that of a file is; BadRequestError if it cannot be indexed."""
        if chunk_change.enabled is None and not chunk_change.has_text:
            message = "say what to change: `text`, `enabled` or both"
            raise BadRequestError(message, code="nothing_to_change")
        if chunk_change.text is None:
            return chunk_change
        text = plain(chunk_change.text.replace("\r\n", "\n").replace("\r", "\n")).strip()
        if not text:
            message = "the text of a chunk cannot be empty; switch the chunk off instead (`enabled`: false)"
            raise BadRequestError(message, code="empty")
        most = self._most_tokens(ask)
        if (size := chunk.estimate_tokens(text)) > most:
            message = (
                f"the text has about {size:,} tokens, and a chunk of this document may have {most:,};"
                " shorten it, or raise the option chunk_size"
            )
            raise BadRequestError(message, code="chunk_too_long")
        return dataclasses.replace(chunk_change, text=text)

    def _most_tokens(self, ask: Ask) -> int:
        """What the embedder takes in one chunk of the document."""
        most = MOST_TIMES_CHUNK_SIZE * int(str(ask.options["chunk_size"]))
        provider = self._engine.parts.providers.get(str(ask.options["provider"]))
        return most if provider is None else min(most, provider.profile.max_tokens)

    def _target(self, document: Document, chunk_id: str) -> ChunkEdit:
        """The chunk as it is without an edit, or its stored edit."""
        named = _NAME.fullmatch(chunk_id)
        if named is None:
            raise _no_chunk(chunk_id)
        digest, context, slice_number, position = named.groups()
        if context is not None:
            stored = self._db.read(lambda tx: store.some_of(tx, document.tenant, document.id, [digest]))
            edit = next((each for each in stored if each.context == context), None)
            if edit is None:
                raise _no_chunk(chunk_id)
            return edit
        where = None if slice_number is None else (int(slice_number), int(position))
        chunk_here = self._chunk(document, digest, where)
        if chunk_here is None:
            raise _no_chunk(chunk_id)
        context = chunk_lists.context_of(self._db, document, chunk_here)
        return ChunkEdit(digest, context, chunk_here.page, chunk_here.original, text=None, enabled=True)

    def _chunk(self, document: Document, digest: str, where: tuple[int, int] | None) -> ListedChunk | None:
        """The chunk with that text: where it was, or else the only one that there is."""
        if where is not None and (here := self.at(document, where)) is not None and here.digest == digest:
            return here
        same: list[ListedChunk] = []
        after = (-1, -1)
        while page := self.chunks(document, after=after, limit=STEP):
            same += [each for each in page.chunks if each.digest == digest]
            if len(page.chunks) < STEP:
                break
            after = (page.chunks[-1].slice, page.chunks[-1].position)
        if len(same) > 1:
            message = "the document was indexed again, and has this text several times; load its chunks again"
            raise ConflictError(message, code="chunk_moved")
        return same[0] if same else None

    def at(self, document: Document, where: tuple[int, int]) -> ListedChunk | None:
        """The chunk at (slice, position) of the published version, also if it is switched off."""
        page = self.chunks(document, after=(where[0], where[1] - 1), limit=1)
        return next(
            (each for each in (page.chunks if page else ()) if (each.slice, each.position) == where), None
        )


def _no_chunk(chunk_id: str) -> NotFoundError:
    message = f"the published version has no chunk {chunk_id!r:.80}, and there is no such edit"
    return NotFoundError(message, code="no_chunk")
