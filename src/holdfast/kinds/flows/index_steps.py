"""A flow inside the kind `index`: which options it sets, and its steps over the chunks of a slice."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.core import keys, subjects
from holdfast.core.errors import BadRequestError, NotFoundError, WorkError
from holdfast.core.records import Spent
from holdfast.documents.parse import records
from holdfast.documents.parse.records import Format
from holdfast.engine.kinds import Supplies
from holdfast.engine.models import Model
from holdfast.engine.work import Work
from holdfast.kinds import model_calls, parser_choice
from holdfast.kinds.edited_chunks import FLOW, EditedPiece
from holdfast.kinds.flows import functions
from holdfast.kinds.flows.conditions import value_of
from holdfast.kinds.flows.functions import StepFunctions
from holdfast.kinds.flows.library import FlowLibrary
from holdfast.kinds.flows.runner import ChunkOutput, FlowOutput, FlowRunner, chunk_output
from holdfast.kinds.flows.step_calls import Answer
from holdfast.kinds.flows.steps import Flow, Step
from holdfast.kinds.log_phrases import many
from holdfast.ledger.pay import Call
from holdfast.store.base.database import Database
from holdfast.store.library import documents, step_outputs
from holdfast.store.protocol.slices import DoneSlice

# The language model that steps ask which name none, frozen into the run: [provider, model].
FLOW_MODEL = "flow_model"
STEPS = "steps"
# Chunks whose fields the API shows: those that `publish` names, and those that it does not.
FIELDS, OTHER_FIELDS = "fields", "other_fields"
MOST_FIELD = 8000


@dataclass(frozen=True, slots=True)
class FlowSetup:
    """What flows may use: models, functions of the setting FLOW_FUNCTIONS, and parsers of PARSERS."""

    supplies: Supplies = field(default_factory=Supplies)
    functions: StepFunctions = field(default_factory=StepFunctions)
    parsers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A chunk that is ready to be embedded: its edit, what is embedded and searched, and its fields."""

    edited: EditedPiece
    embed: str
    search: str
    data: Mapping[str, Any] = field(default_factory=dict)


def parse_options(flow: Flow, parsers: Sequence[str]) -> dict[str, Any]:
    """The options of indexing that the flow's parse step sets."""
    options = {name: each for step in flow.of_kind("parse") for name, each in step.params.items()}
    if "parsers" in options:
        options["parsers"] = parser_choice.resolved(options["parsers"], parsers, stored=True)
    return options


def split_options(flow: Flow, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The options of indexing that the flow's split and clean steps set for a document with these fields."""
    split = next((step for step in flow.of_kind("split") if step.is_for(fields)), None)
    clean = next((step for step in flow.of_kind("clean") if step.is_for(fields)), None)
    names = {"size": "chunk_size", "overlap": "overlap", "delimiter": "delimiter"}
    options = {names[name]: each for name, each in split.params.items()} if split is not None else {}
    if clean is not None:
        options["drop"] = tuple(clean.params["drop"])
    return options


def document_fields(
    document: documents.Document | None, form: Format, pages: int, language: str | None = None
) -> dict[str, Any]:
    """The fields of a document that conditions and templates may read."""
    return {
        "format": form.value,
        "pages": pages,
        "language": language,
        "title": "" if document is None else document.title,
        "name": "" if document is None else document.name,
        "metadata": {} if document is None else dict(document.metadata or {}),
    }


def stored_fields(document: documents.Document) -> dict[str, Any]:
    """The fields of a document as they are known from its published generation."""
    form = Format(document.format) if document.format else Format.TEXT
    pages = document.pages or 1
    return document_fields(document, form, pages if form in records.PAGED else 1, document.language)


def pages_of(outline: records.Outline) -> int:
    """The pages of a document; 1 for a format that has none."""
    return outline.units if outline.format in records.PAGED else 1


def reusable(earlier: Mapping[str, DoneSlice]) -> dict[str, DoneSlice]:
    """The slices on which no step failed: the others are tried again."""
    return {
        digest: done
        for digest, done in earlier.items()
        if not any(step.get("failed") for step in (done.result.get(FLOW) or {}).get(STEPS, ()))
    }


class IndexFlows:
    """The flows of runs of the kind `index`, in one process."""

    def __init__(self, db: Database, setup: FlowSetup) -> None:
        self._db = db
        self.setup = setup
        self._library = FlowLibrary(db)

    def of(self, work: Work) -> Flow | None:
        """The flow that the run was requested with; WorkError if it is gone."""
        flow_id = str(work.options.get(FLOW) or "")
        if not flow_id:
            return None
        try:
            return self._library.get(work.claim.tenant, flow_id)
        except (NotFoundError, BadRequestError) as error:
            raise WorkError(error.message, code="unknown_flow") from error

    def parse_options(self, flow: Flow | None) -> dict[str, Any]:
        """The options of indexing that are known before a document is opened."""
        return {} if flow is None else parse_options(flow, self.setup.parsers)

    def of_slice(self, work: Work, form: Format) -> "SliceFlow":
        """The flow of a slice, which may be none."""
        flow = self.of(work)
        if flow is None:
            return SliceFlow(None, self._db, self.setup, {})
        name = subjects.document_id(work.claim.subject)
        document = documents.document(self._db, work.claim.tenant, name)
        pages = int(work.payload.get("document_pages", 1))
        return SliceFlow(flow, self._db, self.setup, document_fields(document, form, pages))


@dataclass(frozen=True, slots=True)
class SliceFlow:
    """The flow of a slice, if it has one. `fields` are those of the document, known before it is cut."""

    flow: Flow | None
    db: Database
    setup: FlowSetup
    fields: Mapping[str, Any]

    @property
    def changes(self) -> dict[str, Any]:
        """The options of indexing that the flow sets."""
        if self.flow is None:
            return {}
        return parse_options(self.flow, self.setup.parsers) | split_options(self.flow, self.fields)

    @property
    def parts(self) -> tuple[str, ...]:
        """What the chunks of a slice depend on beside its pages: the steps, and what they read around it."""
        if self.flow is None:
            return ()
        read = [*sorted(self.flow.document_reads), *(["pages"] if self.flow.reads_pages else [])]
        values = {name: value_of(self.fields, name) for name in read}
        return self.flow.working_digest, keys.canonical(values)

    def carried_out(
        self, work: Work, pieces: Sequence[EditedPiece], language: str | None
    ) -> tuple[list[PreparedChunk], dict[str, Any]]:
        """The chunks after all steps, and the facts about the steps for the result of the slice."""
        if self.flow is None:
            return [PreparedChunk(each, each.piece.text, each.piece.text) for each in pieces], {}
        tools = WorkTools(work, self.db, self.setup)
        runner = FlowRunner(self.flow, tools, {**self.fields, "language": language})
        output = runner.run([chunk_fields(each) for each in pieces])
        for report in output.steps:
            paid = f"{report.paid_calls} paid, {report.reused_calls} reused"
            failed = f", {report.failed} failed and skipped" if report.failed else ""
            work.note(f"step {report.name}: {many(report.items, report.per)}, {paid}{failed}")
        steps = [each.as_json() for each in output.steps]
        return prepared(self.flow, pieces, output), {FLOW: {"id": self.flow.id, STEPS: steps}}


def chunk_fields(edited: EditedPiece) -> dict[str, Any]:
    """The fields of a chunk that every one has."""
    piece = edited.piece
    return {
        "text": piece.text,
        "page": piece.page,
        "headings": list(piece.headings),
        "position": edited.position,
    }


def stored_output(
    flow: Flow, document: Mapping[str, Any], text: str, page: int | None, position: int, data: Any
) -> ChunkOutput:
    """What is embedded and searched of a stored chunk with these data, as the steps of its flow made it."""
    about = data if isinstance(data, dict) else {}
    chunk = {"text": text, "page": page, "headings": about.get("headings") or [], "position": position}
    return chunk_output(flow, document, chunk, {**about.get(OTHER_FIELDS, {}), **about.get(FIELDS, {})})


def prepared(flow: Flow, pieces: Sequence[EditedPiece], output: FlowOutput) -> list[PreparedChunk]:
    """The chunks that are published, ready to be embedded."""
    names = frozenset(flow.shown_fields())
    chunks = []
    for edited, chunk in zip(pieces, output.chunks, strict=True):
        if not chunk.is_published:
            continue
        # A field of the document is shown with each of its chunks; a long one is not kept with all of them.
        of_chunk = {
            name: value
            for name, value in chunk.fields.items()
            if name not in output.document or len(keys.canonical({"v": value})) <= MOST_FIELD
        }
        shown = {name: value for name, value in of_chunk.items() if name in names}
        others = {name: value for name, value in of_chunk.items() if name not in names}
        data = {FIELDS: shown, OTHER_FIELDS: others}
        chunks.append(
            PreparedChunk(
                edited, chunk.embed, chunk.search, {name: each for name, each in data.items() if each}
            )
        )
    return chunks


def model_of(supplies: Supplies, step: Step, usual: Sequence[str] = ()) -> Model:
    """The model that the step asks: the one it names, or the usual one, of the run or of the settings."""
    named = {name: step.params[name] for name in ("provider", "model") if name in step.params}
    if "provider" not in named and len(usual) == 2:
        return model_calls.named(supplies, usual[0], str(named.get("model", usual[1])))
    return model_calls.chosen(supplies, named)


class WorkTools:
    """The steps of a slice, paid through the ledger under its claim."""

    def __init__(self, work: Work, db: Database, setup: FlowSetup) -> None:
        self._work = work
        self._db = db
        self._setup = setup

    @property
    def spent(self) -> Spent:
        """What the slice has paid."""
        return self._work.spent

    def now(self) -> float:
        """Seconds."""
        return time.monotonic()

    def model(self, step: Step) -> Model:
        """The model that the step asks; WorkError where it is not set up here."""
        try:
            return model_of(self._setup.supplies, step, self._work.options.get(FLOW_MODEL) or ())
        except BadRequestError as error:  # the settings of this worker have changed since it was asked for
            raise WorkError(error.message, code=error.code) from error

    def pay(self, calls: Sequence[Call]) -> Sequence[Answer]:
        """The answers, each paid once."""
        self._work.check()
        return model_calls.paid(self._work, calls)

    def call(self, step: Step, fields: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
        """What the function returned, now or before."""
        names = [functions.key_of(step, each) for each in fields]
        outputs: dict[str, Any] = step_outputs.known(
            self._db, self._work.claim.tenant, names, self._work.claim
        )
        missing = {name: each for name, each in zip(names, fields, strict=True) if name not in outputs}
        new = self._setup.functions.outputs(step, missing, self._work.check)
        good = {name: each for name, each in new.items() if not isinstance(each, WorkError)}
        step_outputs.keep(self._db, self._work.claim, good)
        return [(outputs | new)[name] for name in names]

    def report(self, step: Step, done: int, total: int) -> None:
        """The progress shows the step while it is carried out."""
        if total > 1:
            self._work.progress(0, total, unit="chunks", stages={step.name: (done, total)})
