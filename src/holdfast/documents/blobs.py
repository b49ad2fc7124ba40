"""The blob store: the bytes of documents, each stored once under its SHA-256.

A blob appears complete or not at all: it is written to a temporary file, flushed to disk, and renamed. Two
writers of the same bytes produce the same file. Only the database knows who uses a blob, and the sweep
deletes those that no row names. An abandoned upload is found by its age.
"""

import contextlib
import fcntl
import hashlib
import io
import os
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from holdfast import faults
from holdfast.core.errors import BadRequestError, WorkError
from holdfast.documents.blob_writer import BlobWriter, disk

_DIGEST = re.compile(r"[0-9a-f]{64}")
_STEP = 1024 * 1024
# The file that says to which installation a store belongs.
IDENTITY = "installation-id"


@dataclass(frozen=True, slots=True)
class Blob:
    """A stored blob: its SHA-256 in hex and its size."""

    digest: str
    size: int


class Blobs(Protocol):
    """A content-addressed blob store."""

    def put(self, source: bytes | BinaryIO, limit: int | None = None) -> Blob:
        """Store the bytes durably; storing the same bytes again only renews their age.

        Raises BadRequestError `too_large` beyond `limit` bytes and StoreUnavailableError if they cannot be
        stored; either leaves nothing behind.
        """

    def draft(self) -> BinaryIO:
        """A file to write into; `put` then stores it without another copy."""

    def open(self, digest: str) -> BinaryIO:
        """The bytes as a readable stream; WorkError `blob_missing` if they do not exist."""

    def path(self, digest: str) -> Path:
        """A local, read-only file with the bytes; WorkError `blob_missing` if they do not exist."""

    def exists(self, digest: str) -> bool:
        """True if the bytes are stored."""

    def delete(self, digest: str, *, age: float = 0.0) -> bool:
        """Delete the bytes if they were last put at least `age` seconds ago; True if deleted."""

    def older(self, age: float, after: str = "") -> Iterator[Blob]:
        """Blobs last put at least `age` seconds ago, ordered by digest, after the digest `after`."""

    def discard_partial(self, age: float) -> int:
        """Delete partial files at least `age` seconds old; returns how many."""

    def identity(self) -> str | None:
        """The id of this store; None if it has none yet."""

    def identify(self, name: str) -> None:
        """Give this store the id `name`. Raises OSError or StoreUnavailableError."""

    def close(self) -> None:
        """Close this process's connections."""


class LocalBlobs:
    """Blobs in a local folder, in 256 subfolders by the first byte of the digest.

    Deleting checks the age again under a lock that `put` also takes, so that a blob put at that moment stays.
    The lock is advisory and per folder: all writers must be on machines that share it. The folder is created
    by the first write.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._partial = folder / "partial"
        self._lasting: set[Path] = set()  # folders whose own directory entry is flushed

    def put(self, source: bytes | BinaryIO, limit: int | None = None) -> Blob:
        """See `Blobs.put`. Errors of the source itself are passed on."""
        if isinstance(source, BlobWriter) and source.folder == self._partial and (draft := source.settle()):
            _check(source.size, limit)
            self._keep(*draft)
            return Blob(draft[1], source.size)
        with disk():
            self._make()
            descriptor, name = tempfile.mkstemp(dir=self._partial)
        try:
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                blob = _copied(source, file, limit)
            self._keep(Path(name), blob.digest)
        finally:
            Path(name).unlink(missing_ok=True)
        return blob

    def draft(self) -> BinaryIO:
        """See `Blobs.draft`."""
        with disk():
            self._make()
        return cast("BinaryIO", BlobWriter(self._partial))

    def _make(self) -> None:
        """Create the folder, private to its owner."""
        if not self._partial.is_dir():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._partial.mkdir(mode=0o700, exist_ok=True)

    def _keep(self, written: Path, digest: str) -> None:
        faults.point("keep.commit")
        with disk():
            self._settle(written, digest)
        faults.point("keep.committed")

    def open(self, digest: str) -> BinaryIO:
        """See `Blobs.open`."""
        return self.path(digest).open("rb")

    def path(self, digest: str) -> Path:
        """See `Blobs.path`."""
        path = self._path(digest)
        if not path.exists():
            raise WorkError(f"the bytes of document content {digest} are missing", code="blob_missing")
        return path

    def exists(self, digest: str) -> bool:
        """See `Blobs.exists`."""
        return self._path(digest).exists()

    def delete(self, digest: str, *, age: float = 0.0) -> bool:
        """See `Blobs.delete`."""
        path = self._path(digest)
        with contextlib.suppress(FileNotFoundError), self._locked():
            if time.time() - path.stat().st_mtime >= age:
                path.unlink()
                return True
        return False

    def older(self, age: float, after: str = "") -> Iterator[Blob]:
        """See `Blobs.older`."""
        before = time.time() - age
        for shard in sorted(self._folder.glob("[0-9a-f][0-9a-f]")):
            if shard.name < after[:2]:
                continue
            for path in sorted(shard.iterdir()):
                if path.name <= after:
                    continue
                try:
                    about = path.stat()
                except FileNotFoundError:  # deleted meanwhile
                    continue
                if about.st_mtime <= before and _DIGEST.fullmatch(path.name):
                    yield Blob(path.name, about.st_size)

    def shrink(self, most: int, *, age: float) -> int:
        """Delete the oldest blobs beyond `most` bytes, none younger than `age`; returns how many."""
        blobs: list[tuple[float, int, Path]] = []
        for path in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            with contextlib.suppress(FileNotFoundError):
                about = path.stat()
                blobs.append((about.st_mtime, about.st_size, path))
        over, gone = sum(size for _, size, _ in blobs) - most, 0
        for _, size, path in sorted(blobs):
            if over <= 0:
                break
            if self.delete(path.name, age=age):
                over -= size
                gone += 1
        return gone

    def identity(self) -> str | None:
        """See `Blobs.identity`."""
        try:
            return (self._folder / IDENTITY).read_text(encoding="ascii", errors="replace").strip() or None
        except (FileNotFoundError, NotADirectoryError):
            return None

    def identify(self, name: str) -> None:
        """See `Blobs.identify`."""
        self._make()
        descriptor, draft = tempfile.mkstemp(dir=self._partial)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{name}\n")
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(self._folder / IDENTITY)
        _flush(self._folder)

    def close(self) -> None:
        """See `Blobs.close`."""

    def discard_partial(self, age: float) -> int:
        """See `Blobs.discard_partial`."""
        gone = 0
        for path in self._partial.glob("*"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime >= age:
                    path.unlink()
                    gone += 1
        return gone

    def _settle(self, written: Path, digest: str) -> None:
        """Move the file into place, durably."""
        path = self._path(digest)
        shard = path.parent
        with contextlib.suppress(FileExistsError):
            shard.mkdir()
            self._lasting.discard(shard)
        with self._locked():
            if path.exists():
                os.utime(path)
            else:
                written.rename(path)
        _flush(shard)
        if shard not in self._lasting:
            _flush(self._folder)
            self._lasting.add(shard)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._folder / "lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _path(self, digest: str) -> Path:
        return self._folder.joinpath(digest_checked(digest)[:2], digest)


def _flush(folder: Path) -> None:
    """Flush the folder's entries to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest_checked(text: str) -> str:
    """The text, if it is a digest; BadRequestError otherwise."""
    if not _DIGEST.fullmatch(text):
        raise BadRequestError("a digest must be 64 lower-case hexadecimal digits", code="bad_digest")
    return text


def _check(size: int, limit: int | None) -> None:
    if limit is not None and size > limit:
        raise BadRequestError(f"the document is larger than the limit of {limit:,} bytes", code="too_large")


def _copied(source: bytes | BinaryIO, file: io.FileIO, limit: int | None) -> Blob:
    """Copy the source to the file and flush it to disk."""
    hasher = hashlib.sha256()
    size = 0
    for part in _parts(source):
        size += len(part)
        _check(size, limit)
        hasher.update(part)
        rest = memoryview(part)
        with disk():
            while rest:
                rest = rest[file.write(rest) :]
    with disk():
        os.fsync(file.fileno())
    return Blob(hasher.hexdigest(), size)


def _parts(source: bytes | BinaryIO) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    while part := source.read(_STEP):
        yield part
