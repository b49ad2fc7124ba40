"""The text of a ready document as a follow-up reads it: the generation that it was made for, no other."""

from holdfast.core import subjects
from holdfast.core.errors import WorkError
from holdfast.engine.ready_documents import Passage, ReadyDocument
from holdfast.store.base.database import Database
from holdfast.store.views import reads

PAGE = 500


def read(db: Database, tenant: str, content: str) -> ReadyDocument:
    """The document that the content of a follow-up names (`document:42@3`).

    WorkError when another generation has been published since: it has follow-ups of its own.
    """
    subject, _, generation = content.rpartition("@")
    head = reads.head(db, tenant, subjects.INDEX, subject)
    passages: list[Passage] = []
    after = (-1, -1)
    while head is not None:
        page = reads.visible_chunks(db, head.id, after=after, limit=PAGE)
        if page is None or str(page.generation) != generation:
            break
        passages += [Passage(each.chunk.text, each.chunk.page) for each in page.chunks]
        if len(page.chunks) < PAGE:
            return ReadyDocument(subject, page.generation, tuple(passages))
        after = (page.chunks[-1].slice, page.chunks[-1].chunk.position)
    message = f"generation {generation} of {subject} is no longer the published one"
    raise WorkError(message, code="generation_gone")
