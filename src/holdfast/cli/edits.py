"""`holdfast documents chunks`, `edit-chunk` and `edits`: what a document says, and what people changed."""

import sys
from pathlib import Path

import typer

from holdfast.api import schemas_chunks
from holdfast.cli import context, costs, terminal
from holdfast.cli.exit_codes import Exit, exit_for_answer
from holdfast.core import subjects
from holdfast.core.errors import BadRequestError
from holdfast.core.states import Disposition, Lane
from holdfast.service.billing import refusal
from holdfast.service.records import ChunkChange, ListedChunk
from holdfast.service.requests import RequestContext

STEP = 500
LINE = 60


def list_chunks(tenant: str, document: str, *, most: int, as_json: bool) -> None:
    """The chunks of the published version are on standard output, with those that are switched off."""
    chunks: list[ListedChunk] = []
    with context.services() as services:
        record, after = services.documents.get(tenant, subjects.document_id(document)), (-1, -1)
        while len(chunks) < most:
            limit = min(STEP, most - len(chunks))
            page = services.edits.chunks(record, after=after, limit=limit)
            if page is None or not page.chunks:
                break
            chunks += page.chunks
            after = (page.chunks[-1].slice, page.chunks[-1].position)
    if as_json:
        shown = [schemas_chunks.ChunkResponse.of(each).model_dump(mode="json") for each in chunks]
        terminal.show_json({"chunks": shown})
        return
    for each in chunks:
        state = "off" if not each.enabled else "edited" if each.is_edited else "-"
        typer.echo(f"{each.id}  page {each.page or '-'}  {state:<6}  {_short(each.text)}")


def list_edits(tenant: str, document: str, *, as_json: bool) -> None:
    """The edits of the document are on standard output, with what became of each."""
    with context.services() as services:
        record = services.documents.get(tenant, subjects.document_id(document))
        views = services.edits.all_of(record)
    if as_json:
        shown = [schemas_chunks.EditResponse.of(each).model_dump(mode="json") for each in views]
        terminal.show_json({"edits": shown})
        return
    for view in views:
        edit = view.edit
        change = "off" if not edit.enabled else _short(edit.text or "")
        typer.echo(f"{view.id}  page {edit.page or '-'}  {view.sentence}  by {edit.actor or '-'}: {change}")
    if not views:
        typer.echo("no edits")


def edit_chunk(
    tenant: str,
    document: str,
    chunk: str,
    chunk_change: ChunkChange,
    *,
    max_cost: float | None,
    as_json: bool,
) -> Exit:
    """The chunk is changed in a new version of the document, which is requested."""
    wish = RequestContext(tenant, context.actor(), Lane.INTERACTIVE, max_cost=costs.nano_dollars(max_cost))
    with context.services(None) as services:
        answer = services.edits.change(wish, subjects.document_id(document), chunk, chunk_change).answer
    if as_json:
        terminal.show_json(answer)
    elif answer.disposition is Disposition.REFUSED:
        terminal.say(f"refused: {refusal(answer.reason)[1]}")
    elif answer.created:
        terminal.say(f"version {answer.generation} of {document} is queued; the old one answers until then")
    else:
        terminal.say(f"{answer.disposition}: the document has this edit already")
    return exit_for_answer(answer.disposition)


def text_of(text: str | None, file: Path | None) -> str | None:
    """The text of an option or of a file; None for neither; BadRequestError for both."""
    if file is None:
        return text
    if text is not None:
        raise BadRequestError("give --text or --text-file, not both", code="bad_option")
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequestError(f"the file {file} cannot be read as UTF-8", code="bad_option") from error


def _short(text: str) -> str:
    line = terminal.one_line(text)
    return line if len(line) <= LINE else f"{line[: LINE - 1]}…"
