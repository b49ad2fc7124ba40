"""An upload on its way to the blob store: written once, to its final file system, and hashed while written.

Small uploads stay in memory. Larger ones are in a file of the store's folder for partial files, which
`Blobs.put` moves into place. Closing deletes the file unless it was moved; the file of a process that died is
found by its age.
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
    """Translates errors of the disk."""
    try:
        yield
    except OSError as error:
        reason = "the disk is full" if error.errno in _FULL else str(error)
        raise StoreUnavailableError(
            f"the document could not be stored: {reason}; free some space or fix the folder, then try again",
            code="blobs_unavailable",
        ) from error


class BlobWriter(tempfile.SpooledTemporaryFile[bytes]):
    """A file to be written once, from beginning to end, and then read any number of times.

    It is a SpooledTemporaryFile because the form parser, where most uploads come from, needs one.
    """

    _rolled: bool

    def __init__(self, folder: Path, in_memory: int = IN_MEMORY) -> None:
        super().__init__(max_size=in_memory)
        self.folder = folder
        self.size = 0
        self.path: Path | None = None
        self._hasher = hashlib.sha256()
        self._in_order = True

    def write(self, data: Any) -> int:
        """Append the bytes and add them to the digest."""
        self._in_order = self._in_order and self.tell() == self.size
        self._hasher.update(data)
        self.size += len(data)
        with disk():
            return super().write(data)

    def rollover(self) -> None:
        """Move the contents from memory to a file."""
        if self._rolled:
            return
        so_far, position = self._file, self._file.tell()
        descriptor, name = tempfile.mkstemp(dir=self.folder)
        self.path = Path(name)
        file = os.fdopen(descriptor, "w+b")
        so_far.seek(0)
        shutil.copyfileobj(so_far, file)
        file.seek(position)
        self._file = file
        self._rolled = True

    def digest(self) -> str | None:
        """The SHA-256 of the contents, in hex; None if they were not written in order."""
        return self._hasher.hexdigest() if self._in_order else None

    def settle(self) -> tuple[Path, str] | None:
        """The file, flushed to disk, and its digest; None if there is no file: copy the bytes."""
        digest = self.digest()
        if self.path is None or digest is None:
            return None
        with disk():
            self.flush()
            os.fsync(self.fileno())
        return self.path, digest

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the file, unless it was moved."""
        super().close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)
