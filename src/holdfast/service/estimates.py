"""The cost of work before it is requested: a text, files, or a collection whose options would change.

Nothing is paid and nothing is written. A text is chunked as indexing would do it, and what the ledger has
costs nothing, so the estimate of a text is as good as the provider's token count. Existing documents are
estimated from what is known about them: a small text is read again from the blob store; any other from the
chunks of its published generation, as they are if only the model changes, otherwise joined and chunked again.
That is close, not exact. A large collection is estimated from a sample, and the estimate says so.

Foreign text is recognised, parsed and chunked in child processes, of which each tenant has a share, within a
time limit: an estimate is a response, not a job. If a text takes longer, its estimate fails; that of a
collection is based on what was read until then.

A document that is read by a paid parser counts the call of that parser, with the pages that are counted here.
Until it has been read, its text is not known.

A kind that pays for something else declares in its `JobSpec` or `ActionSpec` which calls it would make for a
document, and how many at most.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast.core import filters, keys, subjects
from holdfast.core.errors import BadRequestError, HoldfastError, WorkError
from holdfast.documents.blobs import Blobs
from holdfast.documents.chunk import ChunkText
from holdfast.documents.parse import records, sniff
from holdfast.documents.parse.paid import PaidCallNeededError
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.pool import Parsers, ParsersBusyError
from holdfast.documents.parse.records import Format
from holdfast.engine.engine import Engine
from holdfast.engine.job_specs import EstimatedCalls, JobEstimate, JobSpec
from holdfast.engine.kinds import Supplies
from holdfast.engine.models import Model
from holdfast.engine.ready_documents import Passage, ReadyDocument
from holdfast.kinds import corpus, index, parameters
from holdfast.kinds.edited_chunks import FLOW
from holdfast.kinds.flows.index_steps import FlowSetup
from holdfast.kinds.flows.steps import Flow
from holdfast.ledger.estimates import Forecast, Foresight
from holdfast.ledger.pay import Call
from holdfast.service import chunk_pages, document_reading, jobs
from holdfast.service.collections import Collections
from holdfast.service.documents import Documents
from holdfast.service.estimate_clock import EstimateClock, EstimateTimeoutError
from holdfast.service.flow_forecasts import FlowForecast
from holdfast.service.flows import Flows
from holdfast.service.parse_calls import ParseCalls
from holdfast.store.jobs.job_sources import JobSource
from holdfast.store.library import documents
from holdfast.store.library.collections import Collection
from holdfast.store.library.documents import Document
from holdfast.store.money import estimates

# What one estimate may look at, so that it is an answer and not a job.
MOST_TEXT = 1024 * 1024
MOST_DOCUMENTS = 200
MOST_CHUNKS = 20_000
MOST_TEXT_CHUNKS = 100_000
# Of a job that is estimated as a whole, within a time limit.
MOST_TIMED_CHUNKS = 2000
GROUP = 2000
# By what share the calls of later phases may be more or fewer than expected.
SPREAD = 1 / 3
SMALL_TEXT = 256 * 1024
_PLAIN = frozenset({Format.TEXT, Format.MARKDOWN})


@dataclass(frozen=True, slots=True)
class Estimate:
    """What it would cost. `documents` would be done; `unknown` of them have no text that is known yet.

    `exact` is false when texts were put together again, a sample was taken or some text is not known.
    """

    documents: int
    unknown: int
    forecast: Forecast
    model: str
    prices: str
    exact: bool
    estimated_from: str
    # Between how many calls a job takes whose later phases depend on answers; None for any other.
    calls_between: tuple[int, int] | None = None
    # Of the steps of a flow, by name; what several ask counts for the first.
    steps: Mapping[str, Forecast] = field(default_factory=dict)


def fingerprint(collection: str, **what: Any) -> str:
    """Names what was estimated: the same for the same options, job or action of the same collection."""
    return keys.digest(
        "estimate", collection, keys.canonical({name: each for name, each in what.items() if each})
    )


@dataclass(slots=True)
class _Tally:
    """What was found so far."""

    looked: int = 0
    concerned: int = 0
    unknown: int = 0
    chunks: int = 0
    exact: bool = True
    forecast: Forecast = field(default_factory=Forecast)


class Estimating:
    """Estimates for the documents of an installation."""

    def __init__(
        self,
        engine: Engine,
        collections: Collections,
        documents: Documents,
        defaults: index.Choices,
        shelf: Blobs,
        parser: Parser,
        parsers: Parsers,
        supplies: Supplies | None = None,
        *,
        services: Mapping[str, str] | None = None,
        flows: Flows | None = None,
        seconds: float | None = None,
    ) -> None:
        self._engine = engine
        self._collections = collections
        self._documents = documents
        self._defaults = defaults
        self._shelf = shelf
        self._parser = parser
        self._parsers = parsers
        self._seconds = seconds
        self._flows = flows or Flows(engine, FlowSetup(supplies or Supplies()))
        self._supplies = supplies or Supplies()
        self._parse_calls = ParseCalls(services or {})

    def of_text(
        self, tenant: str, text: str, *, collection: str | None, options: Mapping[str, Any] | None = None
    ) -> Estimate:
        """What it would cost to index this text; BadRequestError for one that is too long to be cut here."""
        if len(text) > MOST_TEXT or len(text.encode("utf-8", "replace")) > MOST_TEXT:
            message = (
                f"a text of more than {MOST_TEXT:,} bytes is not estimated here; "
                "write it to a file and run: holdfast estimate FILE"
            )
            raise BadRequestError(message, code="too_large")
        chosen = self._chosen(tenant, collection, options)
        clock = EstimateClock(self._seconds)
        with self._lent(tenant, clock) as parser:
            cut = parser.cut_text(text, chosen.cutting(), clock.left)
            paid = self._parse_calls.of_text(parser, text, chosen, clock.left) if chosen.own_parsers else []
        pieces = cut.pieces or ()
        if len(pieces) > MOST_TEXT_CHUNKS:
            message = f"the text would be more than {MOST_TEXT_CHUNKS:,} chunks; give a shorter one"
            raise BadRequestError(message, code="too_large")
        calls, foresight = _calls(pieces, chosen), self._foresight(tenant)
        forecast = foresight.of(paid)
        for start in range(0, len(calls), GROUP):
            if clock.is_over:
                raise clock.error()
            forecast += foresight.of(calls[start : start + GROUP])
        exact = cut.exact and not paid
        return self._estimate(_Tally(1, 1, exact=exact, forecast=forecast), chosen, "the text")

    @contextlib.contextmanager
    def _lent(self, tenant: str, clock: EstimateClock) -> Iterator[Parser]:
        """A parser of the tenant's share; what takes too long in it is an estimate that does."""
        with self._parsers.lent(tenant, clock.until) as parser:
            try:
                yield parser
            except WorkError as error:
                if error.code == "parse_timeout":
                    raise clock.error() from error
                raise

    def of_files(
        self,
        tenant: str,
        files: Sequence[Path],
        *,
        collection: str | None,
        options: Mapping[str, Any] | None = None,
        refuse: Callable[[Path, str], None],
    ) -> Estimate:
        """What it would cost to index these files, each read here; `refuse` gets those that cannot be."""
        chosen = self._chosen(tenant, collection, options)
        foresight = self._foresight(tenant)
        tally = _Tally()
        for path in files:
            try:
                paid = self._parse_calls.of_file(self._parser, path, path.name, chosen)
                pieces = () if paid else self._read(path, chosen)
                forecast = sum((foresight.of(_calls(some, chosen)) for some in pieces), foresight.of(paid))
            except (HoldfastError, OSError) as error:
                refuse(path, error.message if isinstance(error, HoldfastError) else str(error))
                continue
            tally.concerned += 1
            tally.unknown += bool(paid)
            tally.forecast += forecast
        return self._estimate(tally, chosen, "the files, read in full")

    def _read(self, path: Path, chosen: index.Choices) -> Iterator[Sequence[ChunkText]]:
        parsers = chosen.parsers
        outline = self._parser.outline(path, path.name, parsers=parsers)
        for piece in records.slices(outline, pages=chosen.slice_pages, rows=chosen.slice_rows):
            request = path, outline.format, piece, chosen.cutting()
            yield self._parser.cut(*request, name=path.name, parsers=parsers).pieces or ()

    def of_collection(
        self,
        tenant: str,
        collection_id: str,
        *,
        options: Mapping[str, Any] | None = None,
        flow: Flow | None = None,
    ) -> Estimate:
        """What it would cost if the collection had these options: an option that is null is the default.

        With a `flow`, which need not be applied yet: if it had that one as well.
        """
        collection = self._collections.get(tenant, collection_id)
        merged = {**collection.options, **(options or {}), **({} if flow is None else {FLOW: flow.id})}
        changed = replace(
            collection, options={name: each for name, each in merged.items() if each is not None}
        )
        chosen = index.choices(self._defaults, changed.options)
        flows = FlowForecast(self._flows, tenant, flow)

        def concerns(document: Document) -> bool:
            return flows.is_other(document, chosen) or not self._documents.is_current(changed, document)

        clock = EstimateClock(self._seconds)

        def calls(document: Document) -> tuple[Sequence[Call], bool] | None:
            mine = flows.choices(document, index.choices(chosen, document.options))
            pieces, exact = self._pieces(tenant, document, mine, clock)
            if pieces is None:
                return None
            return flows.calls(document, mine, pieces, exact=exact)

        def parsing(document: Document) -> Sequence[Call]:
            mine = index.choices(chosen, document.options)
            return self._parsing(tenant, document, mine, clock)

        estimate = self._sampled(tenant, collection, chosen, concerns, calls, clock, parsing)
        return replace(estimate, steps=flows.steps(self._foresight(tenant), estimate.forecast))

    def _parsing(
        self, tenant: str, document: Document, chosen: index.Choices, clock: EstimateClock
    ) -> Sequence[Call]:
        """The paid call that the parser of an existing document makes, if it makes one."""
        if not (chosen.own_parsers and document.has_content):
            return ()
        try:
            path = self._shelf.path(document.digest)
        except WorkError:
            return ()
        with self._lent(tenant, clock) as parser:
            return self._parse_calls.of_file(
                parser, path, document.name, chosen, digest=document.digest, seconds=clock.left
            )

    def of_job(self, tenant: str, collection_id: str, kind: str, params: Mapping[str, Any]) -> Estimate:
        """What a job of this kind over the published documents of the collection would cost.

        A job that stops at a limit is estimated by the average of all that it might ask.
        """
        spec = self._engine.registry.requested_job(kind)
        estimate = spec.estimate
        if not spec.has_estimate:
            raise BadRequestError(f"jobs of kind {kind!r:.40} give no estimate", code="no_estimate")
        collection = self._collections.get(tenant, collection_id)
        checked = parameters.checked(spec, params)
        model = jobs.model_for(self._supplies, checked) if spec.asks_model else None
        if estimate is None:
            return self._of_whole_job(tenant, collection, spec, checked, model)
        named, only = checked.get("documents"), corpus.filter_of(checked)

        def concerns(document: Document) -> bool:
            passes = only is None or filters.matches(only, document)
            return document.visible and passes and (named is None or document.id in named)

        def calls(document: Document) -> tuple[Sequence[Call], bool] | None:
            return estimate(checked, [each.text for each in self._passages(document)], model), True

        chosen = replace(self._collections.choices(collection), model=model.name if model is not None else "")
        estimated = self._sampled(tenant, collection, chosen, concerns, calls, EstimateClock(self._seconds))
        return _bounded(estimated, spec.most_calls(checked) if spec.most_calls is not None else None)

    def _of_whole_job(
        self,
        tenant: str,
        collection: Collection,
        spec: JobSpec,
        params: Mapping[str, Any],
        model: Model | None,
    ) -> Estimate:
        """The estimate of a job that tells its calls itself, perhaps from the first of its documents."""
        named = params.get("documents")
        scope = corpus.JobScope(
            tenant, collection.id, None if named is None else tuple(named), corpus.filter_of(params)
        )
        clock = EstimateClock(self._seconds)
        sources = scope.sources(self._engine.db)
        sample = _sample(sources, MOST_CHUNKS if self._seconds is None else MOST_TIMED_CHUNKS)
        looked = [(each.document, each.head_id, each.generation) for each in sample]
        whole_job = JobEstimate(tenant, collection.id, params, looked, model, self._engine.db, clock.check)
        calls = () if spec.estimate_job is None else spec.estimate_job(whole_job)
        planned = calls if isinstance(calls, EstimatedCalls) else EstimatedCalls(calls, ())
        chunks, every = (sum(each.chunks for each in some) for some in (sample, sources))
        foresight, factor = self._foresight(tenant), every / chunks if chunks else 1.0
        certain, expected = (
            _added_up(foresight, part, clock).times(factor) for part in (planned.certain, planned.expected)
        )
        forecast = certain + expected
        chosen = replace(self._collections.choices(collection), model=model.name if model is not None else "")
        tally = _Tally(len(sources), len(sources), chunks=every, exact=False, forecast=forecast)
        whole = len(sample) == len(sources)
        sentence = (
            f"{len(sample)} documents" if whole else f"a sample of {len(sample)} of {len(sources)} documents"
        )
        estimate = self._estimate(tally, chosen, sentence)
        if not expected.calls:
            return estimate
        least, most = (certain.calls + round(expected.calls * part) for part in (1 - SPREAD, 1 + SPREAD))
        return replace(estimate, calls_between=(least, most))

    def of_action(self, tenant: str, collection_id: str, options: Mapping[str, Any]) -> Estimate:
        """What an action with these checked options would cost on every document that is ready now."""
        collection = self._collections.get(tenant, collection_id)
        kind, spec = self._engine.registry.action(str(options["sort"]))
        if spec.keeps is not None:
            return self.of_job(tenant, collection_id, kind.name, parameters.of_job(options))
        estimate = spec.estimate
        model = jobs.model_for(self._supplies, options) if spec.asks_model else None

        def calls(document: Document) -> tuple[Sequence[Call], bool] | None:
            if estimate is None:
                return (), True
            subject = subjects.of_document(document.id)
            passages = tuple(self._passages(document))
            return estimate(options, ReadyDocument(subject, document.published_generation, passages), model)

        chosen = replace(self._collections.choices(collection), model=model.name if model is not None else "")
        return self._sampled(
            tenant, collection, chosen, lambda document: document.visible, calls, EstimateClock(self._seconds)
        )

    def _sampled(
        self,
        tenant: str,
        collection: Collection,
        chosen: index.Choices,
        concerns: Callable[[Document], bool],
        calls: Callable[[Document], tuple[Sequence[Call], bool] | None],
        clock: EstimateClock,
        parsing: Callable[[Document], Sequence[Call]] = lambda _: (),
    ) -> Estimate:
        size = estimates.size_of(self._engine.db, tenant, collection.id)
        foresight = self._foresight(tenant)
        tally = _Tally()
        for document in documents.page(self._engine.db, tenant, collection.id, limit=MOST_DOCUMENTS):
            if tally.chunks > MOST_CHUNKS or clock.is_over:
                break
            try:
                document_calls = calls(document) if concerns(document) else ((), True)
                parse_calls = parsing(document) if concerns(document) else ()
            except EstimateTimeoutError:
                if not tally.looked:
                    raise
                break
            tally.looked += 1
            tally.chunks += document.chunks or 0
            if not concerns(document):
                continue
            tally.concerned += 1
            tally.forecast += foresight.of(parse_calls)
            if document_calls is None:
                tally.unknown += 1
                continue
            tally.forecast += foresight.of(document_calls[0])
            tally.exact = tally.exact and document_calls[1]
        sentence = (
            f"{tally.looked} documents"
            if tally.looked == size.documents
            else (f"a sample of {tally.looked} of {size.documents} documents")
        )
        return self._estimate(_scaled(tally, size), chosen, sentence)

    def _pieces(
        self, tenant: str, document: Document, chosen: index.Choices, clock: EstimateClock
    ) -> tuple[Sequence[ChunkText] | None, bool]:
        """The chunks of a document as far as they are known without its file, and whether exactly so."""
        if document.source == "text" or document.format in {"text", "markdown", None}:
            pieces = self._small_text(tenant, document, chosen, clock)
            if pieces is not None:
                return pieces, True
        passages = self._passages(document)
        if not passages:
            return None, False
        published = estimates.published_options(self._engine.db, document.head_id or 0)
        same = self._flows.split_as(tenant, document, published)
        if all(same.get(name) == getattr(chosen, name) for name in ("chunk_size", "overlap", "delimiter")):
            return [ChunkText(each.text, each.page or 1, ()) for each in passages], True
        with self._lent(tenant, clock) as parser:
            return parser.cut_pages(chunk_pages.joined(passages), chosen.cutting(), clock.left).pieces, False

    def _small_text(
        self, tenant: str, document: Document, chosen: index.Choices, clock: EstimateClock
    ) -> Sequence[ChunkText] | None:
        if document.size > SMALL_TEXT:
            return None
        path = self._shelf.path(document.digest)
        try:
            form = sniff.from_head(sniff.read_head(path), document.name)
            if form is None or form not in _PLAIN:
                return None
            with self._lent(tenant, clock) as parser:
                parsers, name = chosen.parsers, document.name
                outline = parser.outline(path, name, clock.left, parsers=parsers)
                request = path, outline.format, outline.whole, chosen.cutting(), None, clock.left
                return parser.cut(*request, name=name, parsers=parsers).pieces
        except (EstimateTimeoutError, ParsersBusyError):
            raise
        except (HoldfastError, PaidCallNeededError, OSError):
            return None

    def _passages(self, document: Document) -> list[Passage]:
        return document_reading.passages(self._engine.db, document)

    def _chosen(
        self, tenant: str, collection: str | None, options: Mapping[str, Any] | None
    ) -> index.Choices:
        base = self._defaults
        if collection is not None:
            base = self._collections.choices(self._collections.get(tenant, collection))
        return index.choices(base, options)

    def _foresight(self, tenant: str) -> Foresight:
        parts = self._engine.parts
        return Foresight(self._engine.db, parts.providers, parts.prices, tenant)

    def _estimate(self, tally: _Tally, chosen: index.Choices, source: str) -> Estimate:
        exact = tally.exact and not tally.unknown
        version = self._engine.parts.prices.version
        return Estimate(tally.concerned, tally.unknown, tally.forecast, chosen.model, version, exact, source)


def _sample(sources: Sequence[JobSource], most_chunks: int) -> list[JobSource]:
    """The first documents, as many as an estimate may look at; at least one."""
    sample: list[JobSource] = []
    chunks = 0
    for each in sources[:MOST_DOCUMENTS]:
        chunks += each.chunks
        if sample and chunks > most_chunks:
            break
        sample.append(each)
    return sample


def _calls(pieces: Sequence[ChunkText], chosen: index.Choices) -> list[Call]:
    return [Call(chosen.provider, "embeddings", chosen.model, piece.text) for piece in pieces]


def _scaled(tally: _Tally, size: estimates.Size) -> _Tally:
    """The tally of a sample for the whole: by chunks where they are known, by documents where not."""
    if not tally.looked or tally.looked >= size.documents:
        return tally
    each = size.documents / tally.looked
    factor = size.chunks / tally.chunks if tally.chunks and size.chunks else each
    return _Tally(
        size.documents,
        round(tally.concerned * each),
        round(tally.unknown * each),
        size.chunks,
        exact=False,
        forecast=tally.forecast.times(factor),
    )


def _added_up(foresight: Foresight, calls: Sequence[Call], clock: EstimateClock) -> Forecast:
    """What the calls cost in addition to those before, looked up in groups."""
    forecast = Forecast()
    for start in range(0, len(calls), GROUP):
        clock.check()
        forecast += foresight.of(calls[start : start + GROUP])
    return forecast


def _bounded(estimate: Estimate, most: int | None) -> Estimate:
    """The estimate of a job that asks no more than `most` of its calls; which ones shows when it runs."""
    every = estimate.forecast.calls + estimate.forecast.known_calls
    if most is None or every <= most:
        return estimate
    return replace(estimate, forecast=estimate.forecast.times(most / every), exact=False)
