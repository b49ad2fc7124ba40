"""`document_kind`: a kind of one function that is run on each document, as a job and as an action.

What the function returns for a document is kept as results, in the transaction that finishes its slice. A
document whose answer cannot be used is recorded with the reason, and the job goes on; it fails when no
document gave anything.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.core import subjects
from holdfast.core.errors import WorkError
from holdfast.core.records import Claim, Slice
from holdfast.engine.job_specs import ActionSpec, JobSpec, SearchQuery, SearchSource
from holdfast.engine.kinds import Finish, Kind
from holdfast.engine.models import Model
from holdfast.engine.ready_documents import Passage, ReadyDocument
from holdfast.engine.work import Work
from holdfast.kinds import corpus, job_summary, model_calls
from holdfast.kinds.log_phrases import many
from holdfast.ledger.pay import Call
from holdfast.store.base.database import Tx
from holdfast.store.jobs import job_results, job_sources
from holdfast.store.jobs import published_results as store
from holdfast.store.jobs.job_results import ResultDraft, StoredResult

PER_SLICE = 10
ACTION_VIEW = "{% for each in result.results %}{{ ui.fields(each) }}{% endfor %}"


@dataclass(frozen=True, slots=True)
class JobResult:
    """One result. `chunk` is the number of its chunk in the document; of equal `mark`s a job keeps one."""

    data: Mapping[str, Any]
    page: int | None = None
    chunk: int | None = None
    mark: str | None = None
    # Set where a result is read.
    document: str = ""
    generation: int = 0

    @classmethod
    def of(cls, stored: StoredResult) -> "JobResult":
        """A stored result."""
        return cls(stored.data, stored.page, stored.chunk, document=stored.document, generation=stored.source)


def published_results(query: SearchQuery, kind: str) -> list[JobResult]:
    """What the latest successful jobs of the kind left in the collection, as readers see it now."""
    stored = query.db.read(
        lambda tx: store.of_kind(tx, query.tenant, query.collection, kind, query.documents)
    )
    return [JobResult.of(each) for each in stored]


OnDocument = Callable[[Work, ReadyDocument, Model | None], Iterable[JobResult | Mapping[str, Any]]]
"""The work for one document. `work.options` are the parameters; the model is None unless one is asked."""


def document_kind(
    name: str,
    run: OnDocument,
    job: JobSpec,
    *,
    version: int = 1,
    per_slice: int = PER_SLICE,
    search: SearchSource | None = None,
) -> Kind:
    """A kind that runs `run` on each document of a job, and of a collection that has it as an action."""

    def plan(work: Work) -> list[Slice]:
        sources = corpus.planned(work.db, work)
        work.note(f"reading {many(len(sources), 'document')}")
        places = [[each.document, each.head_id, each.generation] for each in sources]
        cuts = [places[start : start + per_slice] for start in range(0, len(places), per_slice)]
        return [Slice({"documents": cut}, weight=len(cut)) for cut in cuts]

    def run_slice(work: Work) -> Finish:
        model = corpus.model_of(work) if job.asks_model else None
        tally, drafts, failed = job_summary.SliceTally(), list[ResultDraft](), 0
        places = work.payload["documents"]
        for done, (document, head_id, generation) in enumerate(places, start=1):
            work.check()
            results = _of_document(work, run, model, str(document), int(head_id), int(generation), tally)
            failed += any(not result.good for result in results)
            drafts += results
            work.progress(done, len(places), unit="documents")
        counts = {"asked": len(places), "found": len(drafts) - failed, "failed": failed}
        return Finish({**tally.as_dict(), **counts}, also=lambda tx: job_results.keep(tx, work.claim, drafts))

    return Kind(
        name,
        run_slice,
        plan=plan,
        publish=_publish,
        version=version,
        job=job,
        actions=(_action(name, run, job),),
        search=search,
    )


def _of_document(
    work: Work,
    run: OnDocument,
    model: Model | None,
    document: str,
    head_id: int,
    generation: int,
    tally: job_summary.SliceTally,
) -> list[ResultDraft]:
    """The results of one document, or the one that says why it has none."""
    pieces = job_sources.pieces(work.db, head_id, generation)
    try:
        if pieces is None:
            tally.replaced += 1
            message = "the document was replaced or deleted before it was read; request the job again"
            raise WorkError(message, code="documents_changed")
        passages = tuple(Passage(piece.text, piece.page) for piece in pieces)
        ready = ReadyDocument(subjects.of_document(document), generation, passages)
        results = _results(run(work, ready, model))
    except WorkError as error:
        if pieces is not None:
            if error.code not in model_calls.OF_ONE:
                raise
            tally.note(error)
        data = {"error": {"code": error.code, "message": error.message}}
        return [ResultDraft(document, generation, data, good=False)]
    return [
        ResultDraft(document, generation, each.data, each.page, each.chunk, each.mark) for each in results
    ]


def _results(returned: Iterable[JobResult | Mapping[str, Any]]) -> list[JobResult]:
    return [each if isinstance(each, JobResult) else JobResult(each) for each in returned]


def _publish(tx: Tx, claim: Claim) -> None:
    """At least one document gave a result."""
    if not job_results.collect(tx, claim.run_id).good:
        raise job_summary.why_nothing(tx, claim.run_id, "no document gave a result")


def _action(name: str, run: OnDocument, job: JobSpec) -> ActionSpec:
    estimate = job.estimate

    def on_document(work: Work, document: ReadyDocument, model: Model | None) -> dict[str, Any]:
        return {"results": [dict(each.data) for each in _results(run(work, document, model))]}

    def calls(
        params: Mapping[str, Any], document: ReadyDocument, model: Model | None
    ) -> tuple[Sequence[Call], bool]:
        if estimate is None:
            return (), False
        return estimate(params, [each.text for each in document.passages], model), True

    return ActionSpec(
        name=name,
        title=job.title,
        parameters=job.parameters or {},
        check=job.check,
        run=on_document,
        asks_model=job.asks_model,
        estimate=calls,
        view=ACTION_VIEW,
    )
