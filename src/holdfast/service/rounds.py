"""Rounds over whole collections: some of it before the request is answered, the rest by the sweep.

A turn of the sweep sees to a bounded number of documents. So changed options ask for a hundred thousand
documents over the better part of an hour, behind everything else that is due, and not all in one moment.
"""

import contextlib
from collections.abc import Callable

from holdfast.core.errors import NotFoundError
from holdfast.core.records import Answer
from holdfast.core.states import Disposition
from holdfast.store import documents, rounds
from holdfast.store.database import Database
from holdfast.store.rounds import Round

# Documents that are seen to before a request about all of them is answered, and at each turn of the sweep.
AT_ONCE = 100
PER_TURN = {rounds.OPTIONS: 200, rounds.DELETE: 500}
ROUNDS_PER_TURN = 5
WAIT_FOR_BUDGET = 60.0


class Rounds:
    """Carries rounds on. `ask` asks for a document again, `end` ends the work of one that is gone."""

    def __init__(
        self, db: Database, ask: Callable[[Round, str], Answer], end: Callable[[Round, str], None]
    ) -> None:
        self._db = db
        self._ask = ask
        self._end = end

    def __call__(self) -> int:
        """One turn of the sweep; answers for how many documents something was done."""
        return sum(self.go_on(each, PER_TURN[each.sort]) for each in rounds.due(self._db, ROUNDS_PER_TURN))

    def begin(self, which: Round) -> tuple[int, int]:
        """Some documents are seen to: for how many something was done, and how many are to follow."""
        done = self.go_on(which, AT_ONCE)
        now = rounds.one(self._db, which.tenant, which.collection, which.sort)
        return done, 0 if now is None else rounds.left(self._db, now)

    def go_on(self, which: Round, most: int) -> int:
        """The round has seen to `most` documents more, or is over; for how many something was done."""
        return self._ask_some(which, most) if which.sort == rounds.OPTIONS else self._end_some(which, most)

    def _ask_some(self, which: Round, most: int) -> int:
        """Documents are asked for by the options of now; a refused request makes the round wait."""
        asked, after = 0, which.after
        found = documents.page(self._db, which.tenant, which.collection, after=after, limit=most)
        for each in found:
            with contextlib.suppress(NotFoundError):  # deleted, or moved, meanwhile
                answer = self._ask(which, each.id)
                if answer.disposition is Disposition.REFUSED:
                    rounds.step(self._db, which, after, pause=WAIT_FOR_BUDGET)
                    return asked
                asked += answer.created
            after = each.id
        self._tell(which, after, is_over=len(found) < most)
        return asked

    def _end_some(self, which: Round, most: int) -> int:
        found = rounds.remains(self._db, which.tenant, which.collection, after=which.after, limit=most)
        for each in found:
            self._end(which, each)
        self._tell(which, found[-1] if found else which.after, is_over=len(found) < most)
        return len(found)

    def _tell(self, which: Round, after: str, *, is_over: bool) -> None:
        if is_over:
            rounds.end(self._db, which)
        else:
            rounds.step(self._db, which, after)
