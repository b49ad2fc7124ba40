"""Indexing a folder: new, changed and unchanged files are told apart in bulk, not file by file.

A file is identified by its bytes, then by its path below the folder. Its bytes are read once, to be hashed;
only new or changed files are read again and stored. Five hundred unchanged files cost one query. Within one
pass a document stands for one file: of two files with the same name in two folders, neither takes the other's
document.
"""

import fnmatch
import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from holdfast.core.errors import BadRequestError, HoldfastError
from holdfast.core.states import Disposition, Status
from holdfast.core.text import is_plain, plain
from holdfast.service.documents import Documents
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload, UploadResult
from holdfast.store.base.database import Database
from holdfast.store.library import collections, document_members, documents
from holdfast.store.library.collections import Collection
from holdfast.store.library.documents import Document, DocumentDraft
from holdfast.store.views import reads, run_summaries

STEP = 500
READERS = 4
AT_ONCE = 50
# What is wrong with the bytes themselves: the same bytes end the same way, until the reader of them changes.
FOR_GOOD = frozenset(
    {"archive_bomb", "broken_file", "encrypted", "machine_data", "no_text", "old_office", "too_large"}
    | {"unknown_format", "unsafe_archive", "wrong_password"}
)
LOCKED = frozenset({"encrypted", "wrong_password"})


@dataclass(frozen=True, slots=True)
class FolderFile:
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
    failed_before: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    documents: list[str] = field(default_factory=list)
    run_ids: list[str] = field(default_factory=list)
    claimed: set[str] = field(default_factory=set)

    def note(self, taking: UploadResult) -> None:
        """Remember what to wait for: a run made now, or one that is under way already."""
        answer = taking.answer
        under_way = answer.created or answer.disposition is Disposition.DUPLICATE
        if under_way and answer.run_id:
            self.run_ids.append(answer.run_id)
        self.documents.append(taking.document.id)
        self.claimed.add(taking.document.id)

    def refuse(self, file: FolderFile, why: str) -> None:
        """The file is left out, and its document, if it has one, is left alone."""
        self.refused[plain(file.name)] = why

    def spares(self, name: str) -> bool:
        """True when nobody knows whether the file is still there: it, or its folder, could not be read."""
        if name in self.refused or "./" in self.refused:
            return True
        return any(f"{above.as_posix()}/" in self.refused for above in PurePosixPath(name).parents)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which files below a folder are wanted, by patterns as a shell has them.

    A pattern without a slash is about the last part of a name, for `ignore` about any part: `*.pdf`, `build`.
    One with a slash is about the whole name below the folder, and its `*` also stands for slashes.
    """

    globs: Sequence[str] = ()
    ignore: Sequence[str] = ()

    def takes(self, name: str) -> bool:
        """True when the file of this name is wanted."""
        path = PurePosixPath(name)
        above = (each.as_posix() for each in path.parents if each.name)
        if self.leaves_out(name) or any(self.leaves_out(each) for each in above):
            return False
        return not self.globs or any(_matches(path, pattern) for pattern in self.globs)

    def leaves_out(self, name: str) -> bool:
        """True when this file or folder is to be ignored, with all below it."""
        return any(_matches(PurePosixPath(name), pattern.rstrip("/")) for pattern in self.ignore)


EVERYTHING = Selection()


def _matches(path: PurePosixPath, pattern: str) -> bool:
    return fnmatch.fnmatchcase(path.as_posix() if "/" in pattern else path.name, pattern.removeprefix("./"))


def files(paths: Sequence[Path], selection: Selection = EVERYTHING) -> Iterator[FolderFile]:
    """The files at these paths, folders walked in order; hidden ones are left alone, links to folders too.

    What is in a folder is selected; a file that was named itself is always taken.

    A folder that cannot be listed is among them, its name ending in a slash: opening it shows the reason.
    Raises BadRequestError for a path that does not exist.
    """
    for path in paths:
        if path.is_file():
            yield FolderFile(path.name, path)
        elif path.is_dir():
            yield from _below(path, selection)
        else:
            raise BadRequestError(f"there is no file or folder {path}", code="no_such_path")


def _below(path: Path, selection: Selection) -> Iterator[FolderFile]:
    unlisted: list[OSError] = []
    for folder, below, names in os.walk(path, onerror=unlisted.append):
        inside = Path(folder).relative_to(path)
        below[:] = sorted(
            name
            for name in below
            if not name.startswith(".") and not selection.leaves_out((inside / name).as_posix())
        )
        for name in sorted(names):
            file, candidate = (inside / name).as_posix(), Path(folder) / name
            if not name.startswith(".") and selection.takes(file) and candidate.is_file():
                yield FolderFile(file, candidate)
    for error in unlisted:
        unreadable = Path(os.fsdecode(error.filename or path))
        yield FolderFile(f"{unreadable.relative_to(path).as_posix()}/", unreadable)


class Folders:
    """Folders that become collections, and what came of their files."""

    def __init__(self, db: Database, documents: Documents) -> None:
        self._db = db
        self._documents = documents
        self.live = partial(run_summaries.live, db)
        self.tally = partial(run_summaries.tally, db)
        self.pages = partial(run_summaries.pages, db)
        self.unread = partial(run_summaries.unread, db)

    def take_in(
        self,
        wish: RequestContext,
        collection_id: str,
        files: Iterable[FolderFile],
        *,
        prune: bool = False,
        retry: bool = True,
        selection: Selection = EVERYTHING,
        description: tuple[Mapping[str, Any] | None, Sequence[str]] = (None, ()),
        password: str | None = None,
    ) -> Intake:
        """Every file has its document, and what is new or changed has been asked for.

        With `prune`, uploaded documents of the collection that stand for none of these files are deleted;
        those of a file that was refused, that the selection does not take, or with an external id, stay.
        Without `retry`, what failed is left as it is until its file changes; with it, only what failed for
        good is. New documents get the metadata and labels of `description`; those of others stay as they are.
        What failed because it is protected is asked for again with a `password`, which new and changed
        documents get, too.
        """
        collection = collections.existing(self._db, wish.tenant, collection_id)
        intake = Intake()
        takes = _Take(self._db, self._documents, wish, collection, intake, retry, description, password)
        for some in _batches(files):
            takes.take(some)
        if prune:
            for each in self._documents.walk(wish.tenant, collection_id):
                ours = each.source == "upload" and each.external_id is None
                gone = each.id not in intake.claimed and selection.takes(each.name)
                if ours and gone and not intake.spares(each.name):
                    self._documents.delete(wish, each.id)
                    intake.removed += 1
        return intake

    def take_one(self, wish: RequestContext, collection_id: str, path: Path, upload: Upload) -> Intake:
        """The file is the content of the document with the upload's external id, and has been asked for."""
        file, intake = FolderFile(path.name, path), Intake()
        try:
            with path.open("rb") as stream:
                named = replace(upload, content=stream, name=path.name)
                (taking,) = self._documents.add(wish, collection_id, [named])
        except OSError as error:
            intake.refuse(file, str(error))
            return intake
        intake.note(taking)
        if taking.disposition is Disposition.REFUSED:
            intake.refuse(file, taking.answer.reason)
        elif taking.disposition is Disposition.DUPLICATE:
            intake.running += 1
        elif not taking.answer.created:
            intake.unchanged += 1
        elif taking.answer.generation == 1:
            intake.new += 1
        else:
            intake.changed += 1
        return intake


def _batches(folder_files: Iterable[FolderFile]) -> Iterator[list[FolderFile]]:
    files = iter(folder_files)
    while some := list(itertools.islice(files, STEP)):
        yield some


@dataclass(frozen=True, slots=True)
class _Take:
    """One pass over the files, some hundred at a time."""

    db: Database
    documents: Documents
    wish: RequestContext
    collection: Collection
    intake: Intake
    retry: bool
    description: tuple[Mapping[str, Any] | None, Sequence[str]]
    password: str | None = field(default=None, repr=False)

    def take(self, some: Sequence[FolderFile]) -> None:
        """These files have their documents. First those whose bytes are known, for they claim them."""
        digests = self._digests(some)
        where = (self.db, self.wish.tenant, self.collection.id)
        bytes_of = documents.by_digests(*where, set(digests.values()))
        left: list[FolderFile] = []
        for file, digest in digests.items():
            known = bytes_of.get(digest)
            if known is None or known.source == document_members.SOURCE:
                left.append(file)
            elif known.id in self.intake.claimed:
                self.intake.same_bytes += 1
            else:
                self._ask_again(known)
        names = documents.by_names(*where, {file.name for file in left})
        fresh: list[FolderFile] = []
        for file in left:
            free = [
                each
                for each in names.get(file.name, ())
                if each.id not in self.intake.claimed and each.source != document_members.SOURCE
            ]
            if free:
                self._change(free[-1], file)
            else:
                fresh.append(file)
        self._add(fresh)

    def _digests(self, some: Sequence[FolderFile]) -> dict[FolderFile, str]:
        digests: dict[FolderFile, str] = {}
        with ThreadPoolExecutor(READERS) as pool:
            for file, digest in zip(some, pool.map(_digest, some), strict=True):
                if not is_plain(file.name):
                    self.intake.refuse(file, "its name has characters that cannot be stored; rename it")
                elif digest is None:
                    self.intake.refuse(file, "it cannot be read")
                else:
                    digests[file] = digest
        return digests

    def _ask_again(self, known: Document) -> None:
        """Ask for a document whose bytes are known, unless it is plain that nothing would happen."""
        intake = self.intake
        intake.claimed.add(known.id)
        if self.documents.is_current(self.collection, known):
            intake.unchanged += 1
            return
        failed = known.status is Status.FAILED
        unlocks = failed and self.retry and self.password is not None and self._is_locked(known)
        if failed and not unlocks and (not self.retry or self._failed_for_good(known)):
            intake.failed_before += 1
            return
        if unlocks:
            taking = self.documents.change(self.wish, known.id, password=self.password)
        else:
            taking = self.documents.index(self.wish, known.id)
        intake.note(taking)
        if taking.answer.created:
            intake.changed += 1
        elif taking.disposition is Disposition.REFUSED:
            intake.refused[known.name] = taking.answer.reason
        else:
            intake.running += 1

    def _is_locked(self, known: Document) -> bool:
        """True when the document could not be opened for want of the right password."""
        run = reads.run(self.db, known.run_id) if known.run_id is not None else None
        return run is not None and run.run.error_code in LOCKED

    def _failed_for_good(self, known: Document) -> bool:
        """True when the same bytes were read the same way before and could not be: they never can."""
        run = reads.run(self.db, known.run_id) if known.run_id is not None else None
        if run is None or run.run.error_code not in FOR_GOOD:
            return False
        return self.documents.is_as_asked(self.collection, known)

    def _change(self, known: Document, file: FolderFile) -> None:
        try:
            with file.path.open("rb") as stream:
                upload = Upload(stream, file.name, password=self.password)
                taking = self.documents.put_content(self.wish, known.id, upload)
        except (HoldfastError, OSError) as error:
            self.intake.refuse(file, str(error))
            return
        self.intake.note(taking)
        if taking.disposition is Disposition.REFUSED:
            self.intake.refuse(file, taking.answer.reason)
        else:
            self.intake.changed += 1

    def _add(self, fresh: Sequence[FolderFile]) -> None:
        """What is new is kept and asked for some at a time, so that the workers begin with the first."""
        seen: set[str] = set()
        with ThreadPoolExecutor(READERS) as pool:
            for start in range(0, len(fresh), AT_ONCE):
                some = fresh[start : start + AT_ONCE]
                stored: list[tuple[FolderFile, DocumentDraft]] = []
                for file, draft in zip(some, pool.map(self._draft, some), strict=True):
                    if isinstance(draft, str):
                        self.intake.refuse(file, draft)
                    elif draft.source.digest in seen:
                        self.intake.same_bytes += 1
                    else:
                        seen.add(draft.source.digest)
                        stored.append((file, draft))
                self._ask_for(stored)

    def _draft(self, file: FolderFile) -> DocumentDraft | str:
        """A document that could be made of the file, whose bytes are on the shelf; or why there is none."""
        try:
            with file.path.open("rb") as stream:
                metadata, labels = self.description
                upload = Upload(stream, file.name, metadata=metadata, labels=labels, password=self.password)
                return self.documents.keep(upload)
        except (HoldfastError, OSError) as error:
            return str(error)

    def _ask_for(self, stored: Sequence[tuple[FolderFile, DocumentDraft]]) -> None:
        takings = self.documents.add_kept(self.wish, self.collection, [draft for _, draft in stored])
        for (file, _), taking in zip(stored, takings, strict=True):
            self.intake.note(taking)
            if taking.disposition is Disposition.REFUSED:
                self.intake.refuse(file, taking.answer.reason)
            elif taking.answer.created:
                self.intake.new += 1
            else:  # somebody else gave the same bytes meanwhile
                self.intake.same_bytes += 1


def _digest(file: FolderFile) -> str | None:
    try:
        with file.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError):
        return None
