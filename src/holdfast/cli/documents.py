"""`holdfast collections` and `holdfast documents`: list, show, delete."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from holdfast.api import schemas_documents
from holdfast.cli import context, terminal
from holdfast.cli.exit_codes import CommandError, Exit
from holdfast.core import subjects
from holdfast.core.filters import Filter
from holdfast.core.states import shown
from holdfast.kinds.index import Choices
from holdfast.service import formatting, gap_sentences
from holdfast.service.document_views import STATUSES, DocumentView, Viewing
from holdfast.service.records import Collection, Counts, DocumentQuery, LinkedDocument, SortKey
from holdfast.service.requests import RequestContext

MOST_PAGES = 100_000
STEP = 200


@dataclass(frozen=True, slots=True)
class DocumentSelection:
    """Which documents of a tenant, and how many at most."""

    collection: str | None = None
    state: str | None = None
    title: str = ""
    most: int = 100
    filter: Filter | None = None
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class DescribedDocument:
    """What is to be known about a document; what is None stays."""

    metadata: Mapping[str, Any] | None
    labels: Sequence[str] | None
    external_id: str | None


def list_collections(tenant: str, *, as_json: bool) -> None:
    """Every collection of the tenant is on standard output."""
    with context.services(None) as services:
        collections, counts = services.collections.all(tenant), services.views.counts(tenant)
        chosen = {each.id: services.collections.choices(each) for each in collections}
    if as_json:
        terminal.show_json(
            [_fields(each, chosen[each.id], counts.get(each.id, Counts({}))) for each in collections]
        )
        return
    console = terminal.console()
    if not collections:
        console.print(
            f"tenant {tenant} has no collections; create one with: holdfast index PATH", markup=False
        )
        return
    numbers = ("documents", "chunks")
    table = terminal.table("collection", "title", *numbers, "states", "provider", "created", numbers=numbers)
    for each in collections:
        count = counts.get(each.id, Counts({}))
        cells = (
            each.id,
            each.title,
            count.documents,
            count.chunks,
            _states(count),
            chosen[each.id].provider_name,
        )
        table.add_row(*terminal.cells(*cells, terminal.moment(each.created_at)))
    console.print(table)


def show_collection(tenant: str, collection: str, *, as_json: bool) -> None:
    """The collection is on standard output."""
    with context.services(None) as services:
        record = services.collections.get(tenant, collection)
        fields = _fields(
            record, services.collections.choices(record), services.views.count(tenant, collection)
        )
    _print_fields(fields, as_json=as_json)


def delete_collection(tenant: str, collection: str, *, yes: bool, as_json: bool) -> None:
    """The collection is gone for every reader."""
    with context.services(None) as services:
        record = services.collections.get(tenant, collection)
        number = formatting.count(services.views.count(tenant, collection).documents, "document")
        _confirm(f"delete collection {collection} ({record.title}) with {number}", yes=yes)
        gone = services.collections.delete(RequestContext(tenant, context.actor()), collection)
    if as_json:
        terminal.show_json({"collection": collection, "deleted": gone.deleted, "to_follow": gone.to_follow})
    else:
        typer.echo(f"deleted collection {collection} with {formatting.count(gone.deleted, 'document')}")


def list_documents(tenant: str, selection: DocumentSelection, *, as_json: bool) -> None:
    """The documents are on standard output, those that need a person at the top."""
    with context.services(None) as services:
        if selection.collection is not None:
            names = [services.collections.get(tenant, selection.collection).id]
        else:
            names = [each.id for each in services.collections.all(tenant)]
        views = list(_matching(services.views, tenant, names, selection))
    if as_json:
        terminal.show_json([_shape(view) for view in views])
        return
    console = terminal.console()
    if not views:
        console.print("no document matches; see: holdfast collections list")
        return
    numbers = ("pages", "chunks")
    table = terminal.table(
        "document", "title", "collection", "state", *numbers, "error or gaps", numbers=numbers
    )
    for view in views:
        document, run = view.document, view.standing.run if view.standing is not None else None
        error = (run.error_code if run is not None else None) or gap_sentences.summary(document.gaps) or "-"
        pages = "-" if document.pages is None else document.pages
        chunks = "-" if document.chunks is None else document.chunks
        cells = (document.id, document.title, document.collection, view.word, pages, chunks, error)
        table.add_row(*terminal.cells(*map(_plain, cells)))
    console.print(table)
    if len(views) == selection.most:
        console.print(f"first {selection.most} shown; use --most to see more", style="quiet")


def _matching(
    viewing: Viewing, tenant: str, names: Sequence[str], selection: DocumentSelection
) -> Iterator[DocumentView]:
    left = selection.most
    status = STATUSES[selection.state] if selection.state is not None else None
    for name in names:
        position = None
        while left:
            query = DocumentQuery(
                tenant,
                name,
                SortKey.STATUS,
                status=status,
                q=selection.title,
                after=position,
                limit=min(left, STEP),
                filter=selection.filter,
                external_id=selection.external_id,
            )
            page, position = viewing.page(query)
            yield from page
            left -= len(page)
            if position is None:
                break


def show_document(tenant: str, document: str, *, as_json: bool) -> None:
    """The document is on standard output."""
    with context.services(None) as services:
        record = services.documents.get(tenant, _id(document))
        view, family = services.views.view(record), services.documents.around(record)
    fields = _shape(view) | schemas_documents.Members.of(family).model_dump(mode="json")
    if not as_json:
        for name in ("parents", "children"):
            fields[name] = _linked(getattr(family, name))
    _print_fields(fields, as_json=as_json)


def list_pages(tenant: str, document: str, *, as_json: bool) -> None:
    """The pages of the document are on standard output."""
    with context.services(None) as services:
        record = services.documents.get(tenant, _id(document))
        listed = services.originals.pages(record, limit=MOST_PAGES).pages
    names = ("page", "quality", "confidence", "words", "gap")
    rows = [{name: getattr(each, name) for name in names} for each in listed]
    if as_json:
        terminal.show_json(rows)
        return
    if not rows:
        typer.echo("no pages: not indexed yet, or a format without pages")
        return
    table = terminal.table(*names, numbers=("page", "confidence", "words"))
    for row in rows:
        table.add_row(*terminal.cells(*("-" if value is None else _plain(value) for value in row.values())))
    terminal.console().print(table)


def _linked(documents: Sequence[LinkedDocument]) -> str | None:
    return ", ".join(f"{each.id} ({each.title}, {each.index_status})" for each in documents) or None


def describe_document(tenant: str, document: str, described: DescribedDocument, *, as_json: bool) -> None:
    """The document has this metadata, labels and external id, where given; it is on standard output."""
    wish = RequestContext(tenant=tenant, actor=context.actor())
    with context.services(None) as services:
        changed = services.documents.change(
            wish,
            _id(document),
            metadata=described.metadata,
            labels=described.labels,
            external_id=described.external_id,
        )
        view = services.views.view(changed.document)
    _print_fields(_shape(view), as_json=as_json)


def delete_documents(tenant: str, ids: Sequence[str], *, yes: bool, as_json: bool) -> None:
    """The documents are gone for every reader; none is, if one of them is not there."""
    with context.services(None) as services:
        documents = [services.documents.get(tenant, _id(each)) for each in ids]
        titles = ", ".join(f"{each.id} ({_plain(each.title)})" for each in documents)
        _confirm(f"delete {titles}", yes=yes)
        for each in documents:
            services.documents.delete(RequestContext(tenant, context.actor()), each.id)
    if as_json:
        terminal.show_json({"deleted": [each.id for each in documents]})
    else:
        typer.echo(f"deleted {titles}")


def _confirm(what: str, *, yes: bool) -> None:
    """Return if a person agrees; a script has to say --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(
            f"{what}? Confirm with --yes when not on a terminal", Exit.USAGE, code="not_confirmed"
        )
    if not typer.confirm(f"{what}?"):
        raise CommandError("nothing was deleted", Exit.REFUSED, code="not_confirmed")


def _id(text: str) -> str:
    return subjects.document_id(text)


def _plain(value: object) -> str:
    return terminal.one_line(str(value))


def _states(counts: Counts) -> str:
    return (
        ", ".join(f"{number} {shown(subjects.INDEX, status)}" for status, number in counts.by_status.items())
        or "-"
    )


def _fields(collection: Collection, chosen: Choices, counts: Counts) -> dict[str, object]:
    return {
        "id": collection.id,
        "title": collection.title,
        "options": dict(collection.options),
        "provider": chosen.provider_name,
        "model": chosen.model,
        "documents": counts.documents,
        "states": {shown(subjects.INDEX, status): number for status, number in counts.by_status.items()},
        "chunks": counts.chunks,
        "created_at": terminal.moment(collection.created_at),
    }


def _shape(view: DocumentView) -> dict[str, object]:
    return schemas_documents.DocumentResponse.of(view).model_dump(mode="json")


def _print_fields(fields: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        terminal.show_json(fields)
        return
    width = max(map(len, fields))
    for name, value in fields.items():
        typer.echo(f"{name:<{width}}  {'-' if value is None else _plain(value)}")
