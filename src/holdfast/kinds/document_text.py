"""The text of a ready document as a follow-up reads it: the generation that it was made for, no other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.core import subjects
from holdfast.core.errors import WorkError
from holdfast.documents import text_units
from holdfast.store.base.database import Database
from holdfast.store.views import reads

PAGE = 500


@dataclass(frozen=True, slots=True)
class DocumentPassage:
    """One chunk of a document."""

    text: str
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A document's passages in their order, all of one generation."""

    subject: str
    generation: int
    passages: tuple[DocumentPassage, ...]

    @property
    def document_id(self) -> str:
        """The document's id."""
        return subjects.document_id(self.subject)

    @property
    def text(self) -> str:
        """The whole text."""
        return "\n\n".join(each.text for each in self.passages)

    @property
    def pages(self) -> int:
        """The number of the last page; 1 where there are none."""
        return max((each.page or 1 for each in self.passages), default=1)

    def between(self, first: int, last: int) -> str:
        """The text of the pages `first` to `last`."""
        return "\n\n".join(each.text for each in self.passages if first <= (each.page or 1) <= last)

    def parts(self, tokens: int) -> list[str]:
        """The text in parts of about `tokens` at most; a passage is never cut."""
        return list(_filled([each.text for each in self.passages], tokens))


def read(db: Database, tenant: str, content: str) -> Reading:
    """The document that the content of a follow-up names (`document:42@3`).

    WorkError when another generation has been published since: it has follow-ups of its own.
    """
    subject, _, wanted = content.rpartition("@")
    head = reads.head(db, tenant, subjects.INDEX, subject)
    passages: list[DocumentPassage] = []
    after = (-1, -1)
    while head is not None:
        page = reads.visible_chunks(db, head.id, after=after, limit=PAGE)
        if page is None or str(page.generation) != wanted:
            break
        passages += [DocumentPassage(each.chunk.text, each.chunk.page) for each in page.chunks]
        if len(page.chunks) < PAGE:
            return Reading(subject, page.generation, tuple(passages))
        after = (page.chunks[-1].slice, page.chunks[-1].chunk.position)
    message = f"generation {wanted} of {subject} is not the published one any more"
    raise WorkError(message, code="generation_gone")


def weight(text: str) -> int:
    """About how many tokens a text has."""
    return text_units.weigh(text) // 8 + 1


def _filled(texts: Sequence[str], tokens: int) -> Iterator[str]:
    some: list[str] = []
    held = 0
    for text in texts:
        weighs = weight(text)
        if some and held + weighs > tokens:
            yield "\n\n".join(some)
            some, held = [], 0
        some.append(text)
        held += weighs
    if some:
        yield "\n\n".join(some)


def packed(texts: Sequence[str], tokens: int) -> list[str]:
    """The texts put together into parts of about `tokens` at most each; one that is larger stands alone."""
    return list(_filled(texts, tokens))
