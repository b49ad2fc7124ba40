"""A folder of the server: each file is one document, known by its path below the folder.

Only folders that the operator has named, and those below them, can be sources: a person who may add one must
not read the rest of the server. Links are never followed, to files or to folders, because a person who
can write into the folder could make one that leads out of it. Every part of a path is opened below the one
before it, so that a folder which becomes a link between the list and the fetch leads nowhere either.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from holdfast.documents.sources.options import SourceOptions
from holdfast.documents.sources.patterns import PathFilter
from holdfast.documents.sources.source import FetchedItem, Listing, SourceError, SourceItem, SourceLimits

# A file is opened without waiting: a pipe would wait for somebody to write.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


class Folder:
    """See `Source`. `root` is an allowed folder without links in its path, `below` the way from there."""

    def __init__(self, root: Path, below: PurePosixPath, paths: PathFilter, limits: SourceLimits) -> None:
        self._root = root
        self._below = below
        self._paths = paths
        self._limits = limits

    def list(self, state: str) -> Listing:  # noqa: ARG002 (a folder has none)
        """See `Source.list`. Hidden files and folders are left out."""
        os.close(self._opened(PurePosixPath()))
        return Listing(self._items())

    def _items(self) -> Iterator[SourceItem]:
        top, count = self._opened(PurePosixPath()), 0
        try:
            for folder, names, files, descriptor in os.fwalk(".", dir_fd=top, onerror=_unreadable):
                names[:] = sorted(name for name in names if not name.startswith("."))
                for name in sorted(files):
                    path = str(PurePosixPath(folder) / name)
                    version = None if name.startswith(".") else _version(name, descriptor)
                    if version is None or not self._paths.accepts(path):
                        continue
                    count += 1
                    if count > self._limits.items:
                        raise SourceError(
                            "too_many_items",
                            f"the folder has more than {self._limits.items:,} files; choose some with include"
                            " or exclude, or add a source for each of its folders",
                        )
                    yield SourceItem(path, version, path)
        finally:
            os.close(top)

    def fetch(self, item: SourceItem, version: str) -> FetchedItem | None:
        """See `Source.fetch`."""
        path = PurePosixPath(item.external_id)
        folder = self._opened(path.parent)
        try:
            descriptor = os.open(path.name, _FILE, dir_fd=folder)
        except OSError as error:
            raise _error(error, str(path)) from error
        finally:
            os.close(folder)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or _of(status) == version:
            os.close(descriptor)
            if stat.S_ISREG(status.st_mode):
                return None
            raise SourceError("access_denied", f"{path} is not a file any more")
        if status.st_size > self._limits.bytes:
            os.close(descriptor)
            raise SourceError(
                "bad_source",
                f"{path} has {status.st_size:,} bytes, more than the limit of {self._limits.bytes:,}",
            )
        return FetchedItem(cast("BinaryIO", os.fdopen(descriptor, "rb")), _of(status), item.name)

    def _opened(self, inside: PurePosixPath) -> int:
        """A descriptor of the folder at this way below the source's; no part of the way is a link."""
        way = [part for part in (self._below / inside).parts if part != "."]
        try:
            descriptor = os.open(self._root, _FOLDER)
            for part in way:
                above = descriptor
                try:
                    descriptor = os.open(part, _FOLDER, dir_fd=above)
                finally:
                    os.close(above)
        except OSError as error:
            raise _error(error, str(self._root.joinpath(*way))) from error
        return descriptor


def from_options(options: SourceOptions, limits: SourceLimits) -> Folder:
    """The options: `path`, a folder in or below one that the operator allows; `include` and `exclude`."""
    path = Path(options.text("path"))
    paths = PathFilter(options.patterns("include"), options.patterns("exclude"))
    options.check_unknown()
    if not limits.folders:
        raise SourceError(
            "access_denied",
            "folders of the server cannot be sources; an operator allows some with HOLDFAST_SOURCE_FOLDERS",
        )
    if not path.is_absolute() or ".." in path.parts:
        raise options.error("path", "should be an absolute path without ..")
    for allowed in limits.folders:
        for root in {Path(allowed), Path(os.path.realpath(allowed))}:
            if path == root or root in path.parents:
                below = PurePosixPath(path.relative_to(root).as_posix())
                return Folder(Path(os.path.realpath(allowed)), below, paths, limits)
    raise SourceError("access_denied", f"{path} is not in a folder that HOLDFAST_SOURCE_FOLDERS names")


def _version(name: str, folder: int) -> str | None:
    """What tells the versions of a file apart; None for what is no file, or is gone."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _error(error, name) from error
    return _of(status) if stat.S_ISREG(status.st_mode) else None


def _of(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns}-{status.st_size}"


def _unreadable(error: OSError) -> None:
    """A folder that cannot be listed ends the look: its files are not gone."""
    raise _error(error, os.fsdecode(error.filename or "a folder"))


def _error(error: OSError, path: str) -> SourceError:
    if isinstance(error, FileNotFoundError):
        return SourceError("unreachable", f"{path!r} does not exist")
    return SourceError("access_denied", f"{path!r} cannot be read: {error.strerror or error}")
