"""What a kind says of itself, so that API, command line and web UI can offer it without knowing it.

With a `JobSpec` people can request it, on a collection or a document. With an `ActionSpec` a collection runs
it on each document that becomes ready. With a `SearchSource` what it published can be searched. Every face of
Holdfast takes what the registry has; the kinds of Holdfast itself are described in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # describing a kind must not import these
    from holdfast.core.filters import Filter
    from holdfast.engine.models import Model
    from holdfast.engine.ready_documents import ReadyDocument
    from holdfast.engine.work import Work
    from holdfast.ledger.pay import Call
    from holdfast.store.base.database import Database

Parameters = Mapping[str, Any] | type
"""A JSON Schema of an object, a dataclass or a Pydantic model."""
NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class JobEstimate:
    """A job whose calls are to be told before it runs: its parameters, and what it would read.

    A document is its id, the number of its head and its published generation. Call `check` every now and
    then: it raises when the time for the estimate is over.
    """

    tenant: str
    collection: str
    params: Mapping[str, Any]
    documents: Sequence[tuple[str, int, int]]
    model: Model | None
    db: Database = field(repr=False)
    check: Callable[[], None] = field(repr=False, default=lambda: None)


@dataclass(frozen=True, slots=True)
class EstimatedCalls:
    """The calls of a job with phases: those of the first are certain, of the later ones expected."""

    certain: Sequence[Call]
    expected: Sequence[Call]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """How a kind is requested, priced and shown.

    `parameters` describe what a request may set; None for a kind that is requested in a way of its own.
    `check` is given them with their defaults, and returns them as they are frozen into the run, or raises
    BadRequestError. A kind that `reads_documents` also takes `documents`, one that `asks_model` also takes
    `provider` and `model`; both are frozen into the run with `prompts`, the version of the kind's own words.

    `estimate` returns the calls for one document, given the parameters, the texts of its chunks and the
    model; without it the kind gives no estimate. `most_calls` bounds them for a whole job. `estimate_job`, if
    set, is asked instead, once for all documents: for calls that depend on more than the texts of one.

    `result` describes the `data` of one result, in the forms of `parameters`. `table` returns one result as a
    row, by column, given the options of the run and the data; by default the properties of `result`. `view`
    is a Jinja template for the web UI, given `results`, `titles` (by document) and `options`, and escaped;
    without it results are a table.

    A `keepable` kind derives something from a whole collection, and pays for what changed: an action
    `keep:<kind>` requests it again when documents have changed.
    """

    title: str
    description: str = ""
    parameters: Parameters | None = field(default_factory=lambda: NO_PARAMETERS)
    check: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    reads_documents: bool = True
    asks_model: bool = False
    prompts: int = 1
    stages: tuple[str, ...] = ()
    estimate: Callable[[Mapping[str, Any], Sequence[str], Model | None], Sequence[Call]] | None = None
    estimate_job: Callable[[JobEstimate], Sequence[Call] | EstimatedCalls] | None = None
    most_calls: Callable[[Mapping[str, Any]], int | None] | None = None
    result: Parameters | None = None
    table: Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]] | None = None
    view: str | None = None
    keepable: bool = False

    @property
    def has_estimate(self) -> bool:
        """True if its cost can be told before it starts."""
        return self.estimate is not None or self.estimate_job is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSpec:
    """What a collection may do with each ready document.

    `run` returns the result, a small mapping that is kept with the follow-up; without it the events of the
    action are delivered by the kind itself. `estimate` returns the calls for one document and whether these
    are all, given the parameters, the document and the model. `view` is a Jinja template for the web UI,
    given `result`. `summary` says in a few words what an action with these parameters does. `keeps` is the
    job that the action requests again whenever the collection has changed; it has no run of its own.
    """

    name: str
    title: str
    parameters: Parameters = field(default_factory=lambda: NO_PARAMETERS)
    run: Callable[[Work, ReadyDocument, Model | None], Mapping[str, Any]] | None = None
    check: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    asks_model: bool = False
    estimate: (
        Callable[[Mapping[str, Any], ReadyDocument, Model | None], tuple[Sequence[Call], bool]] | None
    ) = None
    view: str | None = None
    summary: Callable[[Mapping[str, Any]], str] | None = None
    keeps: JobSpec | None = None


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A question to a collection. `vector` is its embedding by the collection's model, where there is one.

    `only` is what documents must pass for the caller. A hit's own document is tested by search; a source
    whose hits cover several documents tests all of them. `publish_seq` rises with every publication in the
    collection: what a source finds out about the collection stays true while it is the same; None: unknown.
    """

    tenant: str
    collection: str
    text: str
    limit: int
    documents: tuple[str, ...] | None
    vector: Sequence[float] | None
    db: Database = field(repr=False)
    only: Filter | None = None
    publish_seq: int | None = None


@dataclass(frozen=True, slots=True)
class SourceHit:
    """What a search source found in a document; `score` orders the hits of one source among themselves.

    `type` says what it is, `node` names it where it can be opened, and `covers` are the documents that it is
    about where these are several, the first of them being `document_id`.
    """

    document_id: str
    text: str
    score: float
    page: int | None = None
    type: str | None = None
    node: str | None = None
    covers: tuple[str, ...] = ()
    title: str | None = None


@dataclass(frozen=True, slots=True)
class SearchSource:
    """Where search looks: the chunks of documents, and what other kinds published.

    `find` returns its hits, the best first; `published_results` reads what the jobs of a kind left. None for
    the chunks, which search reads by itself. Hits of documents that are not in the collection are dropped.
    `weight` is what the best hit is worth beside the best chunk.
    """

    name: str
    find: Callable[[SearchQuery], Sequence[SourceHit]] | None = None
    weight: float = 0.5
