"""A document as a kind reads it: the passages of one published generation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.core import subjects
from holdfast.documents import text_units


@dataclass(frozen=True, slots=True)
class Passage:
    """One chunk of a document."""

    text: str
    page: int | None = None


@dataclass(frozen=True, slots=True)
class ReadyDocument:
    """A document that answers queries: its passages in their order, all of one generation."""

    subject: str
    generation: int
    passages: tuple[Passage, ...]

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
