"""Requests under a condition: only if the document is still at the generation that the caller has seen.

The generation is compared inside the transaction of the request, with the head locked, and a request that
comes too late leaves nothing behind. Compared before it, two callers could both be right.
"""

from dataclasses import dataclass

from holdfast.core.errors import HoldfastError
from holdfast.core.records import RequestResult
from holdfast.service.library import Library, Wish
from holdfast.store.base.database import Tx
from holdfast.store.library import documents
from holdfast.store.library.collections import Collection
from holdfast.store.library.documents import Document


class GenerationMovedError(HoldfastError):
    """The document is at another generation than the caller expected; nothing was changed."""

    code = "generation_moved"


@dataclass(frozen=True, slots=True)
class Condition(Wish):
    """A wish that holds only while the document is at this generation; None: whatever it is at."""

    generation: int | None = None

    def check(self, found: int) -> None:
        """Return if the document may be changed; otherwise GenerationMovedError."""
        if self.generation is not None and self.generation != found:
            message = f"the document is at generation {found}, not {self.generation}; look at it again"
            raise GenerationMovedError(message)


class ConditionalLibrary(Library):
    """A library that heeds conditions. It is made of the parts of another one."""

    def __init__(self, library: Library) -> None:
        vars(self).update(vars(library))

    def _request(self, wish: Wish, collection: Collection, *, force: bool = False) -> documents.Request:
        asked = super()._request(wish, collection, force=force)

        def request(tx: Tx, found: Document) -> RequestResult:
            answer = asked(tx, found)
            if isinstance(wish, Condition):
                wish.check(answer.generation - 1 if answer.created else answer.generation)
            return answer

        return request
