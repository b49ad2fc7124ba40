"""A flow carried out without paying: the calls that a run would make, as far as they are known.

What the ledger has answers as it would in a run. An answer that nobody has paid for yet counts as
long as it may be, so that what is built on it is estimated rather too high than too low.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.records import Spent
from holdfast.core.states import CallState
from holdfast.documents.chunk import ChunkText
from holdfast.engine.models import Model
from holdfast.kinds.edited_chunks import EditedPiece
from holdfast.kinds.flows import functions, index_steps
from holdfast.kinds.flows.index_steps import FlowSetup
from holdfast.kinds.flows.runner import FlowRunner, UnknownOutput
from holdfast.kinds.flows.step_calls import Answer
from holdfast.kinds.flows.steps import Flow, Step
from holdfast.ledger.pay import Call
from holdfast.store.base.database import Database
from holdfast.store.library import step_outputs
from holdfast.store.money import calls as ledger_calls

EMBED = "embed"
AT_ONCE = 500


class ForecastTools:
    """Collects the calls of each step."""

    def __init__(self, db: Database, tenant: str, setup: FlowSetup) -> None:
        self._db = db
        self._tenant = tenant
        self._setup = setup
        self._step = ""
        self.calls: dict[str, list[Call]] = {}
        self.exact = True

    @property
    def spent(self) -> Spent:
        """Nothing."""
        return Spent()

    def now(self) -> float:
        """Seconds."""
        return time.monotonic()

    def model(self, step: Step) -> Model:
        """The model that the step would ask."""
        self._step = step.name
        usual = self._setup.supplies
        return index_steps.model_of(usual, step)

    def pay(self, calls: Sequence[Call]) -> Sequence[Answer]:
        """What the ledger has."""
        self.calls.setdefault(self._step, []).extend(calls)
        answers: list[Answer] = []
        for start in range(0, len(calls), AT_ONCE):
            keys = [call.key(self._tenant) for call in calls[start : start + AT_ONCE]]
            entries = ledger_calls.look_up(self._db, self._tenant, sorted(set(keys)))
            settled = {key: each.result for key, each in entries.items() if each.state is CallState.SETTLED}
            answers += [settled.get(key) for key in keys]
        self.exact = self.exact and all(each is not None for each in answers)
        return answers

    def call(self, step: Step, fields: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
        """What is known of a function, which is not called."""
        names = [functions.key_of(step, each) for each in fields]
        outputs = step_outputs.known(self._db, self._tenant, names)
        self.exact = self.exact and all(name in outputs for name in names)
        return [outputs.get(name, UnknownOutput()) for name in names]

    def report(self, step: Step, done: int, total: int) -> None:
        """Nobody waits for it."""


def calls_of(
    tools: ForecastTools,
    flow: Flow,
    pieces: Sequence[ChunkText],
    fields: Mapping[str, Any],
    embedding: tuple[str, str],
) -> list[Call]:
    """All calls for a document with these chunks, those of its embedding by (provider, model) last."""
    before = {name: len(calls) for name, calls in tools.calls.items()}
    edited = [EditedPiece(at, piece) for at, piece in enumerate(pieces)]
    output = FlowRunner(flow, tools, fields).run([index_steps.chunk_fields(each) for each in edited])
    provider, model = embedding
    embedded = [
        Call(provider, "embeddings", model, each.embed) for each in output.chunks if each.is_published
    ]
    tools.calls.setdefault(EMBED, []).extend(embedded)
    return [call for name, calls in tools.calls.items() for call in calls[before.get(name, 0) :]]
