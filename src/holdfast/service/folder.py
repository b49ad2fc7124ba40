"""A folder taken in as it is: what is new, changed or unchanged is found out in bulk, not file by file.

A file is known by its name below the folder that was given. Its bytes are read once, to be hashed; only what
is new or changed is read again and kept. Unchanged files cost one look at the database for five hundred.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.core.errors import BadRequestError, HoldfastError
from holdfast.service.library import Library, Taking, Upload, Wish
from holdfast.store import documents
from holdfast.store.database import Database
from holdfast.store.documents import Collection, Document

STEP = 500
READERS = 4


@dataclass(frozen=True, slots=True)
class File:
    """A file that was found: its name below the folder, and where it is."""

    name: str
    path: Path


@dataclass(slots=True)
class Intake:
    """What became of the files."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    same_bytes: int = 0
    running: int = 0
    removed: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    documents: list[str] = field(default_factory=list)
    run_ids: list[str] = field(default_factory=list)

    def note(self, taking: Taking) -> None:
        """Remember what to wait for."""
        if taking.answer.created and taking.answer.run_id:
            self.run_ids.append(taking.answer.run_id)
        self.documents.append(taking.document.id)


def files(paths: Sequence[Path]) -> Iterator[File]:
    """The files at these paths, folders walked in order; hidden ones are left alone.

    Raises BadRequestError for a path that does not exist.
    """
    for path in paths:
        if path.is_file():
            yield File(path.name, path)
        elif path.is_dir():
            for folder, below, names in os.walk(path):
                below[:] = sorted(name for name in below if not name.startswith("."))
                for name in sorted(names):
                    found = Path(folder) / name
                    if not name.startswith(".") and found.is_file():
                        yield File(found.relative_to(path).as_posix(), found)
        else:
            raise BadRequestError(f"there is no file or folder {path}", code="no_such_path")


def take_in(
    db: Database,
    library: Library,
    wish: Wish,
    collection_id: str,
    found: Iterable[File],
    *,
    prune: bool = False,
) -> Intake:
    """Every file has its document, and what is new or changed has been asked for.

    With `prune`, documents that came from a file which is not among these any more are deleted.
    """
    collection = library.collection(wish.tenant, collection_id)
    intake = Intake()
    seen: set[str] = set()
    some: list[File] = []
    for file in found:
        seen.add(file.name)
        some.append(file)
        if len(some) >= STEP:
            _take(db, library, wish, collection, some, intake)
            some = []
    if some:
        _take(db, library, wish, collection, some, intake)
    if prune:
        for each in library.walk(wish.tenant, collection_id):
            if each.source == "upload" and each.name not in seen:
                library.delete(wish, each.id)
                intake.removed += 1
    return intake


def _take(
    db: Database, library: Library, wish: Wish, collection: Collection, some: list[File], intake: Intake
) -> None:
    with ThreadPoolExecutor(READERS) as pool:
        digests = list(pool.map(_digest, some))
    names = documents.by_names(db, wish.tenant, collection.id, [file.name for file in some])
    bytes_of = documents.by_digests(
        db, wish.tenant, collection.id, [digest for digest in digests if digest is not None]
    )
    fresh: list[File] = []
    for file, digest in zip(some, digests, strict=True):
        if digest is None:
            intake.refused[file.name] = "it cannot be read"
            continue
        known = names.get(file.name)
        same = bytes_of.get(digest)
        if known is not None and known.digest == digest:
            _ask_again(library, wish, collection, known, intake)
        elif same is not None:
            intake.same_bytes += 1
            _ask_again(library, wish, collection, same, intake, count=False)
        elif known is not None:
            _change(library, wish, known, file, intake)
        else:
            fresh.append(file)
    _add(library, wish, collection, fresh, intake)


def _digest(file: File) -> str | None:
    try:
        with file.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def _ask_again(
    library: Library,
    wish: Wish,
    collection: Collection,
    known: Document,
    intake: Intake,
    *,
    count: bool = True,
) -> None:
    """Ask for a document whose bytes are known, unless it is plain that nothing would happen."""
    if library.is_current(collection, known):
        intake.unchanged += count
        return
    taking = library.index(wish, known.id)
    intake.note(taking)
    if taking.answer.created:
        intake.changed += count
    else:
        intake.running += count


def _change(library: Library, wish: Wish, known: Document, file: File, intake: Intake) -> None:
    try:
        with file.path.open("rb") as stream:
            intake.note(library.put_content(wish, known.id, Upload(stream, file.name)))
    except (HoldfastError, OSError) as error:
        intake.refused[file.name] = str(error)
    else:
        intake.changed += 1


def _add(library: Library, wish: Wish, collection: Collection, fresh: Sequence[File], intake: Intake) -> None:
    drafts = []
    for file in fresh:
        try:
            with file.path.open("rb") as stream:
                drafts.append(library.keep(Upload(stream, file.name)))
        except (HoldfastError, OSError) as error:
            intake.refused[file.name] = str(error)
    for taking in library.add_kept(wish, collection.id, drafts):
        intake.note(taking)
        intake.new += taking.answer.created
