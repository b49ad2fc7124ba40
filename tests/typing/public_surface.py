"""A program of a user, for mypy --strict. A line that must be an error says which, behind `# E:`."""

import holdfast
from holdfast import (
    Call,
    Chunk,
    Claim,
    EarlierSlice,
    HoldfastError,
    JobResult,
    JobSpec,
    Kind,
    Model,
    OpenAIProvider,
    ReadyDocument,
    SearchQuery,
    SearchSource,
    Slice,
    SourceHit,
    Tx,
    Work,
    WorkError,
    answer_text,
    document_kind,
    model_call,
    published_results,
)


def plan(work: Work) -> list[Slice]:
    if not work.options["pages"]:
        raise WorkError("the document has no pages", code="no_pages")
    return [Slice({"start": 0})]


def run(work: Work) -> dict[str, int]:
    vectors: tuple[bytes, ...] = work.pay([Call("openai", "embeddings", "text-embedding-3-small", "one")])
    work.stage([Chunk(0, "one", page=1)])
    work.stage([Chunk("0", "one")])  # E: arg-type
    return {"vectors": len(vectors)}


def publish(tx: Tx, claim: Claim) -> None:
    print(claim.subject, claim.generation)


def headline(work: Work, document: ReadyDocument, model: Model | None) -> list[JobResult]:
    (answer,) = work.pay([model_call(model, "Write a headline.", document.text)])
    return [JobResult({"headline": answer_text(answer)}, page=document.passages[0].page)]


def find(query: SearchQuery) -> list[SourceHit]:
    return [SourceHit(each.document, each.data["headline"], 1.0) for each in published_results(query, "x")]


headlines = document_kind(
    "headlines",
    headline,
    JobSpec(title="Headlines", asks_model=True, estimate=lambda params, texts, model: []),
    search=SearchSource("headlines", find),
)
JobSpec("Headlines")  # E: call-arg
document_kind("headlines", plan, JobSpec(title="Headlines"))  # E: arg-type


def plan_next(work: Work) -> list[Slice]:
    results: list[EarlierSlice] = work.earlier(work.phase - 1)
    level: int = work.phase
    texts: list[str] = [chunk.text for chunk in work.earlier_chunks()]
    work.earlier("0")  # E: arg-type
    return [Slice({"texts": texts, "level": level})] if len(results) > 1 else []


book = Kind("book", run=run, plan=plan, publish=publish, plan_next=plan_next)
Kind("book", run=run, plan_next=publish)  # E: arg-type
Kind("book", run=publish)  # E: arg-type
provider = OpenAIProvider("http://127.0.0.1:1/v1", "key")

with holdfast.open("sqlite:///book.db", kinds=[book], providers={"openai": provider}) as hold:
    generation: int = hold.request("book", "document:1", options={"pages": ["one"]}).generation
    hold.request("book")  # E: call-arg
    hold.request("book", "document:1", max_cost="1")  # E: arg-type
    endings: list[str] = [task.ending for task in hold.run_until_idle()]
    state = hold.read("book", "document:1")
    status: str = state.status  # E: union-attr
    texts: list[str] = [chunk.text for chunk in hold.visible_chunks("book", "document:1")]
    job_id: str | None = hold.start_job("headlines", {"words": 1}, collection="shelf").run_id
    headlines_of: list[JobResult] = hold.job_results("1")
    engine = hold.engine  # E: attr-defined

try:
    holdfast.open("nonsense", kinds=book)  # E: arg-type
except HoldfastError as error:
    code: str = error.code
version: str = holdfast.__version__
guard: holdfast.Guard = holdfast.Guard(database="sqlite:///shop.db")
guard.tenant(7)  # E: arg-type
anything = holdfast.Anything  # E: attr-defined
