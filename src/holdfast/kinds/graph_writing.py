"""The nodes of a graph, written slice by slice: entities, relations, and the reports of a level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.core.errors import WorkError
from holdfast.engine.models import Model
from holdfast.engine.work import Work
from holdfast.kinds import corpus, graph_answers, job_summary, model_calls
from holdfast.kinds.communities import Community
from holdfast.kinds.graph_assembly import Assembly, Embedder, Relation, Subject
from holdfast.kinds.graph_descriptions import Described, DescriptionWork
from holdfast.kinds.graph_reports import CommunityReport, ReportMember, ReportTask
from holdfast.ledger.pay import Call
from holdfast.search import tokenizer
from holdfast.store.base.database import Database
from holdfast.store.derived import inputs
from holdfast.store.derived.staging import EdgeDraft, NodeDraft, NodeSourceDraft, StateDraft
from holdfast.store.jobs.job_results import ResultDraft

ENTITY, RELATION, REPORT = "entity", "relation", "report"
DASH = " \u2013 "
BATCH = 16
# Texts that are embedded together.
EMBED = 64


@dataclass(slots=True)
class SliceOutput:
    """What one slice stages, and what it says of itself."""

    unit: str
    nodes: list[NodeDraft] = field(default_factory=list)
    edges: list[EdgeDraft] = field(default_factory=list)
    state: list[StateDraft] = field(default_factory=list)
    results: list[ResultDraft] = field(default_factory=list)
    tally: job_summary.SliceTally = field(default_factory=job_summary.SliceTally)
    done: int = 0
    questions: int = 0

    def failed(self, document: str, version: int, chunk: int, error: WorkError) -> None:
        """Something of this document was not answered: that is a result, too."""
        self.tally.note(error)
        self.tally.failed += 1
        data = {"error": {"code": error.code, "message": error.message[:500]}}
        self.results.append(ResultDraft(document, version, data, chunk=chunk, good=False))

    def replaced(self, document: str, version: int) -> None:
        """The document has another version by now, or is gone."""
        self.tally.replaced += 1
        message = "the document was replaced or deleted before it was read; request the job again"
        data = {"error": {"code": "documents_changed", "message": message}}
        self.results.append(ResultDraft(document, version, data, good=False))

    def summary(self) -> dict[str, Any]:
        """The result of the slice."""
        return {**self.tally.as_dict(), "asked": self.questions, "found": self.questions - self.tally.failed}


def written(work: Work, assembly: Assembly) -> SliceOutput:
    """Entities, or relations: described, embedded, and as nodes."""
    if "entities" in work.payload:
        return _entities(work, assembly)
    return _relations(work, assembly)


def _entities(work: Work, assembly: Assembly) -> SliceOutput:
    first, end = work.payload["entities"]
    output, model = SliceOutput("entities"), corpus.model_of(work)
    entities = [assembly.entities[key] for key in assembly.entity_keys[first:end]]
    described = [Described.of(each.title, each.fragments) for each in entities]
    _describe(work, model, described, entities, output)
    texts = [each.texts[0] for each in described]
    calls = embedded(
        work,
        [(each.embedder, f"{each.title}\n{text}") for each, text in zip(entities, texts, strict=True)],
    )
    for entity, text, one, call_key in zip(entities, texts, described, calls, strict=True):
        x, y = assembly.positions[entity.key]
        data = {"kind": entity.type, "names": entity.names, "mentions": entity.mentions, "x": x, "y": y}
        spelled = "\n".join([entity.title, *entity.names, text])
        output.nodes.append(
            NodeDraft(
                entity.key,
                ENTITY,
                0,
                entity.title,
                text,
                entity.sources,
                document=_only_document(entity.sources),
                call_key=call_key,
                words=tokenizer.joined(spelled),
                data={**data, "stand_in": model.stand_in, **_error(one.error)},
            )
        )
    output.done = len(entities)
    return output


def _relations(work: Work, assembly: Assembly) -> SliceOutput:
    first, end = work.payload["relations"]
    output, model = SliceOutput("relations"), corpus.model_of(work)
    relations = [assembly.relations[key] for key in assembly.relation_keys[first:end]]
    titles = [relation_title(assembly, each) for each in relations]
    described = [Described.of(title, each.fragments) for title, each in zip(titles, relations, strict=True)]
    _describe(work, model, described, relations, output)
    for relation, title, one in zip(relations, titles, described, strict=True):
        source, target = relation.pair
        label = relation.label or graph_answers.one_line(one.texts[0], graph_answers.MOST_LABEL)
        data = {"relation": label, "weight": relation.weight, "source": source, "target": target}
        output.nodes.append(
            NodeDraft(
                relation.key,
                RELATION,
                0,
                title,
                one.texts[0],
                relation.sources,
                document=_only_document(relation.sources),
                words=tokenizer.joined(f"{title}\n{label}\n{one.texts[0]}"),
                data={**data, "stand_in": model.stand_in, **_error(one.error)},
            )
        )
        output.edges.append(
            EdgeDraft(RELATION, source, target, label, {"node": relation.key, "weight": relation.weight})
        )
    output.done = len(relations)
    return output


def relation_title(assembly: Assembly, relation: Relation) -> str:
    """The names of its entities."""
    return DASH.join(assembly.entities[key].title for key in relation.pair)


def _describe(
    work: Work, model: Model, described: Sequence[Described], about: Sequence[Subject], output: SliceOutput
) -> None:
    """All have one text; those that a model refused are listed."""
    stages = {"describing": (0, len(described))}
    work.progress(0, len(described), unit=output.unit, stages=stages)
    writer = DescriptionWork(work, model)
    writer.run(described)
    output.questions = writer.calls
    for one, subject in zip(described, about, strict=True):
        if one.error is not None:
            source = subject.sources[0]
            output.failed(source.document, source.version, source.first, one.error)


def reported(work: Work, db: Database, assembly: Assembly) -> SliceOutput:
    """The reports of some communities of a level, embedded, and as nodes above their members."""
    output, model = SliceOutput("reports"), corpus.model_of(work)
    level = int(work.payload["level"])
    names = set(work.payload["communities"])
    listed = [each for each in assembly.of_level(level) if each.name in names]
    tasks = _tasks(work, db, assembly, listed, str(work.options["notes"]))
    reports: list[CommunityReport] = []
    for start in range(0, len(tasks), BATCH):
        stages = {"reporting": (start, len(tasks))}
        work.progress(start, len(tasks), unit="reports", stages=stages)
        reports += _reports(work, model, tasks[start : start + BATCH], output)
    sources = [_sources(assembly, each) for each in listed]
    embedders = [embedder_of(assembly, each) for each in listed]
    texts = [f"{each.title}\n{each.text}" for each in reports]
    calls = embedded(work, list(zip(embedders, texts, strict=True)))
    for community, task, report, own, call_key in zip(listed, tasks, reports, sources, calls, strict=True):
        key = assembly.report_keys[community.name]
        x, y = assembly.positions[community.name]
        data: dict[str, Any] = {
            "findings": list(report.findings),
            "size": len(assembly.entities_of(community)),
        }
        output.nodes.append(
            NodeDraft(
                key,
                REPORT,
                level,
                report.title,
                report.text,
                own,
                document=_only_document(own),
                call_key=call_key,
                words=tokenizer.joined(f"{report.title}\n{report.text}"),
                data={**data, "x": x, "y": y, "stand_in": model.stand_in, **_error(report.error)},
                children=[each.key for each in task.members],
            )
        )
        state = {"members": list(community.members), "node": key}
        output.state.append(StateDraft(community.name, level, state))
        if report.error is not None:
            output.failed(own[0].document, own[0].version, own[0].first, report.error)
    output.done = len(listed)
    return output


def _tasks(
    work: Work, db: Database, assembly: Assembly, listed: Sequence[Community], notes: str
) -> list[ReportTask]:
    """What is known of the communities: by now their members are staged."""
    keys = [key for each in listed for key in (*member_keys(assembly, each), *_inner(assembly, each))]
    said: dict[str, tuple[str, str]] = {}
    for start in range(0, len(keys), 500):
        nodes = inputs.of_keys(db, work.claim, keys[start : start + 500])
        said |= {each.key: (each.title, each.text) for each in nodes}
    return [report_task(assembly, each, said, notes) for each in listed]


def report_task(
    assembly: Assembly, community: Community, said: Mapping[str, tuple[str, str]], notes: str
) -> ReportTask:
    """A community to be reported on, given the titles and texts of nodes by key."""
    members = []
    for key in member_keys(assembly, community):
        entity = assembly.entities.get(key)
        members.append(ReportMember(key, *said[key], "" if entity is None else entity.type))
    lines = [f"{said[key][0]}: {said[key][1]}" for key in _inner(assembly, community)]
    return ReportTask(members, lines, notes)


def _inner(assembly: Assembly, community: Community) -> Sequence[str]:
    return assembly.inner.get(community.name, ()) if community.level == 1 else ()


def member_keys(assembly: Assembly, community: Community) -> list[str]:
    """The keys of the nodes of a community's members."""
    return [assembly.report_keys.get(each, each) for each in community.members]


def _reports(
    work: Work, model: Model, tasks: Sequence[ReportTask], output: SliceOutput
) -> list[CommunityReport]:
    """A report for each; a community of one is quoted and costs nothing."""
    calls = {at: task.call(model) for at, task in enumerate(tasks) if len(task.members) > 1}
    results = model_calls.paid(work, list(calls.values())) if calls else []
    answers = dict(zip(calls, results, strict=True))
    output.questions += len(calls)
    reports = {
        at: read_report(task, answers[at]) if at in answers else task.quoted()
        for at, task in enumerate(tasks)
    }
    wrong = {
        at: model_calls.again(calls[at], answer, graph_answers.COMPLAINT)
        for at, answer in answers.items()
        if isinstance(answer, bytes)
        and (error := reports[at].error) is not None
        and error.code in {"bad_answer", "answer_cut"}
    }
    for at, answer in zip(wrong, model_calls.paid(work, list(wrong.values())) if wrong else (), strict=True):
        repaired = read_report(tasks[at], answer)
        if repaired.error is None:
            reports[at] = repaired
    return [reports[at] for at in range(len(tasks))]


def read_report(task: ReportTask, answer: bytes | WorkError) -> CommunityReport:
    """The report in an answer; a quote where there is none, and why."""
    try:
        if isinstance(answer, WorkError):
            raise answer
        return task.read(answer)
    except WorkError as error:
        if error.code not in model_calls.OF_ONE:
            raise
        return task.quoted(error)


def _sources(assembly: Assembly, community: Community) -> list[NodeSourceDraft]:
    """The chunks of all members; above level 1 one range for each document."""
    subject = Subject()
    parts: Iterable[Subject] = [
        *(assembly.entities[key] for key in assembly.entities_of(community)),
        *(assembly.relations[key] for key in _inner(assembly, community)),
    ]
    for each in parts:
        for source, numbers in each.chunks.items():
            subject.chunks.setdefault(source, set()).update(numbers)
    if community.level == 1:
        return subject.sources
    return [
        NodeSourceDraft(document, version, min(numbers), max(numbers))
        for (document, version), numbers in sorted(subject.chunks.items())
    ]


def embedder_of(assembly: Assembly, community: Community) -> Embedder | None:
    """Who embedded most of what is in a community."""
    subject = Subject()
    for key in assembly.entities_of(community):
        subject.embedders.update(assembly.entities[key].embedders)
    return subject.embedder


def embedded(work: Work, texts: Sequence[tuple[Embedder | None, str]]) -> list[str | None]:
    """The calls that embedded the texts, by the model that embedded what they are from."""
    calls = [None if by is None else Call(by[0], "embeddings", by[1], text) for by, text in texts]
    by_model: dict[tuple[str, str], list[Call]] = {}
    for call in calls:
        if call is not None:
            by_model.setdefault((call.provider, call.model), []).append(call)
    for some in by_model.values():
        for start in range(0, len(some), EMBED):
            work.check()
            work.pay(some[start : start + EMBED])
    return [None if call is None else call.key(work.claim.tenant) for call in calls]


def _only_document(sources: Sequence[NodeSourceDraft]) -> str | None:
    documents = {each.document for each in sources}
    return documents.pop() if len(documents) == 1 else None


def _error(error: WorkError | None) -> dict[str, Any]:
    return {} if error is None else {"error": {"code": error.code, "message": error.message[:500]}}
