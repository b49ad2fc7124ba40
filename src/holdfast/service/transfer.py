"""Moving data: documents between collections, collections as bundles, documents indexed by another system."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from holdfast.core.errors import BadRequestError, NotFoundError, WorkError
from holdfast.core.records import TENANT, Ask, RequestResult, expect
from holdfast.core.states import Lane, Status
from holdfast.documents import bundles
from holdfast.documents.blobs import Blobs
from holdfast.engine.engine import Engine
from holdfast.kinds import corpus, export, import_
from holdfast.service import missing_content
from holdfast.service.actions import checked_callback
from holdfast.service.collections import Collections
from holdfast.service.documents import Documents
from holdfast.service.jobs import JobView
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import UploadResult
from holdfast.store.jobs import jobs
from holdfast.store.library import chunk_edits, document_moves, document_passwords, imports
from holdfast.store.library.collections import Collection
from holdfast.store.library.documents import DocumentDraft, source_of
from holdfast.store.library.quotas import UNLIMITED, Quota


@dataclass(frozen=True, slots=True)
class Columns:
    """Where another system keeps its documents: a table, and the names of its columns."""

    table: str
    id: str
    active: str
    title: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class ExportFile:
    """What an export left: the open file, its size and what it is called."""

    content: BinaryIO
    size: int
    name: str


class Transfer:
    """Copies, moves, exports and imports of an installation, as one process sees them."""

    def __init__(
        self,
        engine: Engine,
        shelf: Blobs,
        collections: Collections,
        documents: Documents,
        limits: import_.ImportLimits,
        *,
        allow_private: bool,
        quota: Quota = UNLIMITED,
    ) -> None:
        self._engine = engine
        self._allow_private = allow_private
        self._db = engine.db
        self._shelf = shelf
        self._collections = collections
        self._documents = documents
        self._limits = limits
        self._quota = quota

    def copy(
        self,
        wish: RequestContext,
        document_id: str,
        collection_id: str,
        *,
        expect_generation: int | None = None,
    ) -> UploadResult:
        """A document of the collection that has the same content, title and options; the old one stays.

        It is indexed like any other, and what is in the ledger costs nothing.
        """
        document = self._documents.get(wish.tenant, document_id, only=wish.only)
        expect(document.generation, expect_generation)
        if not document.has_content:
            raise missing_content.refused(document)
        collection = self._collections.get(wish.tenant, collection_id)
        password = document_passwords.of_content(self._db, wish.tenant, document.digest)
        described = document.options, document.metadata, document.labels, password
        draft = DocumentDraft(
            secrets.token_hex(8),
            document.title,
            source_of(document),
            *described,
            title_given=document.title_given,
            edits=chunk_edits.all_of(self._db, wish.tenant, document.id),
        )
        return self._documents.add_kept(wish, collection, [draft], copied=document_id)[0]

    def move(
        self,
        wish: RequestContext,
        document_id: str,
        collection_id: str,
        *,
        expect_generation: int | None = None,
    ) -> UploadResult:
        """The document, and what only it contains, is in the collection; where that indexes otherwise, new
        generations are asked for.
        """
        collection = self._collections.get(wish.tenant, collection_id)
        answer = document_moves.move(
            self._db,
            (wish.tenant, document_id),
            collection_id,
            actor=wish.actor,
            request=self._documents.request(wish, collection),
            expect_generation=expect_generation,
            quota=self._documents.quota,
        )
        self._engine.wake({Lane.FOLLOW_UP: 1})  # the actions of the collection may have something to do
        return self._documents.settled(wish, document_id, answer)

    def adopt(
        self, source: str, columns: Columns, *, tenant: str, collection: str, actor: str
    ) -> imports.Imported:
        """Every row of another system's table is a document here; those that were are as they were."""
        if not TENANT.fullmatch(collection):
            message = f"{collection!r} is not a valid collection name; use letters, digits, . - _, at most 64"
            raise BadRequestError(message, code="bad_collection")
        rows = imports.read_documents(
            source, columns.table, columns.id, columns.active, columns.title, columns.url
        )
        return imports.import_documents(
            self._db, rows, tenant=tenant, collection=collection, actor=actor, quota=self._quota
        )

    def export(
        self,
        wish: RequestContext,
        collection: Collection,
        callback: Mapping[str, str] | None = None,
        *,
        only: Mapping[str, Any] | None = None,
    ) -> RequestResult:
        """What became of a request for an export: each makes a file anew, of what is published by then.

        `only` is a filter; documents that do not pass are not in the file.
        """
        options = {} if only is None else {corpus.DOCUMENT_FILTER: dict(only)}
        corpus.filter_of(options)
        return self._ask(wish, export.NAME, collection.id, content="", options=options, callback=callback)

    def bring(
        self,
        wish: RequestContext,
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
        created = False
        try:
            self._collections.get(wish.tenant, name)
        except NotFoundError:
            self._collections.make(wish, name, title=manifest.title, options=manifest.options)
            created = True
        content = self._shelf.put(file).digest
        options = {"made": created, "documents": manifest.documents, "from": manifest.release}
        return self._ask(wish, import_.NAME, name, content=content, options=options, callback=callback)

    def _ask(
        self,
        wish: RequestContext,
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
        checked_ask = self._engine.checked(ask)
        answer = jobs.request(self._db, checked_ask, run_id=run_id, patience=patience, replace=False)
        if answer.created:
            self._engine.wake({wish.lane: 1})
        return answer

    def file(self, view: JobView) -> ExportFile:
        """The file of an export that succeeded; NotFoundError when there is none, or none any more."""
        run, result = view.job.run, view.job.result
        if run.kind != export.NAME or run.status is not Status.SUCCESS or "file" not in result:
            raise NotFoundError(
                "the job has no file; an export has one once it has succeeded", code="no_file"
            )
        try:
            content = self._shelf.open(str(result["file"]))
        except WorkError as error:
            message = "the file was deleted after a day; export the collection again"
            raise NotFoundError(message, code="no_file") from error
        name = run.subject.removeprefix("collection:")
        return ExportFile(content, int(result["bytes"]), f"{name}.holdfast.zip")
