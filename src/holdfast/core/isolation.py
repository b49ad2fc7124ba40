"""One bad item never blocks the others: each of many is handled on its own."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from holdfast.core.errors import HoldfastError, StoreLockedError, StoreUnavailableError

T = TypeVar("T")


class SomeFailedError(HoldfastError):
    """Some of many items failed; `done` is the sum over the others."""

    code = "some_failed"

    def __init__(self, message: str, *, done: int) -> None:
        """Keep the result of the other items."""
        super().__init__(message)
        self.done = done


def for_each(items: Iterable[T], act: Callable[[T], int], *, name: Callable[[T], str]) -> int:
    """The sum of the results of `act`, every item tried; then SomeFailedError names those that failed.

    An unreachable database affects all items and ends it at once.
    """
    done, tried = 0, 0
    failures: list[str] = []
    for item in items:
        tried += 1
        try:
            done += act(item)
        except Exception as error:  # one bad item never blocks the others; it is reported below
            if isinstance(error, StoreUnavailableError) and not isinstance(error, StoreLockedError):
                raise
            failures.append(f"{name(item)}: {explain(error)}")
    if failures:
        raise SomeFailedError(f"{len(failures)} of {tried} failed; {'; '.join(failures[:3])}", done=done)
    return done


def explain(error: Exception) -> str:
    """An error in one line."""
    return error.message if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}"
