"""Room for answers in a process that waits for many at once: long ones wait on disk, and are read one by one.

A process that carries hundreds of exchanges sets an `AnswerRoom` around each. The beginning of an answer is
held in memory; what is longer goes to a temporary file as it arrives. Only one long answer of the process is
in memory at a time, from its reading until `leave`.
"""

import contextlib
import contextvars
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

SHORT = 128 * 1024


class AnswerRoom:
    """Where the answer of one exchange is put together."""

    def __init__(self, folder: Path, reading: threading.Lock) -> None:
        """`reading` is shared by all exchanges of the process."""
        self._folder = folder
        self._reading = reading
        self._is_reading = False

    def collected(self, chunks: Iterator[bytes]) -> bytes:
        """The whole of the answer; a long one waits until no other is in memory."""
        with tempfile.SpooledTemporaryFile(max_size=SHORT, dir=str(self._folder)) as pieces:
            for chunk in chunks:
                pieces.write(chunk)
            if pieces.tell() > SHORT:
                self._reading.acquire()
                self._is_reading = True
            pieces.seek(0)
            return pieces.read()

    def leave(self) -> None:
        """The answer is not needed any more."""
        if self._is_reading:
            self._is_reading = False
            self._reading.release()


current: contextvars.ContextVar[AnswerRoom | None] = contextvars.ContextVar("holdfast_room", default=None)


@contextlib.contextmanager
def entered(room: AnswerRoom) -> Iterator[None]:
    """Answers of this thread are put together in `room`."""
    token = current.set(room)
    try:
        yield
    finally:
        current.reset(token)
        room.leave()
