"""The page of a collection: its documents as a live list, and its indexing options."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from fastapi.responses import Response

from holdfast.core.records import TENANT
from holdfast.core.text import plain
from holdfast.documents.parse.custom import OURS
from holdfast.kinds import parser_choice
from holdfast.kinds.index import Choices
from holdfast.service.access import Scope
from holdfast.service.document_views import MOST_CURSOR, STATUSES, DocumentView, position_of
from holdfast.service.records import Collection, Counts, DocumentQuery, SortKey
from holdfast.web import display, rendering
from holdfast.web.page_access import Services

# A filter of the web UI alone: what was imported and has no content here rests in one of two statuses.
IMPORTED = "imported"
ROWS = 100
MOST_ROWS = 500
MOST_IDS = 200
SORTS = {
    "-updated": "Newest first",
    "updated": "Oldest first",
    "title": "Title",
    "status": "Needs attention first",
    "-pages": "Most pages",
    "-cost": "Most expensive",
}
OPTIONS = {
    "chunk_size": ("Chunk size", "In tokens. Smaller chunks are more precise and cost more calls."),
    "overlap": ("Overlap", "Tokens shared by neighbouring chunks."),
    "slice_pages": ("Pages per part", "How many pages one task processes."),
    "slice_rows": ("Rows per part", "How many table rows one task processes."),
    "ocr": ("OCR", "auto, on or off: reads pages without text."),
    "ocr_languages": ("OCR languages", "Languages of scanned pages, such as eng+deu."),
    "language": ("Language", "auto, or a code such as de: by its rules words are searched."),
    "delimiter": ("Delimiter", "Text that always ends a chunk. Optional."),
    "provider": ("Provider", "The embedding provider, by its name in the settings."),
    "model": ("Model", "The embedding model."),
}


@dataclass(frozen=True, slots=True)
class DocumentFilter:
    """Which documents are shown, as the URL of the page says."""

    status: str
    q: str
    sort: str

    def document_query(self, collection: Collection, cursor: str | None, limit: int = ROWS) -> DocumentQuery:
        """The same for the store."""
        order = SortKey(self.sort.removeprefix("-"))
        return DocumentQuery(
            collection.tenant,
            collection.id,
            order,
            self.sort.startswith("-"),
            STATUSES.get(self.status),
            plain(self.q),
            position_of(order, cursor),
            limit,
            (self.status == IMPORTED) if self.status else None,
        )

    def has(self, view: DocumentView) -> bool:
        """True for a document that is still among those that are shown."""
        fits = not self.status or (IMPORTED if view.is_imported else view.word) == self.status
        return fits and plain(self.q).lower() in view.document.title.lower()

    def query(self, **changes: str) -> str:
        """The query string of the URL, with these changes."""
        said: Mapping[str, str] = {"status": self.status, "q": self.q, "sort": self.sort, **changes}
        parameters = {
            name: value for name, value in said.items() if value and (name, value) != ("sort", "-updated")
        }
        return f"?{urlencode(parameters)}" if parameters else ""


@dataclass(frozen=True, slots=True)
class Setting:
    """An option of a collection, with the value that is in force."""

    name: str
    label: str
    hint: str
    value: int | str

    @property
    def is_number(self) -> bool:
        """True for what is counted."""
        return isinstance(self.value, int)


@dataclass(frozen=True, slots=True)
class ParserSetting:
    """Which parser reads a format: empty if the first that accepts a file does."""

    format: str
    value: str
    names: tuple[str, ...]


def _filter(status: str = "", q: str = "", sort: str = "") -> DocumentFilter:
    return DocumentFilter(
        status if status in {*STATUSES, IMPORTED} else "",
        q[:500].strip(),
        sort if sort in SORTS else "-updated",
    )


def _settings(chosen: Choices) -> list[Setting]:
    values = {name: getattr(chosen, name) for name in OPTIONS} | {"provider": chosen.provider_name}
    return [Setting(name, label, hint, values[name]) for name, (label, hint) in OPTIONS.items()]


def _parsers(chosen: Choices) -> list[ParserSetting]:
    """The parsers by format, with the names that there are; none where there is nothing to choose."""
    if not (chosen.own_parsers or chosen.parsers):
        return []
    # A name that has gone from the settings stays as long as it is chosen: to change another changes all.
    names = tuple(dict.fromkeys((OURS, *chosen.own_parsers, *chosen.parsers.values())))
    return [ParserSetting(each, chosen.parsers.get(each, ""), names) for each in parser_choice.FORMATS]


router = rendering.router()


def _collection(services: Services, who: rendering.Who, name: str) -> Collection:
    return services.collections.get(who.tenant, name if TENANT.fullmatch(name) else "-")


PathCollection = Annotated[Collection, Depends(_collection)]
Chosen = Annotated[DocumentFilter, Depends(_filter)]


@router.get("/collections/{name}")
def collection(
    request: Request, services: Services, who: rendering.Who, record: PathCollection, chosen: Chosen
) -> Response:
    """Show a collection with the first of its documents; the others are fetched as one scrolls."""
    views, follows = services.views.listed(chosen.document_query(record, None))
    counts = services.views.count(who.tenant, record.id)
    options = services.collections.choices(record)
    return rendering.page(
        request,
        who,
        "collection.html",
        record.title,
        collection=record,
        filter=chosen,
        sorts=SORTS,
        views=views,
        follows=follows,
        counts=counts,
        chips=_chips(counts),
        settings=_settings(options),
        parsers=_parsers(options),
        flows=[each.id for each in services.flows.all(who.tenant)],
        flow=options.flow,
        actions=len(services.actions.all(who.tenant, record.id)),
        is_blank=not views and not counts.documents,
        most_bytes=services.settings.most_bytes,
    )


@router.get("/collections/{name}/rows")
def rows(
    services: Services,
    who: rendering.Who,
    collection: PathCollection,
    chosen: Chosen,
    cursor: Annotated[str | None, Query(max_length=MOST_CURSOR)] = None,
    ids: str | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = ROWS,
) -> Response:
    """Give more rows of the list, or of certain documents those that are in it now."""
    follows = None
    if ids is not None:
        named = [each for each in ids.split(",")[:MOST_IDS] if TENANT.fullmatch(each)]
        views = [each for each in services.views.some(who.tenant, collection.id, named) if chosen.has(each)]
    else:
        views, follows = services.views.listed(chosen.document_query(collection, cursor, limit))
    return rendering.part("rows.html", views=views, follows=follows, may_write=who.may(Scope.WRITE))


@router.get("/collections/{name}/counts")
def counted(services: Services, who: rendering.Who, collection: PathCollection, chosen: Chosen) -> Response:
    """Give the numbers at the top of the list as they are now."""
    counts = services.views.count(who.tenant, collection.id)
    return rendering.part(
        "counts.html", collection=collection, counts=counts, chips=_chips(counts), filter=chosen
    )


def _chips(counts: Counts) -> list[tuple[str, int]]:
    """The statuses that can be filtered by, with how many documents each filter lists."""
    chips = [
        (display.status(status), counts.of(status) - counts.imported.get(status, 0))
        for status in STATUSES.values()
    ]
    imported = sum(counts.imported.values())
    return [*chips, (IMPORTED, imported)] if imported else chips
