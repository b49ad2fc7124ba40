"""The files of a Git repository, from a pack that its server sent: read in the child, because it is foreign.

dulwich resolves the deltas; nothing is written, no hook or filter runs, and names of files are only names.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.core.errors import WorkError
from holdfast.core.text import is_plain
from holdfast.documents.parse.source import SourceFile
from holdfast.documents.sources.patterns import MOST_PATH, PathFilter

MOST_DEPTH = 100
# Folders that are visited: equal ones are stored once, so that a small pack can describe endlessly many.
MOST_FOLDERS = 200_000
MOST_TAGS = 10
_COMMIT, _TREE, _BLOB, _TAG = 1, 2, 3, 4
_FOLDER, _FILES = 0o040000, frozenset({0o100644, 0o100755, 0o100664})
_ID = 20


@dataclass(frozen=True, slots=True)
class RepositoryFiles:
    """Paths and blob ids, by path; `is_cut` if there are more than were asked for."""

    files: list[tuple[str, str]]
    is_cut: bool


class RepositoryPack:
    """The objects of one pack."""

    def __init__(self, source: SourceFile) -> None:
        from dulwich.object_format import SHA1  # noqa: PLC0415 (an extra, in the child alone)
        from dulwich.objects import parse_tree  # noqa: PLC0415
        from dulwich.pack import MemoryPackIndex, Pack, PackData  # noqa: PLC0415

        data = PackData.from_file(source.open(), SHA1, source.stat().st_size)
        self._pack: Any = Pack.from_objects(data, MemoryPackIndex.for_pack(data))
        self._parse_tree = parse_tree

    def files(self, head: str, paths: PathFilter, most: int) -> RepositoryFiles:
        """The files of a commit or tag that the filter accepts; `broken_file` if objects are missing."""
        files: list[tuple[str, str]] = []
        for path, blob in self._walk(self._tree_of(head)):
            if not paths.accepts(path):
                continue
            if len(files) >= most:
                return RepositoryFiles(files, is_cut=True)
            files.append((path, blob))
        return RepositoryFiles(files, is_cut=False)

    def blob(self, name: str, most: int) -> bytes:
        """The content of a file; `too_large` beyond so many bytes."""
        data = self._object(bytes.fromhex(name), _BLOB)
        if len(data) > most:
            raise WorkError(
                f"the file has {len(data):,} bytes; the limit is {most:,} bytes", code="too_large"
            )
        return data

    def _tree_of(self, head: str) -> bytes:
        name = bytes.fromhex(head)
        for _ in range(MOST_TAGS):
            kind, data = self._raw(name)
            if kind not in {_COMMIT, _TAG}:
                break
            word, _, value = data[:64].partition(b"\n")[0].partition(b" ")
            if word not in {b"tree", b"object"}:
                break
            name = bytes.fromhex(value.decode("ascii"))
            if kind == _COMMIT:
                return name
        raise WorkError("the branch is not a commit", code="broken_file")

    def _walk(self, root: bytes) -> Iterator[tuple[str, str]]:
        """All regular files, by path. Links, submodules and names that are no file names are left out."""
        folders = 0
        waiting = [("", root)]
        while waiting:
            above, name = waiting.pop()
            folders += 1
            if folders > MOST_FOLDERS or above.count("/") > MOST_DEPTH:
                raise WorkError("the repository has too many folders, or too deep ones", code="broken_file")
            below = []
            for entry, mode, child in self._parse_tree(self._object(name, _TREE), _ID):
                path = _joined(above, entry)
                if path is None:
                    continue
                if mode == _FOLDER:
                    below.append((path + "/", bytes.fromhex(child.decode("ascii"))))
                elif mode in _FILES:
                    yield path, child.decode("ascii")
            waiting.extend(reversed(below))

    def _object(self, name: bytes, expected: int) -> bytes:
        kind, data = self._raw(name)
        if kind != expected:
            raise WorkError("an object of the repository is of another kind", code="broken_file")
        return data

    def _raw(self, name: bytes) -> tuple[int, bytes]:
        try:
            kind, data = self._pack.get_raw(name)
        except KeyError as error:
            raise WorkError("an object of the repository is missing", code="broken_file") from error
        return int(kind), bytes(data)


def _joined(above: str, entry: bytes) -> str | None:
    """The path of an entry; None for a name that leads elsewhere, or that Git keeps to itself."""
    name = entry.decode("utf-8", "replace")
    is_special = name in {"", ".", ".."} or name.lower() in {".git", "git~1"}
    if is_special or "/" in name or "\\" in name or not name.isprintable() or not is_plain(name):
        return None
    path = above + name
    return path if len(path) <= MOST_PATH else None


class OpenRepository:
    """The pack of the last request stays open for the next one."""

    def __init__(self) -> None:
        self._recent: tuple[tuple[int, ...], RepositoryPack] | None = None

    def pack(self, source: SourceFile) -> RepositoryPack:
        """The pack in this file, indexed."""
        about = source.stat()
        key = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
        if self._recent is None or self._recent[0] != key:
            self._recent = None  # its memory is needed
            self._recent = (key, RepositoryPack(source))
        return self._recent[1]
