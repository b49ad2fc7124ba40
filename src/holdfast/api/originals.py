"""Originals: the bytes of a document as they were uploaded, and its pages as pictures."""

from collections.abc import Iterator
from contextlib import closing
from typing import Annotated, BinaryIO
from urllib.parse import quote

from fastapi import Header, Path, Query
from fastapi.responses import Response, StreamingResponse

from holdfast.api import parameters, routing
from holdfast.api.access import PathDocument
from holdfast.api.errors import BESIDE, Problem
from holdfast.api.parameters import Services
from holdfast.api.schemas_history import (
    OutlineEntryResponse,
    OutlineResponse,
    PageReadingResponse,
    PageReadings,
)
from holdfast.core.errors import BadRequestError, ConflictError
from holdfast.service.originals import MEDIA_TYPES, UNKNOWN
from holdfast.web.slow_requests import Pool

STEP = 256 * 1024
PIXELS = 1000
# Foreign content, which no browser shall run or show as part of this site.
APART = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-store",
}

CONTENT: dict[str, dict[str, str]] = {each: {} for each in sorted({UNKNOWN, *MEDIA_TYPES.values()})}

router = routing.router("history")


@router.get(
    "/documents/{document_id}/original",
    response_class=StreamingResponse,
    responses={
        200: {"content": CONTENT, "description": "The bytes as they were uploaded."},
        206: {"content": CONTENT, "description": "The range of bytes."},
        416: {"model": Problem, "description": "The range is outside of the document."},
        **BESIDE,
    },
)
def document_original(
    services: Services,
    document: PathDocument,
    byte_range: Annotated[str | None, Header(alias="Range", max_length=200)] = None,
) -> Response:
    """Download the file of the published version as it was uploaded, or one range of its bytes.

    It comes as an attachment that no browser opens by itself.
    """
    original = services.originals.of(document)
    headers = {
        **APART,
        "Content-Type": original.media_type,  # without a charset, which is not known
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(original.name, safe='')}",
        "Accept-Ranges": "bytes",
        "ETag": f'"{original.digest}"',
    }
    span = _range(byte_range, original.size)
    if span is None:
        start, end = 0, original.size
    elif span:
        start, end = span
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{original.size}"
    else:
        raise BadRequestError(
            f"the document has {original.size} bytes, and this range is outside of it", code="bad_range"
        )
    headers["Content-Length"] = str(end - start)
    content = _read(services.originals.open(original), start, end)
    status = 200 if span is None else 206
    return StreamingResponse(content, status, headers=headers)


def _range(text: str | None, size: int) -> tuple[int, int] | tuple[()] | None:
    """First byte and end of a range of one piece; () if it cannot be met, None if all is to be sent."""
    unit, _, spans = (text or "").partition("=")
    first, dash, last = spans.strip().partition("-")
    if unit.strip() != "bytes" or not dash or "," in spans or not (first + last).isdecimal():
        return None
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1 if last else size)
    return (start, end) if start < end else ()


def _read(content: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    with closing(content):
        content.seek(start)
        left = end - start
        while left and (some := content.read(min(STEP, left))):
            left -= len(some)
            yield some


@router.get("/documents/{document_id}/outline", response_model=OutlineResponse, responses=BESIDE)
def document_outline(services: Services, document: PathDocument) -> OutlineResponse:
    """Show the table of contents: the bookmarks of a PDF, or else the headings in the text."""
    entries = services.originals.outline(document)
    return OutlineResponse(
        generation=document.published_generation if document.visible else 0,
        entries=[OutlineEntryResponse(level=level, title=title, page=page) for level, title, page in entries],
    )


@router.get("/documents/{document_id}/pages", response_model=PageReadings, responses=BESIDE)
def document_pages(
    services: Services,
    document: PathDocument,
    limit: parameters.Limit = 100,
    cursor: parameters.Cursor = None,
) -> PageReadings:
    """List the pages of the published version: how each was read, and how many words it has.

    A format without pages (tables, JSON Lines) has none. So has a document that an earlier release indexed.
    """
    known = parameters.numbers(cursor, 3)
    after = (known[1], known[2]) if known is not None else (-1, 0)
    listed = services.originals.pages(document, after=after, limit=limit)
    if known is not None and known[0] != listed.generation:
        message = (
            f"generation {listed.generation} was published in the meantime; start again without a cursor"
        )
        raise ConflictError(message, code="stale_cursor")
    last = listed.pages[-1] if len(listed.pages) == limit else None
    names = PageReadingResponse.model_fields
    return PageReadings(
        generation=listed.generation,
        pages=[PageReadingResponse(**{name: getattr(each, name) for name in names}) for each in listed.pages],
        next=None if last is None else f"{listed.generation}.{last.slice}.{last.page}",
    )


@router.get(
    "/documents/{document_id}/pages/{page}",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}, "description": "The picture."}, **BESIDE},
)
@routing.waits(Pool.THUMBNAILS)
def document_page(
    services: Services,
    document: PathDocument,
    page: Annotated[int, Path(ge=1, le=1_000_000, description="The number of a page, from 1.")],
    width: Annotated[int, Query(ge=100, le=2000, description="In pixels.")] = PIXELS,
    chunk: Annotated[
        str | None,
        Query(pattern=r"^\d{1,9}\.\d{1,9}$", description="A chunk to mark: its slice and position, as 0.3."),
    ] = None,
) -> Response:
    """Show a page of the published version of a PDF or an image, with the text of a chunk marked."""
    position = None
    if chunk is not None:
        slice_number, number = chunk.split(".")
        position = int(slice_number), int(number)
    picture = services.originals.page(document, page, width, chunk=position)
    return Response(picture, media_type="image/png", headers=APART)
