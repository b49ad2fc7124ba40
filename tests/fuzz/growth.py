"""How the time and the memory of a function grow with its input, told robustly on a busy machine.

Processor time is counted, not the clock, and of several runs the shortest. A text is tried at its largest
size first: most are over in a moment, and only those that are not are measured at a smaller size, too.
"""

import contextlib
import gc
import signal
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass

STEP = 8
# Linear time grows by STEP, quadratic by its square, 64; caches and noise may treble a ratio, not more.
MOST_GROWTH = 3 * STEP
# What is over so soon is too short to be measured, and at this size also too short to be quadratic.
QUICK = 0.02
MOST_SECONDS = 20.0
MOST_REPEATS = 5
# From a text to one twice as long: linear time doubles, quadratic time grows fourfold.
MOST_DOUBLING = 3
# Bytes for each character of the input, and what any call may take. A character in a list costs about 60.
MOST_MEMORY = 700
SMALL_MEMORY = 2 * 1024 * 1024


class OverdueError(Exception):
    """A call took longer than any that is linear."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with a function: how it grew from one size to the other."""

    what: str
    small: float
    large: float

    def __str__(self) -> str:
        return f"{self.what}: {self.small:.4g} for one part, {self.large:.4g} for {STEP}"


def time_of(
    call: Callable[[str], object], make: Callable[[int], str], size: int
) -> tuple[float, Finding | None]:
    """Seconds for a text of this size, and None when they grow no faster than the text does up to there."""
    large_text, small_text = make(size), make(size // STEP)
    try:
        large = _seconds(call, large_text)
        if large < QUICK:
            return large, None
        small = _seconds(call, small_text)
        for _ in range(MOST_REPEATS):
            if large <= MOST_GROWTH * max(small, QUICK / STEP):
                return large, None
            small = max(small, _seconds(call, small_text))
            large = min(large, _seconds(call, large_text))
        if _doubles(call, large_text, make(2 * size)):
            return large, None
    except OverdueError:
        return MOST_SECONDS, Finding("seconds, without an end", 0.0, MOST_SECONDS)
    return large, Finding("seconds of processor time", small, large)


def _doubles(call: Callable[[str], object], text: str, longer: str) -> bool:
    """A text twice as long takes about twice as long: only the shortest texts had been over much sooner.

    A chunker has nothing to cut in a text that is shorter than a chunk, so its time begins to grow late.
    """
    seconds = min(_seconds(call, text) for _ in range(MOST_REPEATS))
    return min(_seconds(call, longer) for _ in range(MOST_REPEATS)) <= MOST_DOUBLING * seconds


def memory_of(
    call: Callable[[str], object], make: Callable[[int], str], size: int
) -> tuple[int, Finding | None]:
    """The most memory that `call` holds at a time, and None when it is within a multiple of its input."""
    text = make(size)
    tracemalloc.start()
    try:
        with _alarm():
            call(text)
        peak = tracemalloc.get_traced_memory()[1]
    except OverdueError:
        return 0, Finding("seconds, without an end", 0.0, MOST_SECONDS)
    finally:
        tracemalloc.stop()
    if peak <= SMALL_MEMORY + MOST_MEMORY * len(text):
        return peak, None
    return peak, Finding("bytes of memory", float(MOST_MEMORY * len(text)), float(peak))


def _seconds(call: Callable[[str], object], text: str) -> float:
    gc.disable()
    try:
        with _alarm():
            began = time.process_time()
            call(text)
            return time.process_time() - began
    finally:
        gc.enable()


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    """OverdueError after so much processor time; regular expressions look for signals while they search."""

    def overdue(_number: int, _frame: object) -> None:
        raise OverdueError

    before = signal.signal(signal.SIGVTALRM, overdue)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
