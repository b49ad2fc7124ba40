"""Moving data: documents between collections, and whole collections as export and import bundles."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Annotated, Any, BinaryIO, Literal

from fastapi import Depends, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import Field
from starlette.datastructures import UploadFile

from holdfast.api import jobs, routing, schemas_documents, schemas_jobs, upload_bodies
from holdfast.api.access import OwnCollection, OwnDocument, Reader, Writer, writer
from holdfast.api.dependencies import ahead
from holdfast.api.documents import TAKEN, IfMatch, expected, taken
from holdfast.api.errors import BESIDE, Problem
from holdfast.api.idempotency import IdempotencyKey, RouteReply, answer_once, fingerprint
from holdfast.api.limits import BodyKind
from holdfast.api.parameters import Services
from holdfast.api.schemas_documents import LaneName, MaxCost, Priority, Shape
from holdfast.core.errors import BadRequestError
from holdfast.service.requests import RequestContext
from holdfast.service.transfer import ExportFile

router = routing.router("moving")

STEP = 1024 * 1024
ASKED: dict[int | str, dict[str, Any]] = {
    409: {"model": Problem, "description": "One is in progress; `active` names it."},
}

PUT: dict[int | str, dict[str, Any]] = {
    **TAKEN,
    409: {"model": Problem, "description": "A document of the collection already has the same content."},
    412: {"model": Problem, "description": "The document is at another generation."},
}


class Placing(Shape):
    """What becomes of the document where it is: a copy leaves it there, a move takes it along."""

    mode: Literal["copy", "move"]
    lane: LaneName = "interactive"
    priority: Priority = 5
    max_cost: MaxCost = None


@router.put(
    "/collections/{collection_id}/documents/{document_id}",
    status_code=202,
    response_model=schemas_documents.UploadResponse,
    responses=PUT,
)
def place_document(
    request: Request,
    services: Services,
    caller: Reader,
    collection: OwnCollection,
    document: OwnDocument,
    body: Placing,
    key: IdempotencyKey = None,
    if_match: IfMatch = None,
) -> Response:
    """Put a document into a collection.

    A copy is a document of its own, or the one that has the same bytes there already. A moved document is
    searchable there at once; 202 says that it is indexed anew because that collection has other options.
    """
    most, generation = schemas_documents.nano_dollars(body.max_cost), expected(if_match)
    mine = RequestContext(caller.tenant, caller.actor, body.lane, body.priority, most, caller.restriction)

    def do() -> RouteReply:
        put = services.transfer.copy if body.mode == "copy" else services.transfer.move
        return taken(services, put(mine, document.id, collection.id, expect_generation=generation))

    return answer_once(services, caller.tenant, key, lambda: fingerprint(request, body.model_dump_json()), do)


class NewExport(Shape):
    """Priority of an export, its callback, and which documents it has: those that pass a filter."""

    filter: dict[str, Any] | None = None
    lane: LaneName = "bulk"
    priority: Priority = 5
    callback: schemas_jobs.Callback | None = None


@router.post(
    "/collections/{collection_id}/export",
    status_code=202,
    response_model=schemas_jobs.JobTaken,
    responses=ASKED,
)
def export_collection(
    request: Request,
    services: Services,
    caller: Reader,
    collection: OwnCollection,
    body: NewExport | None = None,
    key: IdempotencyKey = None,
) -> Response:
    """Export what is published in a collection at one moment: documents, chunks, vectors and options.

    It is a job; `GET /jobs/{job_id}/file` gives the file when it has succeeded, for a day.
    """
    how = body or NewExport()
    mine = RequestContext(caller.tenant, caller.actor, how.lane, how.priority)
    callback = how.callback.as_target(request) if how.callback is not None else None

    def do() -> RouteReply:
        answer = services.transfer.export(mine, collection, callback, only=how.filter)
        return jobs.taken(services, caller.tenant, answer)

    return answer_once(services, caller.tenant, key, lambda: fingerprint(request, how.model_dump_json()), do)


@router.get(
    "/jobs/{job_id}/file",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/zip": {}}, "description": "The bundle."}, **BESIDE},
)
def job_file(services: Services, job: jobs.PathJob) -> StreamingResponse:
    """Download the file of an export."""
    file = services.transfer.file(job)
    headers = {
        "Content-Disposition": f'attachment; filename="{file.name}"',
        "Content-Length": str(file.size),
    }
    return StreamingResponse(_read(file), media_type="application/zip", headers=headers)


def _read(file: ExportFile) -> Iterator[bytes]:
    with closing(file.content) as content:
        while some := content.read(STEP):
            yield some


class ImportFields(Shape):
    """What may stand beside a bundle; `collection` is where it goes, by default where it came from.

    `callback_url` is notified when the import ends; with `callback_secret` the request is signed.
    """

    collection: Annotated[str, Field(max_length=64)] | None = None
    lane: LaneName = "bulk"
    priority: Priority = 5
    callback_url: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    callback_secret: Annotated[str, Field(max_length=1000)] | None = None

    @property
    def callback(self) -> schemas_jobs.Callback | None:
        """The callback for its end."""
        if self.callback_url is None:
            return None
        return schemas_jobs.Callback(url=self.callback_url, secret=self.callback_secret)


@dataclass(frozen=True, slots=True)
class HandedBundle:
    """An uploaded bundle."""

    file: BinaryIO
    fields: ImportFields

    def means(self) -> str:
        """What tells it apart from others."""
        return json.dumps([self.fields.model_dump_json(), upload_bodies.digest_of(self.file)])


async def _bundle(request: Request) -> AsyncIterator[HandedBundle]:
    await ahead(request, writer)
    async with upload_bodies.form_of(request) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise BadRequestError("the form has no `file` field with a file", code="bad_request")
        texts = {
            name: upload_bodies.value(name, text) for name, text in form.items() if isinstance(text, str)
        }
        yield HandedBundle(file.file, upload_bodies.checked(ImportFields, json.dumps(texts).encode()))


BUNDLE = {
    "requestBody": {
        "required": True,
        "content": {"multipart/form-data": {"schema": upload_bodies.with_file(ImportFields)}},
    }
}


@router.post(
    "/imports",
    status_code=202,
    response_model=schemas_jobs.JobTaken,
    responses=ASKED,
    openapi_extra=BUNDLE,
)
@routing.takes(BodyKind.BUNDLE)
def import_collection(
    request: Request,
    services: Services,
    caller: Writer,
    handed: Annotated[HandedBundle, Depends(_bundle)],
    key: IdempotencyKey = None,
) -> Response:
    """Import a bundle into a collection, which is made if it is not there.

    It is a job. Documents whose content the collection has already stay as they are; the others are ready
    when they arrive, and what the bundle brings along is not paid for.
    """
    mine = RequestContext(caller.tenant, caller.actor, handed.fields.lane, handed.fields.priority)

    callback = handed.fields.callback
    teller = callback.as_target(request) if callback is not None else None

    def do() -> RouteReply:
        answer = services.transfer.bring(mine, handed.file, handed.fields.collection, teller)
        return jobs.taken(services, caller.tenant, answer)

    return answer_once(services, caller.tenant, key, lambda: fingerprint(request, handed.means()), do)
