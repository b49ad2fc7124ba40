"""The chunks of a document: read, edited, switched off and on, and the edits of all of them."""

from typing import Annotated

from fastapi import Path, Request
from fastapi.responses import Response

from holdfast.api import parameters, routing, schemas_chunks, schemas_documents
from holdfast.api.access import OwnDocument, PathDocument, Reader
from holdfast.api.documents import ASKED, IfMatch, expected, taken
from holdfast.api.idempotency import IdempotencyKey, RouteReply, answer_once, fingerprint
from holdfast.api.parameters import Services
from holdfast.core.errors import ConflictError
from holdfast.service.access import Scope
from holdfast.service.records import ChunkChange
from holdfast.service.requests import RequestContext

router = routing.router("documents")

ChunkName = Annotated[
    str,
    Path(
        max_length=100,
        description="The `id` of a chunk, or the `chunk` of an edit.",
        json_schema_extra={"pattern": r"^[0-9a-f]{32}(~[0-9a-f]*|\.[0-9]{1,9}\.[0-9]{1,9})?$"},
    ),
]


@router.get("/documents/{document_id}/chunks")
def document_chunks(
    services: Services,
    caller: Reader,
    document: PathDocument,
    limit: parameters.Limit = 100,
    cursor: parameters.Cursor = None,
) -> schemas_chunks.Chunks:
    """Read the text of the published generation, piece by piece."""
    known = parameters.numbers(cursor, 3)
    after = (known[1], known[2]) if known is not None else (-1, -1)
    with_disabled = caller.may(Scope.WRITE)
    page = services.edits.chunks(document, after=after, limit=limit, with_disabled=with_disabled)
    generation = page.generation if page is not None else 0
    if known is not None and known[0] != generation:
        message = f"generation {generation} was published in the meantime; start again without a cursor"
        raise ConflictError(message, code="stale_cursor")
    pieces = [schemas_chunks.ChunkResponse.of(each) for each in (page.chunks if page is not None else ())]
    more = len(pieces) == limit
    last = f"{generation}.{pieces[-1].slice}.{pieces[-1].position}" if more else None
    return schemas_chunks.Chunks(generation=generation, chunks=pieces, next=last)


@router.patch(
    "/documents/{document_id}/chunks/{chunk}",
    status_code=202,
    response_model=schemas_documents.UploadResponse,
    responses=ASKED,
)
def change_chunk(
    request: Request,
    services: Services,
    document: OwnDocument,
    caller: Reader,
    chunk: ChunkName,
    body: schemas_chunks.ChunkChangeBody,
    key: IdempotencyKey = None,
    if_match: IfMatch = None,
) -> Response:
    """Edit the text of a chunk, switch it off or on, or restore it; each makes a new generation.

    The old generation answers until the new one is indexed. Only the new text is paid for.
    """
    most, generation = schemas_documents.nano_dollars(body.max_cost), expected(if_match)
    mine = RequestContext(caller.tenant, caller.actor, body.lane, body.priority, most, caller.restriction)
    chunk_change = ChunkChange(body.enabled, body.text, has_text="text" in body.model_fields_set)

    def do() -> RouteReply:
        change = services.edits.change(mine, document.id, chunk, chunk_change, expect_generation=generation)
        return taken(services, change)

    means = body.model_dump_json(exclude_unset=True)
    return answer_once(services, caller.tenant, key, lambda: fingerprint(request, means), do)


@router.get("/documents/{document_id}/edits")
def document_edits(services: Services, document: OwnDocument) -> schemas_chunks.EditList:
    """List what people changed in the chunks of a document, and whether the published generation has it."""
    views = services.edits.all_of(document)
    return schemas_chunks.EditList(edits=[schemas_chunks.EditResponse.of(each) for each in views])
