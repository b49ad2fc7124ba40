"""The kind `graph`: entities of a collection, what relates them, their communities, and reports on these.

Documents are read in windows that their content decides (`graph_windows`). Names are brought together
(`graph_names`), descriptions written (`graph_descriptions`), and communities, which the published generation
keeps, take in what is new (`communities`). Reports are written bottom-up, one level of communities a phase.
A later run pays for the windows, names, descriptions and reports that changed.

What windows said is staged as state of the run, and deleted when the run is published. Each later slice puts
the same graph together from it (`graph_assembly`) and does its part. A window that the model does not answer
is left out, and listed with its document.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.core.errors import BadRequestError
from holdfast.core.records import Claim, Slice
from holdfast.engine.kinds import Finish, Kind
from holdfast.engine.work import Work
from holdfast.kinds import (
    corpus,
    graph_answers,
    graph_assembly,
    graph_estimates,
    graph_extraction,
    graph_names,
    graph_writing,
    job_summary,
    model_calls,
)
from holdfast.kinds.communities import MOST_LEVELS
from holdfast.kinds.derived_kind import NOTES, DerivedKind
from holdfast.kinds.graph_answers import ExtractionRules
from holdfast.kinds.graph_assembly import Assembly, WindowMentions
from holdfast.kinds.graph_extraction import DocumentWindow, ExtractionWork
from holdfast.kinds.graph_writing import SliceOutput
from holdfast.kinds.log_phrases import many
from holdfast.kinds.neighbour_groups import digest
from holdfast.store.base.database import Database, Tx
from holdfast.store.derived import inputs, staging
from holdfast.store.derived.staging import StateDraft
from holdfast.store.jobs import job_results
from holdfast.store.jobs.job_results import ResultDraft
from holdfast.store.protocol import slices

NAME = "graph"
VERSION = 1
PROMPTS = 1
MOST_TYPES = 40
# What a slice holds at most.
CHUNKS_IN_SLICE = 120
BLOCKS_IN_SLICE = 48
ENTITIES_IN_SLICE = 200
RELATIONS_IN_SLICE = 400
REPORTS_IN_SLICE = 40
# State of one run: what windows said, and which names mean the same. Below are the levels of communities.
WINDOWS, SAME = 100, 101
EXTRACT, NAMES, WRITE, REPORT = "extract", "names", "write", "report"
# Windows are a bit less than half of the calls; descriptions, and the reports of each level, follow.
PHASE_SHARE = 0.45
STAGES = {EXTRACT: "extracting", NAMES: "names", WRITE: "describing", REPORT: "reporting"}

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "entity_types": {
            "title": "Types of entities",
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": graph_names.MOST_TYPE},
            "minItems": 1,
            "maxItems": MOST_TYPES,
            "default": list(graph_answers.TYPES),
        },
        "gleanings": {
            "title": "How often to ask for what was missed",
            "type": "integer",
            "minimum": 0,
            "maximum": 2,
            "default": 0,
            "description": "Each time is one more call for every window.",
        },
        "merge_names": {
            "title": "Ask which names mean the same",
            "type": "boolean",
            "default": True,
        },
        "notes": NOTES,
        "rebuild": {
            "title": "Find communities anew",
            "type": "boolean",
            "default": False,
            "description": "Forget the communities of the last run; most reports are paid again.",
        },
    },
}
RESULT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "windows": {"type": "integer", "description": "How many windows of the document were read."},
        "entities": {"type": "integer", "description": "How many entities they mention."},
        "relations": {"type": "integer", "description": "How many relations they state."},
    },
}


def checked(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters as they are frozen: types in canonical order, so that the same types are one request."""
    types = sorted({graph_names.type_of(each) for each in params["entity_types"]} - {""})
    if not types:
        raise BadRequestError("entity_types must have a word among them", code="bad_params")
    return {**params, "entity_types": types, "notes": params["notes"].strip()}


class Graph:
    """The work of making a graph, in one process."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._last: tuple[tuple[str, bool], Assembly] | None = None

    def kind(self) -> Kind:
        """The kind to register."""
        return DerivedKind(
            name=NAME,
            title="Knowledge graph",
            description="Entities of a collection, their relations, their communities and reports on these.",
            version=VERSION,
            prompts=PROMPTS,
            parameters=PARAMETERS,
            result=RESULT,
            stages=tuple(STAGES.values()),
            estimate=graph_estimates.calls_of,
            phase_share=PHASE_SHARE,
            check=checked,
        ).kind(self)

    def plan(self, work: Work) -> list[Slice]:
        """The documents, to be read window by window."""
        self._last = None
        sources = corpus.planned(self._db, work)
        work.note(f"reading {many(len(sources), 'document')}")
        return _document_slices(
            [(each.document, each.head_id, each.generation, each.chunks) for each in sources]
        )

    def plan_next(self, work: Work) -> list[Slice]:
        """The next step that has anything to do: names, descriptions, or reports of a level."""
        # By the results: a plan that does its only slice itself has no payload.
        done: list[Mapping[str, Any]] = [each.result for each in work.earlier(work.phase - 1)]
        step, level = str(done[0]["step"]), int(done[0].get("level", 0))
        if step == EXTRACT and work.options["merge_names"] and not corpus.model_of(work).stand_in:
            blocks = self._assembly(work, merged=False).blocks
            if blocks:
                work.note(f"{many(len(blocks), 'block')} of names that may mean the same")
                return [
                    Slice({"step": NAMES, "blocks": part}, weight=len(part))
                    for part in _parts(blocks, BLOCKS_IN_SLICE)
                ]
        assembly = self._assembly(work)
        if step in {EXTRACT, NAMES}:
            entities, relations = len(assembly.entities), len(assembly.relations)
            work.note(f"{many(entities, 'entity', 'entities')} and {many(relations, 'relation')}")
            return [
                *_ranges("entities", entities, ENTITIES_IN_SLICE),
                *_ranges("relations", relations, RELATIONS_IN_SLICE),
            ]
        names = [each.name for each in assembly.of_level(level + 1)]
        if names:
            work.note(f"{many(len(names), 'community', 'communities')} of level {level + 1}")
        return [
            Slice({"step": REPORT, "level": level + 1, "communities": part}, weight=len(part))
            for part in _parts(names, REPORTS_IN_SLICE)
        ]

    def run(self, work: Work) -> Finish:
        """One slice of any step, ready to be staged."""
        step = str(work.payload.get("step", EXTRACT))
        steps: dict[str, Callable[[Work], SliceOutput]] = {
            EXTRACT: self._extract,
            NAMES: self._names,
            WRITE: lambda work: graph_writing.written(work, self._assembly(work)),
            REPORT: lambda work: graph_writing.reported(work, self._db, self._assembly(work)),
        }
        output = steps[step](work)
        result = {**output.summary(), "step": step, "level": int(work.payload.get("level", 0))}

        def also(tx: Tx) -> None:
            staging.put(tx, work.claim, output.nodes, output.edges, output.state)
            job_results.keep(tx, work.claim, output.results)
            done = {STAGES[step]: (output.done, output.done)}
            slices.put_progress(tx, work.claim, output.done, done, unit=output.unit)

        return Finish(result, also=also)

    def _extract(self, work: Work) -> SliceOutput:
        options = work.options
        rules = ExtractionRules(tuple(options["entity_types"]), str(options["notes"]))
        reader = ExtractionWork(work, corpus.model_of(work), rules, int(options["gleanings"]))
        output = SliceOutput("windows")
        windows: list[DocumentWindow] = []
        counts: dict[str, tuple[int, int]] = {}
        for name, head, version, part, parts in work.payload["documents"]:
            work.check()
            chunks = inputs.chunks_of(self._db, work.claim.tenant, int(head), int(version))
            if chunks is None:
                output.replaced(str(name), int(version))
                continue
            every = graph_extraction.windows_of(chunks, str(name), int(version))
            own = every[len(every) * part // parts : len(every) * (part + 1) // parts]
            windows += own
            if own:
                counts[str(name)] = (int(version), len(own))
        listed = reader.run(windows)
        output.done = len(windows)
        output.questions = len(windows)
        for window, error in reader.errors:
            output.failed(window.document, window.version, min(window.chunks), error)
        output.state = [_staged(work, number, each) for number, each in enumerate(listed)]
        output.results += _results(counts, listed)
        return output

    def _names(self, work: Work) -> SliceOutput:
        """Blocks of names, each asked about once."""
        model, assembly = corpus.model_of(work), self._assembly(work, merged=False)
        output = SliceOutput("names")
        blocks: list[list[str]] = work.payload["blocks"]
        for start in range(0, len(blocks), graph_extraction.BATCH):
            some = blocks[start : start + graph_extraction.BATCH]
            work.progress(start, len(blocks), unit="names", stages={STAGES[NAMES]: (start, len(blocks))})
            calls = [graph_answers.names_call(model, assembly.lines_of(block)) for block in some]
            for block, answer in zip(some, model_calls.paid(work, calls), strict=True):
                groups = output.tally.read(answer, functools.partial(graph_answers.same_names, block=block))
                if groups:
                    name = digest("\n".join(block))
                    output.state.append(StateDraft(name, SAME, {"groups": groups}))
        output.done = len(blocks)
        return output

    def _assembly(self, work: Work, *, merged: bool = True) -> Assembly:
        """The graph of the run. The last one is remembered: the next slice here is probably of the same."""
        which = (work.claim.run_id, merged)
        if self._last is not None and self._last[0] == which:
            return self._last[1]
        self._last = None
        work.check()
        windows = inputs.staged_state(self._db, work.claim, WINDOWS)
        same = inputs.staged_state(self._db, work.claim, SAME) if merged else []

        def stored() -> dict[int, dict[str, str]]:
            return {} if work.options["rebuild"] else self._stored(work)

        groups = [group for each in same for group in each.data["groups"]]
        assembly = Assembly((WindowMentions.of_json(each.data) for each in windows), groups, stored)
        self._last = (which, assembly)
        return assembly

    def _stored(self, work: Work) -> dict[int, dict[str, str]]:
        """What was in which community of each level last time."""
        levels: dict[int, dict[str, str]] = {}
        for level in range(1, MOST_LEVELS + 1):
            states = inputs.published_state(self._db, work.claim, level)
            if not states:
                break
            levels[level] = graph_assembly.homes(states)
        return levels

    def publish(self, tx: Tx, claim: Claim) -> None:
        """There is an entity; none is left of a document that was deleted meanwhile."""
        self._last = None
        staging.drop_gone(tx, claim)
        staging.drop_state(tx, claim, WINDOWS)
        job_results.collect(tx, claim.run_id)
        if not staging.has_nodes(tx, claim):
            raise job_summary.why_nothing(tx, claim.run_id, "the documents name nothing")


def _document_slices(listed: Sequence[tuple[str, int, int, int]]) -> list[Slice]:
    """Slices of about so many chunks: some documents each, or a part of a long one."""
    planned: list[Slice] = []
    filling: list[list[Any]] = []
    size = 0
    for document, head, version, chunks in listed:
        parts = -(-chunks // (2 * CHUNKS_IN_SLICE))
        if parts > 1:
            weight = max(1, chunks // parts)
            planned += [
                Slice({"step": EXTRACT, "documents": [[document, head, version, part, parts]]}, weight=weight)
                for part in range(parts)
            ]
            continue
        if filling and size + chunks > CHUNKS_IN_SLICE:
            planned.append(Slice({"step": EXTRACT, "documents": filling}, weight=max(1, size)))
            filling, size = [], 0
        filling.append([document, head, version, 0, 1])
        size += chunks
    last = [Slice({"step": EXTRACT, "documents": filling}, weight=max(1, size))] if filling else []
    return [*planned, *last]


def _parts(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _ranges(name: str, count: int, size: int) -> list[Slice]:
    return [
        Slice(
            {"step": WRITE, name: [start, min(count, start + size)]}, weight=min(count, start + size) - start
        )
        for start in range(0, count, size)
    ]


def _staged(work: Work, number: int, mentions: WindowMentions) -> StateDraft:
    # The name orders what is read back: by slice and place, which decide nothing.
    return StateDraft(f"{work.claim.ordinal:08d}-{number:05d}", WINDOWS, mentions.as_json())


def _results(counts: Mapping[str, tuple[int, int]], listed: Sequence[WindowMentions]) -> list[ResultDraft]:
    """What was found in each document."""
    drafts = []
    for document, (version, windows) in counts.items():
        own = [each.extraction for each in listed if each.document == document]
        names = {graph_names.normalised(one.name) for each in own for one in each.entities}
        relations = sum(len(each.relations) for each in own)
        if own:
            data = {"windows": windows, "entities": len(names), "relations": relations}
            drafts.append(ResultDraft(document, version, data))
    return drafts
