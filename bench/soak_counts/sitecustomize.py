"""Counts the statements of a process into a file of its own; for the processes of `bench.soak` alone."""

import mmap
import os
from pathlib import Path
from typing import Any

FOLDER = os.environ.get("SOAK_COUNTS", "")


class Counter:
    """Eight bytes that whoever measures can read while this process runs."""

    def __init__(self) -> None:
        self.open()
        os.register_at_fork(after_in_child=self.open)

    def open(self) -> None:
        """The file of this process; a forked child has one of its own."""
        path = Path(FOLDER) / str(os.getpid())
        path.write_bytes(bytes(8))
        with path.open("r+b") as file:
            self._bytes = mmap.mmap(file.fileno(), 8)
        self._number = 0

    def add(self) -> None:
        """One more statement."""
        self._number += 1
        self._bytes[:] = self._number.to_bytes(8, "little")


def _count() -> None:
    try:
        from sqlalchemy.engine.default import DefaultDialect  # noqa: PLC0415 - not every process has it
    except ImportError:
        return
    counter = Counter()
    for name in ("do_execute", "do_executemany", "do_execute_no_params"):
        original: Any = getattr(DefaultDialect, name)

        def counted(*given: Any, original: Any = original, **named: Any) -> Any:
            counter.add()
            return original(*given, **named)

        setattr(DefaultDialect, name, counted)


if FOLDER:
    _count()
