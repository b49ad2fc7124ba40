"""A document as an open descriptor, which is all that a sandboxed child can read.

It has the two methods of a path that parsers use, so that they accept either.
"""

import io
import os
from pathlib import Path
from typing import BinaryIO

_BUFFER = 256 * 1024


class SourceFile:
    """An open file, closed with its last reference, and the password that opens it, if it needs one.

    `answer` is what a paid service said about it, for the parser that needs that; `answer_key` names it.
    """

    def __init__(
        self,
        descriptor: int,
        password: str | None = None,
        answer: "SourceFile | None" = None,
        answer_key: str = "",
    ) -> None:
        self._descriptor = descriptor
        self.password = password
        self.answer = answer
        self.answer_key = answer_key

    def __del__(self) -> None:
        os.close(self._descriptor)

    def open(self, mode: str = "rb") -> BinaryIO:  # noqa: ARG002 (as a path has it)
        """A stream from the beginning, with its own position: several may be read at once."""
        return io.BufferedReader(_Bytes(self), _BUFFER)

    def stat(self) -> os.stat_result:
        """The file's status."""
        return os.fstat(self._descriptor)

    def fileno(self) -> int:
        """The descriptor, still owned by this object."""
        return self._descriptor


class _Bytes(io.RawIOBase):
    """Reads a descriptor without moving its shared position."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        size = os.preadv(self._source.fileno(), [buffer], self._at)
        self._at += size
        return size

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._source.stat().st_size}[whence]
        if base + offset < 0:
            raise OSError("negative seek position")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def fileno(self) -> int:
        return self._source.fileno()


Readable = Path | SourceFile
"""A parser's input: a path, or an open file."""


def password_of(path: Readable) -> str | None:
    """The password of a protected document; None if there is none."""
    return path.password if isinstance(path, SourceFile) else None


def answer_of(path: Readable) -> "SourceFile | None":
    """What a paid service said about a document; None if it was not asked."""
    return path.answer if isinstance(path, SourceFile) else None


def answer_key_of(path: Readable) -> str:
    """The name of that answer; empty without one."""
    return path.answer_key if isinstance(path, SourceFile) else ""
