"""The kind `mindmap`: a map of topics of each document, and one of the collection over them.

A document is one call over its outline (`outlines`), the collection one over the topics of its documents. A
call holds titles alone, documents in an order that these decide: what leaves the outlines as they are costs
nothing. If the topics of a collection do not fit into one call, they are put together in several, whose
topics are mapped in turn; each of these calls is a phase later. Without a language model no call is made,
and the outline itself is the map.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.core.errors import WorkError
from holdfast.core.records import Claim, Slice
from holdfast.engine.kinds import Finish, Kind
from holdfast.engine.work import Work
from holdfast.kinds import (
    corpus,
    job_summary,
    mindmap_estimates,
    model_calls,
    topic_blocks,
    topic_nodes,
)
from holdfast.kinds.derived_kind import NOTES, DerivedKind
from holdfast.kinds.log_phrases import many
from holdfast.kinds.topic_blocks import TopicBlock
from holdfast.kinds.topic_nodes import DocumentOutline
from holdfast.ledger.pay import Call
from holdfast.store.base.database import Database, Tx
from holdfast.store.derived import inputs, outlines, staging
from holdfast.store.derived.staging import NodeDraft, StateDraft
from holdfast.store.jobs import job_results
from holdfast.store.jobs.job_results import ResultDraft
from holdfast.store.protocol import slices

NAME = "mindmap"
VERSION = 1
PROMPTS = 1
DOCUMENT, COLLECTION = "document", "collection"
DOCUMENTS_IN_SLICE = 32
# Chunks of the documents of one slice, together.
CHUNKS_IN_SLICE = 4000
GROUPS_IN_SLICE = 8
# Maps that are paid for together; between two batches a cancelled job stops.
BATCH = 16
# Nearly all calls are for documents.
PHASE_SHARE = 0.9

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "scope": {
            "title": "Scope",
            "type": "string",
            "enum": [DOCUMENT, COLLECTION],
            "default": COLLECTION,
            "description": "A map of each document; or these, and one of the collection above them.",
        },
        "notes": NOTES,
    },
}
RESULT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "topics": {"type": "string", "description": "The main topics of the document."},
        "count": {"type": "integer", "description": "How many topics its map has."},
    },
}


class Mindmap:
    """The work of mapping, in one process."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def kind(self) -> Kind:
        """The kind to register."""
        return DerivedKind(
            name=NAME,
            title="Mind map",
            description="Maps the topics of documents and of their collection.",
            version=VERSION,
            prompts=PROMPTS,
            parameters=PARAMETERS,
            result=RESULT,
            stages=("mapping",),
            estimate=mindmap_estimates.foreseen,
            phase_share=PHASE_SHARE,
        ).kind(self)

    def plan(self, work: Work) -> list[Slice]:
        """Slices of some documents each."""
        sources = corpus.planned(self._db, work)
        work.note(f"reading {many(len(sources), 'document')}")
        planned: list[Slice] = []
        filling: list[list[Any]] = []
        size = 0
        for each in sources:
            if filling and (len(filling) == DOCUMENTS_IN_SLICE or size + each.chunks > CHUNKS_IN_SLICE):
                planned.append(Slice({"documents": filling}, weight=len(filling)))
                filling, size = [], 0
            filling.append([each.document, each.head_id, each.generation])
            size += each.chunks
        return [*planned, Slice({"documents": filling}, weight=len(filling))]

    def plan_next(self, work: Work) -> list[Slice]:
        """The next calls over the topics of documents; none when the collection has its map."""
        # By the results: a plan that does its only slice itself has no payload.
        done: list[Mapping[str, Any]] = [each.result for each in work.earlier(work.phase - 1)]
        if work.options["scope"] == DOCUMENT or any(each.get("is_last") for each in done):
            return []
        tier = max((int(each["tier"]) for each in done), default=0)
        blocks = topic_blocks.merged(inputs.staged_state(self._db, work.claim, tier))
        if sum(len(block.documents) for block in blocks) < 2:
            return []
        groups = self._groups(work, blocks)
        is_last = len(groups) == 1
        work.note(f"{many(len(blocks), 'outline')} in {many(len(groups), 'map')}")
        cuts = [groups[at : at + GROUPS_IN_SLICE] for at in range(0, len(groups), GROUPS_IN_SLICE)]
        return [Slice({"tier": tier + 1, "is_last": is_last, "groups": cut}, weight=len(cut)) for cut in cuts]

    @staticmethod
    def _groups(work: Work, blocks: Sequence[TopicBlock]) -> list[list[str]]:
        if corpus.model_of(work).stand_in:
            return [[block.name for block in blocks]]
        return [[block.name for block in group] for group in topic_blocks.groups(blocks)]

    def run(self, work: Work) -> Finish:
        """One slice: its maps made, and ready to be staged."""
        tally = job_summary.SliceTally()
        tier = int(work.payload.get("tier", 0))
        run = self._run_collection if tier else self._run_documents
        nodes, state, drafts = run(work, tally)
        failed = [draft for draft in drafts if not draft.good]
        maps = len(work.payload.get("groups", work.payload.get("documents", ())))
        summary = {
            **tally.as_dict(),
            "asked": maps,
            "found": maps - len(failed),
            "failed": len(failed),
            "tier": tier,
            "is_last": bool(work.payload.get("is_last")),
        }

        def also(tx: Tx) -> None:
            staging.put(tx, work.claim, nodes, state=state)
            job_results.keep(tx, work.claim, drafts)
            slices.put_progress(tx, work.claim, maps, {"mapping": (maps, maps)}, unit="maps")

        return Finish(summary, also=also)

    def _run_documents(
        self, work: Work, tally: job_summary.SliceTally
    ) -> tuple[list[NodeDraft], list[StateDraft], list[ResultDraft]]:
        """The maps of some documents."""
        model, notes = corpus.model_of(work), str(work.options["notes"])
        drafts: list[ResultDraft] = []
        outlined: list[DocumentOutline] = []
        for name, head, version in work.payload["documents"]:
            work.check()
            outline = topic_nodes.outline_of(self._db, work.claim.tenant, str(name), int(head), int(version))
            if outline is None:
                tally.replaced += 1
                message = "the document was replaced or deleted before it was read; request the job again"
                data = {"error": {"code": "documents_changed", "message": message}}
                drafts.append(ResultDraft(str(name), int(version), data, good=False))
            elif outline.lines:
                outlined.append(outline)
        nodes: list[NodeDraft] = []
        state: list[StateDraft] = []
        requested = [topic_nodes.call(model, each, notes) for each in outlined]
        for each, answer in zip(outlined, self._answers(work, requested), strict=True):
            mapped = topic_nodes.read(answer, each)
            topics = topic_nodes.of_document(mapped, each, stand_in=model.stand_in)
            nodes += topics
            state.append(topic_blocks.of_map(mapped).draft(0))
            if mapped.error is None:
                titles = "; ".join(topic.title for topic in mapped.topics)
                drafts.append(
                    ResultDraft(each.document, each.version, {"topics": titles, "count": len(topics)})
                )
            else:
                tally.note(mapped.error)
                drafts.append(_failure(each.document, each.version, mapped.error))
        return nodes, state, drafts

    def _run_collection(
        self, work: Work, tally: job_summary.SliceTally
    ) -> tuple[list[NodeDraft], list[StateDraft], list[ResultDraft]]:
        """Some maps over the topics of documents; the last one is that of the collection."""
        model, notes = corpus.model_of(work), str(work.options["notes"])
        tier = int(work.payload["tier"])
        known = {
            block.name: block
            for block in topic_blocks.merged(inputs.staged_state(self._db, work.claim, tier - 1))
        }
        groups = [[known[name] for name in names if name in known] for names in work.payload["groups"]]
        requested = [None if model.stand_in else topic_blocks.call(model, group, notes) for group in groups]
        nodes: list[NodeDraft] = []
        state: list[StateDraft] = []
        drafts: list[ResultDraft] = []
        for group, answer in zip(groups, self._answers(work, requested), strict=True):
            mapped, left_out = topic_blocks.read(answer, group)
            if mapped.by_outline:
                names = [document.name for block in group for document in block.documents]
                titles = outlines.titles_of(self._db, work.claim.tenant, names)
                mapped = topic_blocks.by_titles(group, titles, mapped.error)
            for name, version in left_out:
                message = "the model left this document out of the map of the collection"
                drafts.append(_failure(name, version, WorkError(message, code="invalid_answer")))
            if mapped.error is not None:
                tally.note(mapped.error)
                first = group[0].documents[0]
                drafts.append(_failure(first.name, first.version, mapped.error))
            if work.payload["is_last"]:
                nodes += topic_nodes.of_collection(mapped, stand_in=model.stand_in)
            else:
                state.append(topic_blocks.of_map(mapped).draft(tier))
        return nodes, state, drafts

    @staticmethod
    def _answers(work: Work, requested: Sequence[Call | None]) -> Iterator[bytes | WorkError | None]:
        """The answers in order; None where nothing is asked."""
        calls = [call for call in requested if call is not None]
        answers: list[bytes | WorkError] = []
        for at in range(0, len(calls), BATCH):
            work.check()
            answers += model_calls.paid(work, calls[at : at + BATCH])
            paid, reused = work.spent.paid_calls, work.spent.reused_calls
            work.note(f"{len(answers)} of {len(calls)} maps; {paid} calls paid, {reused} reused")
        left = iter(answers)
        return (None if call is None else next(left) for call in requested)

    def publish(self, tx: Tx, claim: Claim) -> None:
        """At least one topic was found; none is left of a document that was deleted meanwhile."""
        staging.drop_gone(tx, claim)
        # It was for the later phases of this run, and has titles of documents.
        staging.drop_state(tx, claim, 0)
        job_results.collect(tx, claim.run_id)
        if not staging.has_nodes(tx, claim):
            raise job_summary.why_nothing(tx, claim.run_id, "the documents have no text to map")


def _failure(document: str, version: int, error: WorkError) -> ResultDraft:
    data = {"error": {"code": error.code, "message": error.message[:500]}}
    return ResultDraft(document, version, data, good=False)
