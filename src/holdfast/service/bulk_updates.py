"""Updates of whole collections: the first part before the request is answered, the rest by the sweep.

Each turn of the sweep handles a bounded number of documents. So changed options re-index a hundred thousand
documents over the better part of an hour, behind everything else that is due, instead of all at once.
"""

import logging
from collections.abc import Callable

from holdfast.core import isolation
from holdfast.core.errors import HoldfastError, NotFoundError, StoreUnavailableError
from holdfast.core.records import RequestResult
from holdfast.core.states import Disposition
from holdfast.store.base.database import Database
from holdfast.store.library import bulk_updates, documents
from holdfast.store.library.bulk_updates import BulkUpdate

# Documents that are seen to before a request about all of them is answered, and at each turn of the sweep.
AT_ONCE = 100
PER_TURN = {bulk_updates.OPTIONS: 200, bulk_updates.DELETE: 500}
ROUNDS_PER_TURN = 5
WAIT_FOR_BUDGET = 60.0
WAIT_AFTER_ERROR = 60.0

log = logging.getLogger(__name__)


class Rounds:
    """Carries rounds on. `ask` asks for a document again, `end` ends the work of one that is gone."""

    def __init__(
        self,
        db: Database,
        ask: Callable[[BulkUpdate, str], RequestResult],
        end: Callable[[BulkUpdate, str], None],
    ) -> None:
        self._db = db
        self._ask = ask
        self._end = end

    def __call__(self) -> int:
        """One turn of the sweep; answers for how many documents something was done."""
        return isolation.for_each(
            bulk_updates.due(self._db, ROUNDS_PER_TURN), self._take_turn, name=lambda each: each.collection
        )

    def _take_turn(self, which: BulkUpdate) -> int:
        """The round was carried on; one that cannot be waits, so that it does not hold the others up."""
        try:
            return self.go_on(which, PER_TURN[which.sort])
        except StoreUnavailableError:
            raise
        except isolation.SomeFailedError:  # it went on past them
            raise
        except Exception:
            # Outermost of a round: whatever is wrong with it is told by the sweep, once a minute.
            bulk_updates.step(self._db, which, which.after, pause=WAIT_AFTER_ERROR)
            raise

    def begin(self, which: BulkUpdate) -> tuple[int, int]:
        """Some documents are seen to: for how many something was done, and how many are to follow."""
        done = self.go_on(which, AT_ONCE)
        now = bulk_updates.one(self._db, which.tenant, which.collection, which.sort)
        return done, 0 if now is None else bulk_updates.left(self._db, now)

    def go_on(self, which: BulkUpdate, most: int) -> int:
        """The round has seen to `most` documents more, or is over; for how many something was done."""
        return (
            self._ask_some(which, most) if which.sort == bulk_updates.OPTIONS else self._end_some(which, most)
        )

    def _ask_some(self, which: BulkUpdate, most: int) -> int:
        """Documents are asked for by the options of now; a refused request makes the round wait.

        A document that cannot be asked for is noted in its journal, and the round goes on with the next.
        """
        done, after = 0, which.after
        page = documents.page(self._db, which.tenant, which.collection, after=after, limit=most)
        for document in page:
            try:
                answer = self._ask(which, document.id)
            except NotFoundError:  # deleted, or moved, meanwhile
                pass
            except StoreUnavailableError:
                raise
            except Exception as error:  # noqa: BLE001 - one bad document never holds up the others
                self._skip(which, document, error)
            else:
                if answer.disposition is Disposition.REFUSED:
                    bulk_updates.step(self._db, which, after, pause=WAIT_FOR_BUDGET)
                    return done
                done += answer.created
            after = document.id
        self._advance(which, after, is_over=len(page) < most)
        return done

    def _skip(self, which: BulkUpdate, document: documents.Document, error: Exception) -> None:
        reason = isolation.explain(error)
        log.warning("the bulk update of %s skips document %s: %s", which.collection, document.id, reason)
        code = error.code if isinstance(error, HoldfastError) else "error"
        bulk_updates.note_skipped(self._db, which, document.head_id, code, reason)

    def _end_some(self, which: BulkUpdate, most: int) -> int:
        """The work of some documents that are gone has ended; what could not be is tried again later."""
        page = bulk_updates.remains(self._db, which.tenant, which.collection, after=which.after, limit=most)

        def end(document_id: str) -> int:
            self._end(which, document_id)
            return 1

        try:
            return isolation.for_each(page, end, name=str)
        finally:
            after = page[-1] if page else which.after
            if len(page) < most and bulk_updates.remains(
                self._db, which.tenant, which.collection, after="", limit=1
            ):
                bulk_updates.step(self._db, which, "", pause=WAIT_AFTER_ERROR)  # from the first that is left
            else:
                self._advance(which, after, is_over=len(page) < most)

    def _advance(self, which: BulkUpdate, after: str, *, is_over: bool) -> None:
        if is_over:
            bulk_updates.end(self._db, which)
        else:
            bulk_updates.step(self._db, which, after)
