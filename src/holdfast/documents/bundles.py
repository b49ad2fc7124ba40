"""A bundle: a collection as one file, for backup or transfer. It is a ZIP of format 1:

    manifest.json                 format, release, the collection, counts, models of the vectors
    parts/00001/documents.jsonl   a line for each document
    parts/00001/chunks.jsonl      a line for each chunk, in the order of the documents
    parts/00001/vectors.bin       the vectors of chunks that have one, little-endian float32, concatenated
    parts/00001/content.bin       for each document its bytes and its thumbnail's, each after its length
    parts/00001/edits.jsonl       a line for each edit of a chunk; only in parts that have some

A part is read sequentially and needs no other, so that parts are imported one by one, and memory is bounded
by a line. Nothing in a bundle is used as a path: members have exactly these names.
"""

import contextlib
import json
import re
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Self

from holdfast.core.errors import BadRequestError
from holdfast.documents import zip_directory

FORMAT = 1
MOST_LINE = 4 * 1024 * 1024
MOST_MANIFEST = 1024 * 1024
MOST_PARTS = 20_000
MOST_MEMBERS = 5 * MOST_PARTS + 1
MOST_DIRECTORY = 16 * 1024 * 1024
MOST_VECTOR = 4 * 65_536
# As for documents that are archives: real text stays far below this ratio.
MOST_EXPANSION = 200
SMALL = 16 * 1024 * 1024
STEP = 1024 * 1024
PIECES = ("documents.jsonl", "chunks.jsonl", "vectors.bin", "content.bin")
EDITS = "edits.jsonl"
_MEMBER = re.compile(r"parts/\d{5}/(?:(?:documents|chunks|edits)\.jsonl|(?:vectors|content)\.bin)")
_LENGTH = struct.Struct("<Q")
_WHEN = (1980, 1, 1, 0, 0, 0)


def bad(why: str) -> BadRequestError:
    """The error for a file that is not a bundle, or damaged."""
    return BadRequestError(f"the file is not a readable bundle ({why}); export it again", code="bad_bundle")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A bundle's description of itself."""

    release: str
    collection: str
    title: str
    options: Mapping[str, Any]
    parts: int
    documents: int
    chunks: int
    vectors: int
    models: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The manifest in its written form."""
        return {
            "format": FORMAT,
            "holdfast": self.release,
            "collection": {"id": self.collection, "title": self.title, "options": dict(self.options)},
            "parts": self.parts,
            "documents": self.documents,
            "chunks": self.chunks,
            "vectors": self.vectors,
            "models": [{"provider": provider, "model": model} for provider, model in self.models],
        }


def _manifest(raw: bytes) -> Manifest:
    fields = _object(raw, "its manifest")
    if type(fields.get("format")) is not int:
        raise bad("its manifest names no format")
    if fields["format"] > FORMAT:
        message = (
            f"the bundle has format {fields['format']}, this release reads {FORMAT}; upgrade to import it"
        )
        raise BadRequestError(message, code="newer_bundle")
    about = fields.get("collection")
    numbers: dict[str, Any] = {each: fields.get(each) for each in ("parts", "documents", "chunks", "vectors")}
    fits = all(type(each) is int and each >= 0 for each in numbers.values())
    if fields["format"] < 1 or not fits or not isinstance(about, dict):
        raise bad("its manifest is malformed")
    name, title, options = (about.get(each) for each in ("id", "title", "options"))
    if not isinstance(name, str) or not isinstance(title, str) or not isinstance(options, dict):
        raise bad("its manifest is malformed")
    models = fields.get("models", [])
    known = tuple(
        (str(each.get("provider", "")), str(each.get("model", "")))
        for each in models
        if isinstance(each, dict)
    )
    return Manifest(str(fields.get("holdfast", "")), name, title, options, **numbers, models=known)


def _object(raw: bytes, what: str) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise bad(f"{what} is not JSON") from error
    if not isinstance(value, dict):
        raise bad(f"{what} is not an object")
    return value


class Writer:
    """Writes a bundle into an open file, one part at a time, each part's content last."""

    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", allowZip64=True)
        self.parts = 0

    def part(
        self, documents: BinaryIO, chunks: BinaryIO, vectors: BinaryIO, edits: BinaryIO | None = None
    ) -> int:
        """Add a part with these pieces, read from their beginnings; returns its number."""
        self.parts += 1
        pieces = dict(zip(PIECES, (documents, chunks, vectors), strict=False))
        if edits is not None and edits.tell():
            pieces[EDITS] = edits
        for name, piece in pieces.items():
            piece.seek(0)
            with self._open(self.parts, name) as target:
                while some := piece.read(STEP):
                    target.write(some)
        return self.parts

    @contextlib.contextmanager
    def content(self, part: int) -> Iterator["Content"]:
        """The content of a part, to be written in the order of its documents."""
        with self._open(part, "content.bin") as target:
            yield Content(target)

    def end(self, manifest: Manifest) -> None:
        """Write the manifest; the bundle is complete once closed."""
        with self._member("manifest.json", zipfile.ZIP_DEFLATED) as target:
            target.write(json.dumps(manifest.as_json(), ensure_ascii=False).encode())

    def close(self) -> None:
        """Stop writing; without its manifest the file is not a bundle."""
        self._zip.close()

    def _open(self, part: int, name: str) -> IO[bytes]:
        packed = zipfile.ZIP_DEFLATED if name.endswith("l") else zipfile.ZIP_STORED
        return self._member(f"parts/{part:05d}/{name}", packed)

    def _member(self, name: str, packed: int) -> IO[bytes]:
        about = zipfile.ZipInfo(name, _WHEN)
        about.compress_type = packed
        return self._zip.open(about, "w", force_zip64=True)


class Content:
    """Writes the bytes of one part's documents."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target

    def put(self, source: Path | None) -> int:
        """Write the file's length and bytes; nothing for None. Returns the number of bytes."""
        size = 0 if source is None else source.stat().st_size
        self._target.write(_LENGTH.pack(size))
        if source is not None:
            with source.open("rb") as file:
                left = size
                while left and (some := file.read(min(STEP, left))):
                    self._target.write(some)
                    left -= len(some)
        return size


def line(value: Mapping[str, Any]) -> bytes:
    """A line of a part."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def scratch() -> BinaryIO:
    """A temporary file for a piece of a part: in memory while small, gone after a crash."""
    return tempfile.SpooledTemporaryFile(max_size=8 * STEP)  # type: ignore[return-value]


@dataclass(slots=True)
class BundlePart:
    """A part, read sequentially."""

    _members: Mapping[str, IO[bytes]]

    def documents(self) -> Iterator[dict[str, Any]]:
        """Its documents. Read the chunks and the content of each before the next."""
        return self._lines("documents.jsonl")

    def chunks(self) -> Iterator[dict[str, Any]]:
        """Its chunks, document by document."""
        return self._lines("chunks.jsonl")

    def edits(self) -> Iterator[dict[str, Any]]:
        """Its edits, document by document."""
        return self._lines(EDITS) if EDITS in self._members else iter(())

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        with _readable():
            while raw := self._members[name].readline(MOST_LINE + 1):
                if len(raw) > MOST_LINE:
                    raise bad(f"a line of {name} is too long")
                yield _object(raw, f"a line of {name}")

    def vector(self, size: object) -> bytes:
        """The next vector, of this many bytes; empty for none."""
        if type(size) is not int or not 0 <= size <= MOST_VECTOR or size % 4:
            raise bad("a vector has the wrong size")
        with _readable():
            vector_bytes = self._members["vectors.bin"].read(size)
        if len(vector_bytes) != size:
            raise bad("a vector is truncated")
        return vector_bytes

    def content(self) -> "Bytes | None":
        """The next document's or thumbnail's bytes; None if the bundle lacks them."""
        member = self._members["content.bin"]
        with _readable():
            head = member.read(_LENGTH.size)
        if len(head) != _LENGTH.size:
            raise bad("its content is truncated")
        size = int(_LENGTH.unpack(head)[0])
        return Bytes(member, size) if size else None

    def is_over(self) -> bool:
        """True if its vectors and content have been read completely."""
        with _readable():
            return not any(self._members[name].read(1) for name in ("vectors.bin", "content.bin"))

    def close(self) -> None:
        """Close its members."""
        for member in self._members.values():
            member.close()


class Bytes:
    """A range of bytes of a bundle, to be read once and completely."""

    def __init__(self, member: IO[bytes], size: int) -> None:
        self._member = member
        self._left = size
        self.size = size

    def read(self, most: int = -1) -> bytes:
        """More bytes; empty at the end."""
        size = self._left if most < 0 else min(most, self._left)
        if not size:
            return b""
        with _readable():
            chunk = self._member.read(size)
        if not chunk:
            raise bad("its content is truncated")
        self._left -= len(chunk)
        return chunk

    def skip(self) -> None:
        """Skip the unread rest."""
        while self.read(STEP):
            pass


class Bundle:
    """A bundle open for reading."""

    def __init__(self, archive: zipfile.ZipFile, manifest: Manifest) -> None:
        self._zip = archive
        self.manifest = manifest

    def part(self, number: int) -> BundlePart:
        """Open a part from its beginning."""
        folder, known = f"parts/{number:05d}", self._zip.NameToInfo
        names = [*PIECES, *([EDITS] if f"{folder}/{EDITS}" in known else [])]
        with _readable():
            return BundlePart({name: self._zip.open(f"{folder}/{name}") for name in names})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()


def opened(source: Path | BinaryIO, most: int) -> Bundle:
    """Open a bundle that expands to at most `most` bytes; BadRequestError for any other file.

    Only its directory and manifest are read here; members are validated when they are read.
    """
    with _readable():
        _check_directory(source)
        archive = zipfile.ZipFile(source)
        try:
            members = archive.infolist()
            _check(members, most)
            with archive.open("manifest.json") as file:
                manifest = _manifest(file.read(MOST_MANIFEST))
            expected = {
                f"parts/{n + 1:05d}/{name}" for n in range(min(manifest.parts, MOST_PARTS)) for name in PIECES
            }
            optional = {f"parts/{n + 1:05d}/{EDITS}" for n in range(min(manifest.parts, MOST_PARTS))}
            if {each.filename for each in members} - optional != {"manifest.json", *expected}:
                raise bad("its parts do not match its manifest")
        except (BadRequestError, KeyError, zipfile.BadZipFile):
            archive.close()
            raise
    return Bundle(archive, manifest)


def _check_directory(source: Path | BinaryIO) -> None:
    """Raise BadRequestError if the archive's directory is too large to load."""
    with source.open("rb") if isinstance(source, Path) else contextlib.nullcontext(source) as file:
        directory = zip_directory.measure(file, MOST_DIRECTORY)
    if directory.members > MOST_MEMBERS or directory.size > MOST_DIRECTORY:
        raise bad("it has too many members")


def _check(members: list[zipfile.ZipInfo], most: int) -> None:
    names = [each.filename for each in members]
    if len(set(names)) != len(names):
        raise bad("it has a duplicate member")
    if not all(name == "manifest.json" or _MEMBER.fullmatch(name) for name in names):
        raise bad("it has unexpected members")
    if any(each.flag_bits & 1 for each in members):
        raise bad("it is encrypted")
    expanded = sum(each.file_size for each in members)
    packed = sum(each.compress_size for each in members)
    if expanded > most or (expanded > SMALL and expanded > MOST_EXPANSION * max(1, packed)):
        message = f"the bundle would expand to {expanded:,} bytes, too many; raise HOLDFAST_MOST_IMPORT"
        raise BadRequestError(message, code="too_large")


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Translates the library's errors about an archive."""
    try:
        yield
    except (
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        NotImplementedError,
        EOFError,
        KeyError,
        ValueError,
    ) as error:
        raise bad(str(error)[:200] or type(error).__name__) from error
    except (zlib.error, OSError, struct.error) as error:
        raise bad(str(error)[:200]) from error
