"""A kind: how work of one kind is planned, run and published."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.core import progress
from holdfast.core.errors import BadRequestError
from holdfast.core.records import KIND, TASK_NAME, Chunk, Claim, Copy, Slice
from holdfast.engine.job_specs import ActionSpec, JobSpec, SearchSource
from holdfast.store.base.database import Tx

if TYPE_CHECKING:
    from holdfast.engine.work import Work

Result = Mapping[str, Any] | None
# What the names of actions begin with that keep what a kind derives from a collection up to date.
KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Finish:
    """What a slice leaves behind in the one transaction that finishes it.

    `chunks` are staged there, for what is too small to be worth a transaction of its own. `copy` takes the
    chunks of an earlier finished slice over instead; if they are not all there any more, `run` is called
    again with `work.may_copy` false. `also` writes more, under the same fence; it may run more than once.
    """

    result: Result = None
    chunks: Sequence[Chunk] = ()
    copy: Copy | None = None
    also: Callable[[Tx], None] | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of work.

    `plan` cuts a run into slices; without it a run is one slice. `run` does one slice and answers a small
    JSON result, a `Finish` or None. `plan_next` is asked whenever all slices are done, and answers those of
    a further phase; when it answers none, or there is no `plan_next`, the run is published. It may read
    what the phases before have left (`work.earlier`). `publish` writes in the transaction that publishes;
    it may run more than once and must have no other effect. What it returns runs last in that transaction.
    The limits are seconds: past `soft_limit` the next check raises, past `hard_limit` the lease is no
    longer renewed. `job`, `actions` and `search` say how people use it. `phase_share` is what part of the
    work that is left a phase usually does, for the progress of a run with several.
    """

    name: str
    run: "Callable[[Work], Result | Finish]"
    plan: "Callable[[Work], Sequence[Slice]] | None" = None
    publish: Callable[[Tx, Claim], Callable[[Tx], None] | None] | None = None
    version: int = 1
    also: Sequence[int] = field(default_factory=tuple)
    soft_limit: float = 3600.0
    hard_limit: float = 3900.0
    plan_next: "Callable[[Work], Sequence[Slice]] | None" = None
    job: JobSpec | None = None
    actions: Sequence[ActionSpec] = ()
    search: SearchSource | None = None
    phase_share: float = progress.PHASE_SHARE

    @property
    def pipeline(self) -> str:
        """The version frozen into a run, so that only workers that know it claim its tasks."""
        return f"{self.name}@{self.version}"

    @property
    def pipelines(self) -> list[str]:
        """Every version this worker can carry out."""
        return [f"{self.name}@{version}" for version in (self.version, *self.also)]


@dataclass(frozen=True, slots=True)
class Offer:
    """A provider that may be named: its identity, its usual model, and what its models are sent with."""

    identity: str
    model: str | None = None
    parameters: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


def offer(offers: Mapping[str, Offer], name: object) -> Offer:
    """The provider called `name`; BadRequestError `unknown_provider`, with the names that exist."""
    known = offers.get(name) if isinstance(name, str) else None
    if known is None:
        message = f"there is no provider {name!r:.80}; known are: {', '.join(sorted(offers)) or 'none'}"
        raise BadRequestError(message, code="unknown_provider")
    return known


@dataclass(frozen=True, slots=True)
class Supplies:
    """What a kind may be built from: the names of the providers that are set up, and their models."""

    embedding: str | None = None
    embedding_model: str | None = None
    llm: str | None = None
    llm_model: str | None = None
    # By model, what its calls are sent with; under "" for every other. Without any: what is usual.
    llm_parameters: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    # By name, the providers that a collection or a document, and a job or an action, may choose.
    embedding_offers: Mapping[str, Offer] = field(default_factory=dict, compare=False)
    llm_offers: Mapping[str, Offer] = field(default_factory=dict, compare=False)
    # By name, the providers that may rerank what a search has found.
    rerank_offers: Mapping[str, Offer] = field(default_factory=dict, compare=False)


def _keeping(kind: Kind) -> list[ActionSpec]:
    """The action that keeps what the kind derives from a collection up to date."""
    job = kind.job
    if job is None or not job.keepable or job.parameters is None:
        return []
    return [
        ActionSpec(
            name=f"{KEEP}:{kind.name}",
            title=f"Keep up to date: {job.title}",
            parameters=job.parameters,
            check=job.check,
            asks_model=job.asks_model,
            keeps=job,
        )
    ]


class Registry:
    """The kinds this process knows."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._kinds: dict[str, Kind] = {}
        self._actions: dict[str, tuple[Kind, ActionSpec]] = {}
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Know `kind` from now on; a name is taken once."""
        if not (KIND.fullmatch(kind.name) or TASK_NAME.fullmatch(kind.name)):
            raise BadRequestError(
                f"kind {kind.name!r} has the wrong form; it must be like index", code="bad_kind"
            )
        if kind.name in self._kinds:
            raise BadRequestError(
                f"kind {kind.name!r} is registered twice; give one another name", code="bad_kind"
            )
        for action in (*kind.actions, *_keeping(kind)):
            if action.name in self._actions:
                raise BadRequestError(
                    f"kind {kind.name!r} brings the action {action.name!r}, which exists already",
                    code="bad_kind",
                )
            self._actions[action.name] = (kind, action)
        self._kinds[kind.name] = kind

    def get(self, name: str) -> Kind | None:
        """The kind called `name`, if this process knows it."""
        return self._kinds.get(name)

    def ends_by_task(self, name: str) -> bool:
        """True if a run of this kind without an open task must be ended by one more task of its own.

        That is so if it may have a further phase, or if its kind writes something when it is published. Of an
        unknown kind nobody can tell. The task plans the next phase; a plan without slices publishes the run.
        """
        kind = self._kinds.get(name)
        return kind is None or kind.plan_next is not None or kind.publish is not None

    @property
    def phase_shares(self) -> dict[str, float]:
        """What part of the work that is left a phase usually does, of the kinds that have several."""
        kinds = self._kinds.items()
        return {name: kind.phase_share for name, kind in kinds if kind.plan_next is not None}

    @property
    def names(self) -> list[str]:
        """The names of all kinds, sorted."""
        return sorted(self._kinds)

    @property
    def jobs(self) -> dict[str, JobSpec]:
        """The kinds that can be requested as a job, by name, in the order in which they were added."""
        specs = ((name, kind.job) for name, kind in self._kinds.items())
        return {name: spec for name, spec in specs if spec is not None and spec.parameters is not None}

    def job(self, name: str) -> JobSpec:
        """What jobs of the kind `name` look like, also of a kind that is not installed (any more)."""
        kind = self._kinds.get(name)
        return kind.job if kind is not None and kind.job is not None else JobSpec(title=name)

    def requested_job(self, name: str) -> JobSpec:
        """The kind `name` as it is requested; BadRequestError `unknown_kind`, with the kinds that exist."""
        spec = self.jobs.get(name)
        if spec is None:
            known = ", ".join(sorted(self.jobs)) or "none"
            raise BadRequestError(
                f"there is no job of kind {name!r:.80}; known are: {known}", code="unknown_kind"
            )
        return spec

    @property
    def actions(self) -> dict[str, ActionSpec]:
        """What collections may do with ready documents, by name."""
        return {name: spec for name, (_, spec) in self._actions.items()}

    def action(self, name: str) -> tuple[Kind, ActionSpec]:
        """The action `name` and its kind; BadRequestError `unknown_action_type`, with those that exist."""
        if name not in self._actions:
            known = ", ".join(sorted(self._actions)) or "none"
            raise BadRequestError(
                f"there is no action of type {name!r:.80}; known are: {known}", code="unknown_action_type"
            )
        return self._actions[name]

    @property
    def search_sources(self) -> list[SearchSource]:
        """Where search looks, the chunks of documents first."""
        return [kind.search for kind in self._kinds.values() if kind.search is not None]

    @property
    def pipelines(self) -> list[str]:
        """Every pipeline version that may be claimed here."""
        return sorted(version for kind in self._kinds.values() for version in kind.pipelines)
