"""The bytes of documents, each kept once under the SHA-256 of what it holds.

A blob appears whole or not at all: it is written beside its place, made durable, and moved there by a rename.
Two writers of the same bytes put the same file in the same place. A blob says nothing about who uses it; the
database does, and the sweep deletes what no row names. An upload that was begun and never named by a row is
found by its age.
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
# Where a store says to which installation it belongs.
IDENTITY = "installation-id"


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes that are kept: their SHA-256 in hex and their number."""

    digest: str
    size: int


class Blobs(Protocol):
    """Where bytes are kept, by content."""

    def put(self, source: bytes | BinaryIO, limit: int | None = None) -> Blob:
        """The bytes are kept for good; the same bytes again change nothing but their age.

        Raises BadRequestError `too_large` beyond `limit` bytes and StoreUnavailableError when they cannot be
        kept; either leaves nothing behind.
        """

    def draft(self) -> BinaryIO:
        """A file to write bytes into; `put` keeps it without writing them once more."""

    def open(self, digest: str) -> BinaryIO:
        """The bytes as a stream for reading; WorkError `blob_missing` when they are not there."""

    def path(self, digest: str) -> Path:
        """A local file that holds the bytes, not to be written to; WorkError `blob_missing` without one."""

    def exists(self, digest: str) -> bool:
        """True when the bytes are kept."""

    def delete(self, digest: str, *, age: float = 0.0) -> bool:
        """The bytes are gone if they were last put at least `age` seconds ago; True if they went."""

    def older(self, age: float, after: str = "") -> Iterator[Blob]:
        """What was last put at least `age` seconds ago, by digest, of those after the digest `after`."""

    def discard_partial(self, age: float) -> int:
        """What writers that died left half written, at least `age` seconds ago, is gone; how many files."""

    def identity(self) -> str | None:
        """The id that this store carries; None when nobody has given it one."""

    def identify(self, name: str) -> None:
        """This store carries the id `name` from now on. Raises OSError or StoreUnavailableError."""

    def close(self) -> None:
        """Whatever connections this process has are closed."""


class LocalBlobs:
    """Blobs in a folder of this machine, in 256 folders by the first byte of the digest.

    Deleting looks at the age again under a lock that putting takes too, so that a blob put again in that
    moment stays. The lock is advisory and per folder: all who write must be on machines that share it. The
    folder is made when the first bytes come: who only reads leaves nothing behind.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._partial = folder / "partial"
        self._lasting: set[Path] = set()  # folders whose own entry is known to be on the disk

    def put(self, source: bytes | BinaryIO, limit: int | None = None) -> Blob:
        """See `Blobs.put`. What the source itself raises is passed on."""
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
        """The folder is there, for its owner alone."""
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
        place = self._place(digest)
        if not place.exists():
            raise WorkError(f"the bytes of document content {digest} are missing", code="blob_missing")
        return place

    def exists(self, digest: str) -> bool:
        """See `Blobs.exists`."""
        return self._place(digest).exists()

    def delete(self, digest: str, *, age: float = 0.0) -> bool:
        """See `Blobs.delete`."""
        place = self._place(digest)
        with contextlib.suppress(FileNotFoundError), self._locked():
            if time.time() - place.stat().st_mtime >= age:
                place.unlink()
                return True
        return False

    def older(self, age: float, after: str = "") -> Iterator[Blob]:
        """See `Blobs.older`."""
        before = time.time() - age
        for shard in sorted(self._folder.glob("[0-9a-f][0-9a-f]")):
            if shard.name < after[:2]:
                continue
            for place in sorted(shard.iterdir()):
                if place.name <= after:
                    continue
                try:
                    about = place.stat()
                except FileNotFoundError:  # deleted meanwhile
                    continue
                if about.st_mtime <= before and _DIGEST.fullmatch(place.name):
                    yield Blob(place.name, about.st_size)

    def shrink(self, most: int, *, age: float) -> int:
        """At most `most` bytes are left, the latest; but nothing younger than `age` goes. How many went."""
        kept: list[tuple[float, int, Path]] = []
        for place in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            with contextlib.suppress(FileNotFoundError):
                about = place.stat()
                kept.append((about.st_mtime, about.st_size, place))
        over, gone = sum(size for _, size, _ in kept) - most, 0
        for _, size, place in sorted(kept):
            if over <= 0:
                break
            if self.delete(place.name, age=age):
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
        for place in self._partial.glob("*"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - place.stat().st_mtime >= age:
                    place.unlink()
                    gone += 1
        return gone

    def _settle(self, written: Path, digest: str) -> None:
        """The file is in its place, and stays there through a loss of power."""
        place = self._place(digest)
        shard = place.parent
        with contextlib.suppress(FileExistsError):
            shard.mkdir()
            self._lasting.discard(shard)
        with self._locked():
            if place.exists():
                os.utime(place)
            else:
                written.rename(place)
        _flush(shard)
        if shard not in self._lasting:
            _flush(self._folder)
            self._lasting.add(shard)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._folder / "lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _place(self, digest: str) -> Path:
        return self._folder.joinpath(digest_checked(digest)[:2], digest)


def _flush(folder: Path) -> None:
    """What is in the folder is on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest_checked(text: str) -> str:
    """The text, if it is a digest; otherwise BadRequestError."""
    if not _DIGEST.fullmatch(text):
        raise BadRequestError("a digest is 64 hexadecimal digits in lower case", code="bad_digest")
    return text


def _check(size: int, limit: int | None) -> None:
    if limit is not None and size > limit:
        raise BadRequestError(f"the document is larger than the limit of {limit:,} bytes", code="too_large")


def _copied(source: bytes | BinaryIO, file: io.FileIO, limit: int | None) -> Blob:
    """The source is in the file and on the disk."""
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
