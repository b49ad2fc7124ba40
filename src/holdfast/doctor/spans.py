"""Times and sizes as people write them."""

from collections.abc import Sequence


def span(seconds: float) -> str:
    """Seconds, minutes, hours or days, whichever reads best."""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size or (seconds >= size and seconds % size == 0):
            return f"{_number(seconds / size)} {unit}"
    if 0 < seconds < 1:
        return f"{round(seconds * 1000)} ms"
    return f"{_number(seconds)} s"


def size(number: float) -> str:
    """Bytes in the largest unit that leaves a number of at least one."""
    for unit, one in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= one:
            return f"{_number(number / one)} {unit}"
    return f"{number:.0f} bytes"


def names(listed: Sequence[str], most: int = 3) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(listed[:most])
    more = len(listed) - most
    return f"{shown} and {more} more" if more > 0 else shown


def tasks(number: int) -> str:
    """So many tasks."""
    return "1 task" if number == 1 else f"{number} tasks"


def _number(value: float) -> str:
    return f"{round(value, 1):g}"
