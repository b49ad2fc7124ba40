"""Numbers for identical calls that are each meant: the first of an execution is 0, the next one 1.

A number belongs to a call that was answered. If the call failed, its number is free, so that a second try
(by the user's code, or by a client library) asks for the same call and not for one more.
"""

import contextlib
import threading
import weakref
from collections import defaultdict
from collections.abc import Iterator

from holdfast.engine.work import Work


class Occurrences:
    """The numbers of one execution."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: defaultdict[str, set[int]] = defaultdict(set)

    def take(self, content: str) -> int:
        """The lowest free number of the calls with this content."""
        with self._lock:
            used = self._used[content]
            number = next(each for each in range(len(used) + 1) if each not in used)
            used.add(number)
            return number

    def release(self, content: str, number: int) -> None:
        """The call with this number failed: the next one takes it over."""
        with self._lock:
            self._used[content].discard(number)

    @contextlib.contextmanager
    def numbered(self, content: str) -> Iterator[int]:
        """The number of the call that is made in the block; free again if the block raises."""
        number = self.take(content)
        answered = False
        try:
            yield number
            answered = True
        finally:
            if not answered:
                self.release(content, number)


_of_work: "weakref.WeakKeyDictionary[Work, Occurrences]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def of(work: Work) -> Occurrences:
    """The numbers of this execution."""
    with _lock:
        return _of_work.setdefault(work, Occurrences())
