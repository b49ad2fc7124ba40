"""A dry run of a flow: its steps over the first chunks of one document, with what each of them makes.

Nothing is indexed, published or changed. What steps ask a model is paid for like a question, once: a
collection that takes the flow afterwards pays nothing for it again. With `pay` false only what the ledger
knows is shown. The document is read from its file, with the options that the flow sets; if that cannot be
done here (a scan, a paid parser, a password) from the text of its published version.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.core.errors import HoldfastError, MustWaitError, WorkError
from holdfast.core.records import Spent
from holdfast.core.states import CallState
from holdfast.documents.chunk import ChunkText
from holdfast.engine.engine import Engine
from holdfast.engine.models import Model
from holdfast.kinds import index, model_calls
from holdfast.kinds.edited_chunks import EditedPiece
from holdfast.kinds.flows import functions, index_steps
from holdfast.kinds.flows.index_steps import FlowSetup
from holdfast.kinds.flows.runner import ChunkOutput, FlowOutput, FlowRunner, StepReport, UnknownOutput
from holdfast.kinds.flows.step_calls import Answer, GuessedText
from holdfast.kinds.flows.steps import DOCUMENT, SKIP, Flow, Step
from holdfast.ledger.estimates import Forecast, Foresight
from holdfast.ledger.pay import Call
from holdfast.ledger.query_payer import QueryPayer
from holdfast.service import ask
from holdfast.service.collections import Collections
from holdfast.service.document_reading import DocumentReading, ReadDocument
from holdfast.service.flows import Flows
from holdfast.store.library import step_outputs
from holdfast.store.library.documents import Document

PATIENCE = 80.0  # seconds for all that is paid
MOST_CHUNKS = 50


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """Which flow, over how many chunks of which document. `max_cost` is in nano-dollars."""

    flow: Flow
    document: Document
    chunks: int = 3
    pay: bool = True
    max_cost: int | None = None


@dataclass(frozen=True, slots=True)
class TrialStep:
    """A step with its outputs: one for each chunk that was tried, or one for the document.

    An output that is not known (nobody has paid for it, the step failed, its condition does not hold) is
    None. `report` has what it took; a step that asks nobody and calls nothing has none.
    """

    step: Step
    outputs: Sequence[Any]
    report: StepReport | None = None


@dataclass(frozen=True, slots=True)
class FlowTrial:
    """What the steps made. `chunks` of `of` were tried; `of` is None if the rest was not read.

    `unpaid` is what a dry run that pays would pay for, as far as that is known.
    """

    flow: str
    document: str
    pieces: Sequence[ChunkText]
    of: int | None
    steps: Sequence[TrialStep]
    spent: Spent
    unpaid: Forecast = field(default_factory=Forecast)


class FlowTrials:
    """Dry runs, each within the time limit of an estimate for reading."""

    def __init__(
        self, engine: Engine, flows: Flows, collections: Collections, reading: DocumentReading
    ) -> None:
        self._engine = engine
        self._flows = flows
        self._collections = collections
        self._reading = reading

    def run(self, tenant: str, request: TrialRequest) -> FlowTrial:
        """The outputs of the steps; HoldfastError where the document or a model cannot be had.

        What a step fails on is in its report, whether the flow would go on or not.
        """
        flow, document = request.flow, request.document
        for step in flow.of_kind("enrich", "extract"):
            index_steps.model_of(self._flows.setup.supplies, step)
        collection = self._collections.get(tenant, document.collection)
        chosen = index.choices(self._collections.choices(collection), document.options)
        chosen = replace(chosen, **index_steps.parse_options(flow, self._flows.setup.parsers))
        read = self._reading.by_flow(tenant, document, flow, chosen)
        tools = TrialTools(self._engine, tenant, document.collection, self._flows.setup, request)
        lenient = replace(flow, steps=[replace(step, on_error=SKIP) for step in flow.steps])
        edited = [EditedPiece(at, piece) for at, piece in enumerate(read.pieces)]
        output = FlowRunner(lenient, tools, read.fields).run(
            [index_steps.chunk_fields(each) for each in edited], most=request.chunks
        )
        pieces = read.pieces[: request.chunks]
        parts = self._engine.parts
        foresight = Foresight(self._engine.db, parts.providers, parts.prices, tenant)
        return FlowTrial(
            flow.id,
            document.id,
            pieces,
            len(read.pieces) if read.is_whole else None,
            [_shown(step, read, pieces, output) for step in flow.steps],
            tools.spent,
            foresight.of(tools.unpaid),
        )


def _shown(step: Step, read: ReadDocument, pieces: Sequence[ChunkText], output: FlowOutput) -> TrialStep:
    if step.makes_field:
        report = next(each for each in output.steps if each.number == step.number)
        if step.per == DOCUMENT:
            return TrialStep(step, [_known(output.document, step.name)], report)
        return TrialStep(step, [_known(chunk.fields, step.name) for chunk in output.chunks], report)
    return TrialStep(step, _of_built_in(step, read, pieces, output.chunks))


def _of_built_in(
    step: Step, read: ReadDocument, pieces: Sequence[ChunkText], chunks: Sequence[ChunkOutput]
) -> Sequence[Any]:
    names = ("format", "pages", "language")
    match step.kind:
        case "parse":
            return [{name: read.fields[name] for name in names}]
        case "embed":
            return [None if _has_guess(chunk.fields, step.reads) else chunk.embed for chunk in chunks]
        case "publish":
            fields = step.params["fields"]
            return [
                {name: value for name in fields if (value := _known(chunk.fields, name)) is not None}
                if chunk.is_published
                else None
                for chunk in chunks
            ]
        case _:
            return [piece.text for piece in pieces]


def _known(fields: Mapping[str, Any], name: str) -> Any:
    value = fields.get(name)
    return None if isinstance(value, GuessedText) else value


def _has_guess(fields: Mapping[str, Any], names: Iterable[str]) -> bool:
    return any(isinstance(fields.get(name.partition(".")[0]), GuessedText) for name in names)


class LedgerPayer:
    """Pays as somebody who waits for the answers."""

    def __init__(self, engine: Engine, tenant: str, collection: str) -> None:
        self._ledger = engine.ledger
        self.holder = QueryPayer(engine.host, tenant, collection, PATIENCE)
        self.spent = Spent()

    def pay(self, calls: Sequence[Call]) -> Sequence[bytes]:
        """The results of the calls, each paid once."""
        if not calls:
            return ()
        try:
            payment = self._ledger.pay(self.holder, calls)
        except MustWaitError as error:
            raise ask.unpaid(error) from error
        self.spent += payment.spent
        return payment.results


class TrialTools:
    """The steps of a dry run, paid for by its caller, or not at all."""

    def __init__(
        self, engine: Engine, tenant: str, collection: str, setup: FlowSetup, request: TrialRequest
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._setup = setup
        self._request = request
        self._payer = LedgerPayer(engine, tenant, collection)
        self.unpaid: list[Call] = []

    @property
    def spent(self) -> Spent:
        """What was paid until now."""
        return self._payer.spent

    def now(self) -> float:
        """Seconds."""
        return time.monotonic()

    def model(self, step: Step) -> Model:
        """The model that the step asks."""
        return index_steps.model_of(self._setup.supplies, step)

    def pay(self, calls: Sequence[Call]) -> Sequence[Answer]:
        """The answers, paid for now or before; None for one that is not to be paid for."""
        states = self._engine.ledger.states(self._tenant, calls)
        is_new = [state is not CallState.SETTLED for state in states]
        new = [call for call, each in zip(calls, is_new, strict=True) if each]
        if self._request.pay:
            self._check_cost(new)
            return model_calls.paid(self._payer, calls)
        self.unpaid += new
        known = [call for call, each in zip(calls, is_new, strict=True) if not each]
        answers = iter(model_calls.paid(self._payer, known))
        return [None if each else next(answers) for each in is_new]

    def _check_cost(self, calls: Sequence[Call]) -> None:
        most = self._request.max_cost
        if most is None or not calls:
            return
        costs = [self._engine.ledger.estimate(call) for call in calls]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs):
            message = "the dry run has a `max_cost`, but no price is known for a model that it asks"
            raise HoldfastError(message, code="unpriced")
        if self.spent.paid + sum(known) > most:
            message = "the dry run may cost more than `max_cost`; raise it, or try fewer chunks (`chunks`)"
            raise HoldfastError(message, code="over_budget")

    def call(self, step: Step, fields: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
        """What the function returned before, or returns now; nothing of it is kept."""
        names = [functions.key_of(step, each) for each in fields]
        known: dict[str, Any] = step_outputs.known(self._engine.db, self._tenant, names)
        missing = {name: each for name, each in zip(names, fields, strict=True) if name not in known}
        if not self._request.pay:
            return [known.get(name, UnknownOutput()) for name in names]
        try:
            new = self._setup.functions.outputs(step, missing, self._payer.holder.check)
        except MustWaitError as error:
            raise WorkError("the functions of the dry run took too long", code="step_failed") from error
        return [(known | new)[name] for name in names]

    def report(self, step: Step, done: int, total: int) -> None:
        """Nobody waits for it."""
