"""Uploaded content: a file, streamed to disk, or JSON; read after the caller and the target are known."""

import hashlib
import json
import unicodedata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, BinaryIO, TypeVar

import pydantic
from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser

from holdfast.api import parameters
from holdfast.api.access import identified, own_collection, own_document
from holdfast.api.dependencies import ahead
from holdfast.api.limits import AROUND
from holdfast.api.routing import WAITS
from holdfast.api.schemas_documents import (
    ExternalIdField,
    LabelsField,
    LaneName,
    MaxCost,
    MetadataField,
    NewContent,
    NewDocument,
    PasswordField,
    Priority,
    Shape,
    nano_dollars,
)
from holdfast.core.errors import BadRequestError
from holdfast.documents.blob_writer import BlobWriter
from holdfast.documents.blobs import Blobs
from holdfast.documents.parse import sniff
from holdfast.service.uploads import Upload
from holdfast.web.slow_requests import Pool

STEP = 1024 * 1024
# From so many bytes on it is worth a look beforehand whether there is room for them.
LARGE = 1024 * 1024

Body = TypeVar("Body", bound=pydantic.BaseModel)


class UploadFields(Shape):
    """What may stand beside a file; numbers and objects are written as JSON."""

    title: Annotated[str, pydantic.Field(max_length=500)] = ""
    priority: Priority = 5
    lane: LaneName = "interactive"
    options: dict[str, Any] | None = None
    metadata: MetadataField = None
    labels: LabelsField = None
    password: PasswordField = None
    external_id: ExternalIdField = None
    max_cost: MaxCost = None


@dataclass(frozen=True, slots=True)
class UploadBody:
    """Uploaded content. `text` and `url` come from JSON, `file` from a form."""

    title: str
    priority: int
    lane: str
    options: dict[str, Any] | None = None
    text: str | None = None
    url: str | None = None
    file: BinaryIO | None = None
    name: str = ""
    max_cost: int | None = None
    metadata: dict[str, Any] | None = None
    labels: tuple[str, ...] | None = None
    password: str | None = field(default=None, repr=False)
    any_format: bool = False
    external_id: str | None = None

    def upload(self) -> Upload:
        """The content for the library; WorkError for a file of a format that is not supported."""
        if self.file is not None:
            if not self.any_format:
                check_format(self.file)
            about = self.options, self.metadata, self.labels, self.password, self.external_id
            return Upload(self.file, self.name, self.title, "upload", *about)
        content = (self.text or "").encode()
        about = self.options, self.metadata, self.labels, None, self.external_id
        return Upload(content, "", self.title, "text", *about)

    def means(self) -> str:
        """What tells it apart from other content; not the boundary of a form, which is new each time."""
        digest = digest_of(self.file) if self.file is not None else ""
        fields = [self.title, self.priority, self.lane, self.options, self.text, self.url, self.name, digest]
        if self.max_cost is not None:  # else as it was before there was one
            fields.append(self.max_cost)
        if self.metadata or self.labels:
            fields.append({"metadata": self.metadata, "labels": self.labels or ()})
        if self.password is not None:
            fields.append(hashlib.sha256(self.password.encode()).hexdigest())
        if self.external_id is not None:
            fields.append({"external_id": self.external_id})
        return json.dumps(fields, sort_keys=True)


def check_format(file: BinaryIO) -> None:
    """Return if the file may be of a format that is read here; it is at its beginning again."""
    file.seek(0)
    head = file.read(sniff.HEAD)
    file.seek(0)
    if head:
        sniff.check_head(head)


def digest_of(file: BinaryIO) -> str:
    """What tells a file apart from others; it is at its beginning again."""
    if isinstance(file, BlobWriter) and (known := file.digest()) is not None:
        return known
    hasher = hashlib.sha256()
    file.seek(0)
    while part := file.read(STEP):
        hasher.update(part)
    file.seek(0)
    return hasher.hexdigest()


def checked(model: type[Body], raw: bytes) -> Body:
    """The body, if it has the form of the model; otherwise the error of a request of the wrong form."""
    try:
        return model.model_validate_json(raw)
    except pydantic.ValidationError as error:
        raise RequestValidationError(
            [dict(one) | {"loc": ("body", *one["loc"])} for one in error.errors(include_input=False)]
        ) from None


def file_name(path: str) -> str:
    """The last part of the name that a client gives its file: where it lay is the client's own business."""
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    if any(unicodedata.category(each) in {"Cc", "Cf"} for each in name):
        raise BadRequestError(f"the file name {name!r:.80} has control characters", code="bad_name")
    return "" if name in {".", ".."} else name


class Forms(MultiPartParser):
    """Parses a form whose file is written where the shelf keeps it: once, however large it is."""

    def __init__(self, request: Request, shelf: Blobs) -> None:
        super().__init__(request.headers, request.stream(), max_files=1, max_fields=9)
        self._shelf = shelf

    def on_headers_finished(self) -> None:
        """A part begins; if it is a file, it is a draft of the shelf."""
        super().on_headers_finished()
        if self._current_part.file is not None:
            self._files_to_close_on_error.pop().close()
            draft = self._shelf.draft()
            self._files_to_close_on_error.append(draft)  # type: ignore[arg-type]  # all it does is close them
            old = self._current_part.file
            self._current_part.file = UploadFile(draft, size=0, filename=old.filename, headers=old.headers)


@asynccontextmanager
async def form_of(request: Request) -> AsyncIterator[FormData]:
    """The form of a request, its file on disk until the request is answered."""
    if not is_form(request):
        raise BadRequestError("send a form as multipart/form-data", code="bad_request")
    try:
        form = await Forms(request, parameters.services_of(request).runtime.shelf).parse()
    except MultiPartException as error:
        raise HTTPException(400, error.message) from error
    try:
        yield form
    finally:
        await form.close()


async def _form(request: Request) -> AsyncIterator[UploadBody]:
    async with form_of(request) as form:
        # One form, one file: where a field comes twice, the last counts.
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise BadRequestError("the form has no `file` field with a file", code="bad_request")
        texts = {name: value for name, value in form.items() if isinstance(value, str)}
        raw = json.dumps({name: value(name, text) for name, text in texts.items()}).encode()
        known = checked(UploadFields, raw)
        yield UploadBody(
            known.title,
            known.priority,
            known.lane,
            known.options,
            file=file.file,
            name=file_name(file.filename or ""),
            max_cost=nano_dollars(known.max_cost),
            metadata=known.metadata,
            labels=None if known.labels is None else tuple(known.labels),
            password=known.password,
            external_id=known.external_id,
            any_format=parameters.services_of(request).runtime.parser.takes_anything,
        )


def value(name: str, text: str) -> Any:
    """A field of a form, as JSON would have it."""
    if name not in {"priority", "options", "max_cost", "metadata", "labels"}:
        return text.encode("utf-8", "replace").decode()
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def is_form(request: Request) -> bool:
    """True when the body is a form with files."""
    return request.headers.get("content-type", "").lower().startswith("multipart/form-data")


async def _check_room(request: Request) -> None:
    """Return unless a large file has no room: QuotaExceededError before it is sent, and on the disk.

    Only what a client says itself is known yet; what counts is decided when the document is added.
    """
    said = request.headers.get("content-length", "")
    size = int(said) if said.isascii() and said.isdigit() and len(said) < 19 else 0
    if size >= LARGE:
        caller = await ahead(request, identified)
        check = parameters.services_of(request).quotas.check_room
        await run_in_threadpool(check, caller.tenant, caller.actor, size - AROUND)


async def _new_document(request: Request) -> AsyncIterator[UploadBody]:
    await ahead(request, own_collection)
    await _check_room(request)
    if is_form(request):
        async for handed in _form(request):
            yield handed
        return
    known = checked(NewDocument, await request.body())
    if (known.text is None) == (known.url is None):
        raise BadRequestError("send a `text` or a `url`, or a form with a `file`", code="bad_request")
    if known.url is not None and known.options is not None:
        raise BadRequestError("a document from a url uses the options of its collection", code="bad_option")
    if known.url is not None:
        request.scope[WAITS] = Pool.FETCHES
    most = nano_dollars(known.max_cost)
    yield UploadBody(
        known.title,
        known.priority,
        known.lane,
        known.options,
        known.text,
        known.url,
        max_cost=most,
        metadata=known.metadata,
        labels=None if known.labels is None else tuple(known.labels),
        password=known.password,
        external_id=known.external_id,
    )


async def _new_content(request: Request) -> AsyncIterator[UploadBody]:
    await ahead(request, own_document)
    if is_form(request):
        async for handed in _form(request):
            yield handed
        return
    known = checked(NewContent, await request.body())
    most = nano_dollars(known.max_cost)
    yield UploadBody("", known.priority, known.lane, text=known.text, max_cost=most)


DocumentBody = Annotated[UploadBody, Depends(_new_document)]
ContentBody = Annotated[UploadBody, Depends(_new_content)]


def with_file(model: type[pydantic.BaseModel]) -> dict[str, Any]:
    """The schema of a form with a file and these fields."""
    fields = model.model_json_schema()
    file = {"type": "string", "format": "binary", "contentMediaType": "application/octet-stream"}
    return {**fields, "properties": {"file": file, **fields["properties"]}, "required": ["file"]}


def described(model: type[pydantic.BaseModel]) -> dict[str, Any]:
    """The request body for OpenAPI, since it is read by hand: a form with a file, or this JSON."""
    content = {
        "multipart/form-data": {"schema": with_file(UploadFields)},
        "application/json": {"schema": model.model_json_schema()},
    }
    return {"requestBody": {"required": True, "content": content}}
