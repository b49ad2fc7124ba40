"""What the steps of a flow would cost on documents, for the estimate of a collection."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.documents.chunk import ChunkText
from holdfast.kinds import index
from holdfast.kinds.flows import forecasts, index_steps
from holdfast.kinds.flows.forecasts import ForecastTools
from holdfast.kinds.flows.steps import Flow
from holdfast.ledger.estimates import Forecast, Foresight
from holdfast.ledger.pay import Call
from holdfast.service.flows import Flows
from holdfast.store.library.documents import Document


class FlowForecast:
    """One estimate. `flow` is one that need not be applied yet; it stands for the one that options name."""

    def __init__(self, flows: Flows, tenant: str, flow: Flow | None) -> None:
        self._flows = flows
        self._tenant = tenant
        self._flow = flow
        self._tools: dict[str, ForecastTools] = {}

    def _of(self, chosen: index.Choices) -> Flow | None:
        if self._flow is not None and chosen.flow == self._flow.id:
            return self._flow
        return self._flows.library.get(self._tenant, chosen.flow) if chosen.flow else None

    def is_other(self, document: Document, chosen: index.Choices) -> bool:
        """True if the version that is asked about is not the one that was applied under its number."""
        if self._flow is None or not document.visible or chosen.flow != self._flow.id:
            return False
        known = self._flows.library.find(self._tenant, self._flow.id)
        return known is not None and known.digest != self._flow.digest

    def choices(self, document: Document, chosen: index.Choices) -> index.Choices:
        """The choices as the flow changes them for this document."""
        flow = self._of(chosen)
        if flow is None:
            return chosen
        fields = index_steps.stored_fields(document)
        return replace(chosen, **index_steps.split_options(flow, fields))

    def calls(
        self, document: Document, chosen: index.Choices, pieces: Sequence[ChunkText], *, exact: bool
    ) -> tuple[Sequence[Call], bool]:
        """The calls for a document with these chunks, and whether these are all, exactly."""
        flow = self._of(chosen)
        if flow is None:
            calls = [Call(chosen.provider, "embeddings", chosen.model, piece.text) for piece in pieces]
            return calls, exact
        tools = self._tools.get(flow.id)
        if tools is None:
            tools = self._tools[flow.id] = ForecastTools(
                self._flows.library.db, self._tenant, self._flows.setup
            )
        fields = index_steps.stored_fields(document)
        calls = forecasts.calls_of(tools, flow, pieces, fields, (chosen.provider, chosen.model))
        return calls, exact and tools.exact

    def steps(self, foresight: Foresight, total: Forecast) -> Mapping[str, Forecast]:
        """What each step would cost, as much in all as the whole estimate."""
        forecasts_by_step = {
            name: foresight.of(calls) for tools in self._tools.values() for name, calls in tools.calls.items()
        }
        counted = sum(each.calls + each.known_calls for each in forecasts_by_step.values())
        factor = (total.calls + total.known_calls) / counted if counted else 1.0
        return {name: each.times(factor) for name, each in forecasts_by_step.items()}
