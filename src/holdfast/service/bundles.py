"""Bundles: a collection as one file, asked for as a job; and a file that becomes a collection again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

from holdfast.core.errors import NotFoundError, WorkError
from holdfast.core.records import Ask, RequestResult
from holdfast.core.states import Status
from holdfast.documents import bundles
from holdfast.documents.blobs import Blobs
from holdfast.engine.engine import Engine
from holdfast.kinds import export, import_
from holdfast.service.actions import checked_callback
from holdfast.service.jobs import JobView
from holdfast.service.library import Library, Wish
from holdfast.store.jobs import jobs
from holdfast.store.library.collections import Collection


@dataclass(frozen=True, slots=True)
class ExportFile:
    """What an export left: the open file, its size and what it is called."""

    content: BinaryIO
    size: int
    name: str


class Bundles:
    """Exports and imports of an installation, as one process sees them."""

    def __init__(
        self,
        engine: Engine,
        shelf: Blobs,
        library: Library,
        limits: import_.ImportLimits,
        *,
        allow_private: bool,
    ) -> None:
        self._engine = engine
        self._allow_private = allow_private
        self._db = engine.db
        self._shelf = shelf
        self._library = library
        self._limits = limits

    def export(
        self, wish: Wish, collection: Collection, callback: Mapping[str, str] | None = None
    ) -> RequestResult:
        """What became of a request for an export: each makes a file anew, of what is published by then."""
        return self._ask(wish, export.NAME, collection.id, content="", options={}, callback=callback)

    def bring(
        self,
        wish: Wish,
        file: BinaryIO,
        collection_id: str | None = None,
        callback: Mapping[str, str] | None = None,
    ) -> RequestResult:
        """What became of a request for an import into a collection, which is made if it is not there.

        BadRequestError for a file that plainly is no bundle, or for a callback that can never be made, before
        anything is kept.
        """
        checked_callback(callback, allow_private=self._allow_private)
        file.seek(0)
        with bundles.opened(file, self._limits.expanded) as bundle:
            manifest = bundle.manifest
        file.seek(0)
        name = collection_id or manifest.collection
        made = False
        try:
            self._library.collection(wish.tenant, name)
        except NotFoundError:
            self._library.make_collection(wish, name, title=manifest.title, options=manifest.options)
            made = True
        content = self._shelf.put(file).digest
        options = {"made": made, "documents": manifest.documents, "from": manifest.release}
        return self._ask(wish, import_.NAME, name, content=content, options=options, callback=callback)

    def _ask(
        self,
        wish: Wish,
        kind: str,
        collection: str,
        *,
        content: str,
        options: Mapping[str, object],
        callback: Mapping[str, str] | None,
    ) -> RequestResult:
        ask = Ask(
            kind=kind,
            subject=f"collection:{collection}",
            content=content,
            options=options,
            tenant=wish.tenant,
            collection=collection,
            lane=wish.lane,
            priority=wish.priority,
            actor=wish.actor,
            force=True,
            callback=checked_callback(callback, allow_private=self._allow_private),
            pays=False,
        )
        run_id, patience = self._engine.host.token(), self._engine.parts.patience
        asked = self._engine.checked(ask)
        answer = jobs.request(self._db, asked, run_id=run_id, patience=patience, replace=False)
        if answer.created:
            self._engine.wake({wish.lane: 1})
        return answer

    def file(self, view: JobView) -> ExportFile:
        """The file of an export that succeeded; NotFoundError when there is none, or none any more."""
        run, told = view.job.run, view.job.result
        if run.kind != export.NAME or run.status is not Status.SUCCESS or "file" not in told:
            raise NotFoundError(
                "the job has no file; an export has one when it has succeeded", code="no_file"
            )
        try:
            content = self._shelf.open(str(told["file"]))
        except WorkError as error:
            message = "the file is gone: it is kept for a day; export the collection again"
            raise NotFoundError(message, code="no_file") from error
        name = run.subject.removeprefix("collection:")
        return ExportFile(content, int(told["bytes"]), f"{name}.holdfast.zip")
