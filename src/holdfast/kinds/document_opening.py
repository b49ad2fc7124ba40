"""What a document needs before it can be read: its password, and the answer of a paid service."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from holdfast.core.errors import WorkError
from holdfast.documents.parse.paid import PaidAnswer, PaidCallNeededError
from holdfast.engine.work import Work
from holdfast.kinds import paid_parsing
from holdfast.store.base.database import Database
from holdfast.store.library import document_passwords

T = TypeVar("T")
Parse = Callable[[str | None, PaidAnswer | None], T]


class DocumentOpener:
    """Opens documents for the work of one process."""

    def __init__(self, db: Database, services: Mapping[str, str]) -> None:
        """`services` are the paid services that parsers may ask, by name, and their identities."""
        self._db = db
        self._services = services
        # Of the claim that was worked on last: the steps of one task read the same document.
        self._recent: tuple[str, PaidAnswer] | None = None

    def opened(self, work: Work, parse: Parse[T]) -> T:
        """What `parse` returns for the document.

        A protected one is opened with the password it was given; what its parser needs of a paid service is
        paid for once.
        """
        password = None
        recent = self._recent
        answer = recent[1] if recent is not None and recent[0] == work.claim.token else None
        while True:
            try:
                return parse(password, answer)
            except PaidCallNeededError as needed:
                if answer is not None:
                    raise WorkError("the parser wants a second paid request", code="parser_unfit") from needed
                answer = paid_parsing.answer(work, needed.request, self._services)
                self._recent = work.claim.token, answer
            except WorkError as error:
                if error.code != "encrypted" or password is not None:
                    raise
                password = document_passwords.of_content(self._db, work.claim.tenant, work.content)
                if password is None:
                    raise
