"""Bytes on their way to the shelf: written once, where they will be kept, and known by their digest when all
have come.

Small ones stay in memory. Larger ones are in a file of the shelf's folder for what is not whole yet, which
`Blobs.put` moves into its place. The file goes with the draft, unless it was moved; that of a process which
died is found by its age, like any other that was begun and never ended.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.core.errors import StoreUnavailableError

IN_MEMORY = 1024 * 1024
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextlib.contextmanager
def disk() -> Iterator[None]:
    """What the disk refuses is told as such."""
    try:
        yield
    except OSError as error:
        told = "the disk is full" if error.errno in _FULL else str(error)
        raise StoreUnavailableError(
            f"the document could not be kept: {told}; make room or mend the folder, then ask again",
            code="blobs_unavailable",
        ) from error


class BlobWriter(tempfile.SpooledTemporaryFile[bytes]):
    """A file to write into from its beginning to its end, and to read as often as one likes after.

    It is of the sort that forms are parsed into, for that is where most come from.
    """

    _rolled: bool

    def __init__(self, folder: Path, in_memory: int = IN_MEMORY) -> None:
        super().__init__(max_size=in_memory)
        self.folder = folder
        self.size = 0
        self.place: Path | None = None
        self._hasher = hashlib.sha256()
        self._in_order = True

    def write(self, data: Any) -> int:
        """The bytes are at the end; they count in the digest."""
        self._in_order = self._in_order and self.tell() == self.size
        self._hasher.update(data)
        self.size += len(data)
        with disk():
            return super().write(data)

    def rollover(self) -> None:
        """What came so far, and all that comes, is in a file."""
        if self._rolled:
            return
        so_far, place = self._file, self._file.tell()
        descriptor, name = tempfile.mkstemp(dir=self.folder)
        self.place = Path(name)
        file = os.fdopen(descriptor, "w+b")
        so_far.seek(0)
        shutil.copyfileobj(so_far, file)
        file.seek(place)
        self._file = file
        self._rolled = True

    def digest(self) -> str | None:
        """The SHA-256 of what was written, in hex; None if it was not written from beginning to end."""
        return self._hasher.hexdigest() if self._in_order else None

    def settle(self) -> tuple[Path, str] | None:
        """The file and the digest of its bytes, which outlast a loss of power; None when there is no such
        file, and the bytes have to be copied.
        """
        digest = self.digest()
        if self.place is None or digest is None:
            return None
        with disk():
            self.flush()
            os.fsync(self.fileno())
        return self.place, digest

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is left of it but what was moved away."""
        super().close()
        if self.place is not None:
            self.place.unlink(missing_ok=True)
