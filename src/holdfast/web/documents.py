"""The page of a document: its status and the reason, its history, and its text."""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.responses import Response

from holdfast.bootstrap import AppServices
from holdfast.core import languages
from holdfast.core.records import TENANT, Spent
from holdfast.core.states import LIVE
from holdfast.service import explanations, formatting
from holdfast.service.access import Scope
from holdfast.service.edits import EditState, EditView
from holdfast.service.records import (
    Document,
    ListedChunk,
    Noted,
    OrderPayment,
    RunDetail,
    Story,
    TaskDetail,
)
from holdfast.web import display, forms, rendering
from holdfast.web.page_access import Services

CHUNKS = 30
RUNS = 30
ENTRIES = 200
PAGES_SHOWN = 500
ENTRIES_OPEN = 12
BEFORE = 2
AT = r"^\d{1,9}\.\d{1,9}$"


@dataclass(frozen=True, slots=True)
class GenerationHistory:
    """A generation: its run, its tasks, what it paid, and how that was asked for."""

    detail: RunDetail
    tasks: Sequence[TaskDetail]
    exchanges: Sequence[OrderPayment]
    published: bool
    spent: Spent

    @property
    def asked(self) -> str:
        """What became of the request, and who made it."""
        run = self.detail.run
        return explanations.of_request(f"{run.disposition}:{self.detail.reason}", self.detail.actor, run.kind)

    @property
    def copied(self) -> int:
        """Chunks of an ended run for which no call was looked up: whole slices were known already."""
        known = self.spent.paid_calls + self.spent.reused_calls
        return 0 if self.is_live or known else sum(each.chunks for each in self.tasks)

    @property
    def is_live(self) -> bool:
        """True while it may still publish."""
        return self.detail.run.status in LIVE

    @property
    def waited(self) -> float | None:
        """Seconds in the queue."""
        run = self.detail.run
        return max(0.0, run.started_at - run.queued_at) if run.started_at else None

    @property
    def took(self) -> float | None:
        """Seconds of work."""
        run = self.detail.run
        return max(0.0, run.finished_at - run.started_at) if run.finished_at and run.started_at else None


@dataclass(frozen=True, slots=True)
class StoryEntry:
    """Something that happened, in words; `times` as often in a row, the last time at its own time."""

    noted: Noted
    sentence: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class ChunkView:
    """A chunk, and whether this generation paid for it; None when that is not known any more."""

    chunk: ListedChunk
    paid: bool | None


@dataclass(frozen=True, slots=True)
class Text:
    """Chunks in the order of the document; `follows` is where to go on."""

    generation: int
    passages: Sequence[ChunkView]
    follows: str | None


def _document(services: Services, who: rendering.Who, name: str) -> Document:
    return services.documents.get(who.tenant, name if TENANT.fullmatch(name) else "-")


PathDocument = Annotated[Document, Depends(_document)]
At = Annotated[str | None, Query(pattern=AT, description="Where in the document to start.")]
router = rendering.router()


@router.get("/documents/{name}")
def document(
    request: Request,
    services: Services,
    who: rendering.Who,
    record: PathDocument,
    at: At = None,
    heading: Annotated[str, Query(max_length=1000, description="A heading to start from.")] = "",
    page: Annotated[int, Query(ge=0, le=10**6, description="On which page it stands.")] = 0,
) -> Response:
    """Show a document: why it is as it is, what is safe to do, its story and its text."""
    if page and (start := services.history.heading(record, heading, page)) is not None:
        at = f"{start[0]}.{start[1]}"
    story = services.history.story(record, runs=RUNS)
    return rendering.page(
        request,
        who,
        "document.html",
        record.title,
        view=services.views.view(record),
        collection=services.collections.get(who.tenant, record.collection),
        advice=services.history.advice(record, story),
        chapters=_chapters(services, record, story),
        entries=_entries(story),
        shown=ENTRIES_OPEN,
        text=_text(services, record, at, with_disabled=who.may(Scope.WRITE)),
        lost_edits=_lost_edits(services, record) if who.may(Scope.WRITE) else (),
        at=at,
        follow_ups=services.actions.of_document(record, who.tenant),
        own_view=forms.outcome_view(services.actions.types),
        open_task=functools.partial(_open_task, now=services.operations.moment()),
        facts=_facts(record),
        family=services.documents.around(record),
        origins=services.sources.of_document(who.tenant, record.id),
        outline=services.originals.outline(record),
        flow_history=services.flows.of_document(record),
        readings=services.originals.pages(record, limit=PAGES_SHOWN).pages if record.page_qualities else (),
        metadata_text=json.dumps(record.metadata, indent=2, ensure_ascii=False),
    )


@router.get("/documents/{name}/text")
def text(services: Services, who: rendering.Who, document: PathDocument, at: At = None) -> Response:
    """Give more of the text."""
    may_write = who.may(Scope.WRITE)
    return rendering.part(
        "text.html",
        text=_text(services, document, at, before=0, with_disabled=may_write),
        view=services.views.view(document),
        at=at,
        may_write=may_write,
    )


def _chapters(services: AppServices, document: Document, story: Story | None) -> list[GenerationHistory]:
    if story is None:
        return []
    exchanges = services.history.exchanges(document, story)
    return [
        GenerationHistory(
            each,
            story.tasks.get(each.run.id, ()),
            exchanges.get(each.run.id, ()),
            document.visible and each.run.generation == document.published_generation,
            story.spent.get(each.run.id, Spent()),
        )
        for each in story.runs
    ]


def _entries(story: Story | None) -> list[StoryEntry]:
    """The latest entries of the journal, the newest first; the same several times in a row is one."""
    if story is None:
        return []
    names = explanations.names(story)
    entries: list[StoryEntry] = []
    for each in reversed(story.journal[-ENTRIES:]):
        sentence = explanations.of(each, names, story.head.kind)
        if entries and (entries[-1].noted.generation, entries[-1].sentence) == (each.generation, sentence):
            entries[-1] = replace(entries[-1], times=entries[-1].times + 1)
        else:
            entries.append(StoryEntry(each, sentence))
    return entries


def _open_task(detail: TaskDetail, now: float) -> str:
    """Who holds a task, or what it waits for."""
    task = detail.task
    match task.state.value:
        case "running" if task.lease_until < now:
            return f"{task.owner} (lease expired)"
        case "running":
            return f"{task.owner}"
        case "waiting":
            return f"waiting for {explanations.wait(task.waiting_for)}"
        case other:
            return other


def _lost_edits(services: AppServices, document: Document) -> list[EditView]:
    """The edits that the searchable version does not have."""
    if document.edits is None:
        return []
    return [each for each in services.edits.all_of(document) if each.state is not EditState.APPLIED]


def _text(
    services: AppServices,
    document: Document,
    at: str | None,
    *,
    before: int = BEFORE,
    with_disabled: bool,
) -> Text:
    slice_, position = (int(each) for each in at.split(".")) if at is not None else (0, 0)
    after = (slice_, position - 1 - before) if position - 1 - before >= 0 else (slice_ - 1, 10**9)
    page = services.edits.chunks(document, after=after, limit=CHUNKS + 1, with_disabled=with_disabled)
    if page is None:
        return Text(0, (), None)
    shown = page.chunks[:CHUNKS]
    by = services.history.payers(document, shown)
    run_id = _run_of(services, document, page.generation)
    rest = page.chunks[CHUNKS] if len(page.chunks) > CHUNKS else None
    follows = f"{rest.slice}.{rest.position}" if rest is not None else None
    return Text(page.generation, [ChunkView(each, _paid(each, by, run_id)) for each in shown], follows)


def _paid(chunk: ListedChunk, by: Mapping[str, str | None], run_id: str | None) -> bool | None:
    payer = by.get(chunk.call_key or "")
    return None if payer is None or run_id is None else payer == run_id


def _run_of(services: AppServices, document: Document, generation: int) -> str | None:
    """The run that made a generation, if its history was not pruned."""
    for each in services.history.runs(document):
        if each.run.generation == generation:
            return each.run.id
    return None


def _qualities(document: Document) -> str:
    return ", ".join(f"{number:,} {quality}" for quality, number in document.page_qualities.items())


def _facts(document: Document) -> list[tuple[str, Any]]:
    """What is known of a document, for a list of facts."""
    facts: list[tuple[str, Any]] = [
        (
            "Source",
            {"upload": "Upload", "text": "Text", "url": "URL", "member": "Archive or message"}.get(
                document.source, document.source
            ),
        ),
        ("File", document.name or None),
        ("URL", document.url),
        ("Format", (document.format or "").upper() or None),
        ("Language", languages.name_of(document.language) or None),
        ("Size", formatting.size(document.size)),
        ("Pages", formatting.number(document.pages)),
        ("Page quality", _qualities(document) if document.page_qualities.keys() - {"text"} else None),
        ("Chunks", formatting.number(document.chunks)),
        ("Added", display.moment(document.created_at)),
        ("Updated", display.moment(document.updated_at)),
    ]
    return [(name, value) for name, value in facts if value]
