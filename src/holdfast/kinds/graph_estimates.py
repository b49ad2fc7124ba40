"""The calls of a graph before any is made: the graph is put together as it would be, with what is known.

The windows are those that a run would read, so their number is exact. A window, a block of names, a
description or a report that was paid for before is read from the ledger. What a window says that was never
read is guessed by the stand-in, which finds names by their capitals: how many descriptions and reports follow
from it is an expectation. The estimate of an unchanged collection is exact.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.core.errors import WorkError
from holdfast.engine.job_specs import EstimatedCalls, JobEstimate
from holdfast.engine.models import Model
from holdfast.kinds import (
    graph_answers,
    graph_assembly,
    graph_descriptions,
    graph_extraction,
    graph_writing,
    model_calls,
)
from holdfast.kinds.communities import Community
from holdfast.kinds.graph_answers import Extraction, ExtractionRules
from holdfast.kinds.graph_assembly import Assembly, Embedder, WindowMentions
from holdfast.kinds.graph_descriptions import Described
from holdfast.kinds.graph_extraction import DocumentWindow
from holdfast.ledger.pay import Call
from holdfast.providers import cooccurrence, local
from holdfast.store.base.database import Database
from holdfast.store.derived import inputs

NAME = "graph"
# State above this level is of a run that is under way.
OF_COMMUNITIES = 100
AT_ONCE = 500
# What stands for a description or a report that is not written yet, in words.
WORDS = "word " * 60


@dataclass(slots=True)
class GraphEstimate:
    """A graph that is put together without paying for it, and the calls that it takes."""

    db: Database
    tenant: str
    model: Model
    check: Callable[[], None]
    calls: list[Call] = field(default_factory=list)

    def answers(self, calls: Sequence[Call]) -> list[bytes | None]:
        """The calls are counted; of those that were paid for before, the results."""
        self.calls += calls
        keys = [call.key(self.tenant) for call in calls]
        known: dict[str, bytes] = {}
        for start in range(0, len(keys), AT_ONCE):
            self.check()
            known |= inputs.answers(self.db, self.tenant, keys[start : start + AT_ONCE])
        return [known.get(key) for key in keys]

    def windows(
        self, windows: Sequence[DocumentWindow], rules: ExtractionRules, gleanings: int
    ) -> list[WindowMentions]:
        """What the windows say, as far as that is known; a guess for the others."""
        calls = [graph_answers.extraction_call(self.model, each.text, rules) for each in windows]
        answers = self.answers(calls)
        read = [None if answer is None else graph_extraction.read(answer) for answer in answers]
        self._repaired(calls, answers, read)
        listed = []
        for window, extraction in zip(
            windows, self._gleaned(calls, answers, read, windows, gleanings), strict=True
        ):
            if isinstance(extraction, Extraction):
                listed.append(
                    graph_assembly.mentions(
                        extraction, window.document, window.version, window.chunks, window.embedder
                    )
                )
        return listed

    def _repaired(
        self, calls: list[Call], answers: list[bytes | None], read: list[Extraction | WorkError | None]
    ) -> None:
        repairs = {
            at: model_calls.again(calls[at], answer, graph_answers.COMPLAINT)
            for at, (answer, each) in enumerate(zip(answers, read, strict=True))
            if answer is not None and each is not None and graph_extraction.is_repairable(answer, each)
        }
        for at, answer in zip(repairs, self.answers(list(repairs.values())), strict=True):
            if answer is not None and isinstance(extraction := graph_extraction.read(answer), Extraction):
                calls[at], answers[at], read[at] = repairs[at], answer, extraction

    def _gleaned(
        self,
        calls: list[Call],
        answers: list[bytes | None],
        read: Sequence[Extraction | WorkError | None],
        windows: Sequence[DocumentWindow],
        gleanings: int,
    ) -> list[Extraction | WorkError]:
        full = [
            self._guessed(window.text) if each is None else each
            for window, each in zip(windows, read, strict=True)
        ]
        for _ in range(0 if self.model.stand_in else gleanings):
            more = {
                at: model_calls.again(calls[at], answers[at] or _said(WORDS), graph_answers.MORE)
                for at, each in enumerate(full)
                if isinstance(each, Extraction) and each
            }
            for at, answer in zip(more, self.answers(list(more.values())), strict=True):
                own = full[at]
                extraction = None if answer is None else graph_extraction.read(answer)
                if isinstance(own, Extraction) and isinstance(extraction, Extraction):
                    own.add(extraction)
                calls[at], answers[at] = more[at], answer
        return full

    def _guessed(self, text: str) -> Extraction:
        self.check()
        return _guess(text)

    def same(self, assembly: Assembly) -> list[Sequence[str]]:
        """The names that are known to mean the same."""
        blocks = assembly.blocks
        calls = [graph_answers.names_call(self.model, assembly.lines_of(block)) for block in blocks]
        groups: list[Sequence[str]] = []
        for block, answer in zip(blocks, self.answers(calls), strict=True):
            try:
                groups += [] if answer is None else graph_answers.same_names(answer, block)
            except WorkError:
                continue
        return groups

    def described(self, listed: Sequence[Described]) -> list[str]:
        """The descriptions, as far as they are known."""
        while open_ones := [each for each in listed if not each.is_done]:
            parts = [(each, group) for each in open_ones for group in graph_descriptions.groups(each.texts)]
            for each in open_ones:
                each.texts = []
            several = [(each, group) for each, group in parts if len(group) > 1]
            calls = [graph_descriptions.call(self.model, each.name, group) for each, group in several]
            answers = iter(self.answers(calls))
            for each, group in parts:
                each.texts.append(group[0] if len(group) == 1 else _text(next(answers), each.name))
        return [each.texts[0] for each in listed]

    def embedded(self, texts: Sequence[tuple[Embedder | None, str]]) -> None:
        """The calls that embed the texts are counted, where embedding costs anything."""
        self.calls += [
            Call(by[0], "embeddings", by[1], text) for by, text in texts if by and by[0] != local.NAME
        ]

    def reports(
        self,
        assembly: Assembly,
        listed: Sequence[Community],
        said: dict[str, tuple[str, str]],
        notes: str,
    ) -> None:
        """The reports of a level; what they say is in `said` by the keys of their nodes."""
        tasks = [graph_writing.report_task(assembly, each, said, notes) for each in listed]
        several = [task for task in tasks if len(task.members) > 1]
        answers = iter(self.answers([task.call(self.model) for task in several]))
        for community, task in zip(listed, tasks, strict=True):
            report = task.quoted()
            answer = next(answers) if len(task.members) > 1 else None
            if answer is not None:
                report = graph_writing.read_report(task, answer)
            said[assembly.report_keys[community.name]] = (report.title, report.text)
        keys = [assembly.report_keys[each.name] for each in listed]
        embedders = [graph_writing.embedder_of(assembly, each) for each in listed]
        self.embedded([(by, "\n".join(said[key])) for by, key in zip(embedders, keys, strict=True)])


def calls_of(estimate: JobEstimate) -> EstimatedCalls:
    """The calls of a job, as far as they can be told before it runs; certain are those that read windows."""
    params: Mapping[str, Any] = estimate.params
    model = model_calls.required(estimate.model)
    graph = GraphEstimate(estimate.db, estimate.tenant, model, estimate.check)
    windows: list[DocumentWindow] = []
    for document, head, version in estimate.documents:
        estimate.check()
        chunks = inputs.chunks_of(estimate.db, estimate.tenant, head, version) or ()
        windows += graph_extraction.windows_of(chunks, document, version)
    rules = ExtractionRules(tuple(params["entity_types"]), str(params["notes"]))
    mentions = graph.windows(windows, rules, int(params["gleanings"]))
    certain = len(graph.calls)
    groups: Sequence[Sequence[str]] = ()
    if params["merge_names"] and not model.stand_in:
        groups = graph.same(Assembly(mentions))
    assembly = Assembly(mentions, groups, lambda: {} if params["rebuild"] else _stored(estimate))
    said = _nodes(graph, assembly)
    level = 1
    while listed := assembly.of_level(level):
        graph.reports(assembly, listed, said, str(params["notes"]))
        level += 1
    return EstimatedCalls(graph.calls[:certain], graph.calls[certain:])


def _nodes(graph: GraphEstimate, assembly: Assembly) -> dict[str, tuple[str, str]]:
    """The titles and texts of entities and relations, by key."""
    entities = [assembly.entities[key] for key in assembly.entity_keys]
    relations = [assembly.relations[key] for key in assembly.relation_keys]
    titles = [*(each.title for each in entities)]
    titles += [graph_writing.relation_title(assembly, each) for each in relations]
    subjects = [*entities, *relations]
    texts = graph.described(
        [Described.of(title, each.fragments) for title, each in zip(titles, subjects, strict=True)]
    )
    graph.embedded(
        [
            (entity.embedder, f"{title}\n{text}")
            for entity, title, text in zip(entities, titles, texts, strict=False)
        ]
    )
    keys = [*assembly.entity_keys, *assembly.relation_keys]
    return {key: (title, text) for key, title, text in zip(keys, titles, texts, strict=True)}


def _stored(estimate: JobEstimate) -> dict[int, dict[str, str]]:
    levels = inputs.states_of(estimate.db, estimate.tenant, NAME, f"collection:{estimate.collection}")
    return {level: graph_assembly.homes(states) for level, states in levels.items() if level < OF_COMMUNITIES}


def _guess(text: str) -> Extraction:
    return graph_answers.extraction(_said(json.dumps(cooccurrence.graph(text))))


def _said(text: str) -> bytes:
    return json.dumps({"content": text, "finish_reason": "stop"}).encode()


def _text(answer: bytes | None, name: str) -> str:
    try:
        return f"{name} {WORDS}" if answer is None else graph_descriptions.read(answer)
    except WorkError:
        return f"{name} {WORDS}"
