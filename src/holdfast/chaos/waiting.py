"""The one way to wait: for something to come true, with a deadline that only ends what has failed."""

import time
from collections.abc import Callable
from typing import TypeVar

from holdfast.chaos.expectations import ScenarioFailedError

T = TypeVar("T")
LEAST = 30.0  # a busy machine takes many times what an idle one does, and what has failed still ends


class TooLateError(ScenarioFailedError):
    """What was waited for did not come true in time."""


def until(true: Callable[[], T], seconds: float, what: str, every: float = 0.05) -> T:
    """The first true answer of `true`; TooLateError, which says `what`, when there is none in time.

    `seconds` are how long it may take, and never an assertion of speed: who needs one measures it.
    """
    seconds = max(seconds, LEAST)
    deadline = time.monotonic() + seconds
    while not (answer := true()):
        if time.monotonic() > deadline:
            raise TooLateError(f"waited {seconds:g} s in vain: {what}")
        time.sleep(every)
    return answer
