"""The calls of mind maps before any is made.

Those of documents are known: their outlines are stored. Those above them hold what models wrote; a map that
was paid for before is read from the ledger, any other is stood for by a block of its size.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.engine.job_specs import JobEstimate
from holdfast.kinds import model_calls, neighbour_groups, topic_blocks, topic_maps, topic_nodes
from holdfast.kinds.topic_blocks import TopicBlock
from holdfast.ledger.pay import Call
from holdfast.store.derived import inputs
from holdfast.store.derived.staging import NodeSourceDraft

# An unwritten topic, with its subtopics.
UNWRITTEN = "A topic of four words (two or three subtopics of it)"


def foreseen(estimate: JobEstimate) -> list[Call]:
    """The calls of a job, as far as they can be told before it runs."""
    params: Any = estimate.params
    model, notes = model_calls.required(estimate.model), params["notes"]
    if model.stand_in:
        return []
    calls: list[Call] = []
    blocks: list[TopicBlock] = []
    for document, head, version in estimate.documents:
        estimate.check()
        outline = topic_nodes.outline_of(estimate.db, estimate.tenant, document, head, version)
        if outline is None or not outline.lines:
            continue
        call = topic_nodes.call(model, outline, notes)
        calls += [] if call is None else [call]
        answer = None if call is None else _answers(estimate, [call]).get(call.key(estimate.tenant))
        if call is not None and answer is None:
            source = NodeSourceDraft(document, version, 0, 0)
            blocks.append(_unwritten(min(topic_maps.MOST_CHILDREN, len(outline.lines)), source))
        else:
            blocks.append(topic_blocks.of_map(topic_nodes.read(answer, outline)))
    if params["scope"] == "collection":
        calls += _above(estimate, blocks, notes)
    return calls


def _above(estimate: JobEstimate, blocks: Sequence[TopicBlock], notes: str) -> list[Call]:
    model = model_calls.required(estimate.model)
    calls: list[Call] = []
    blocks = topic_blocks.merged([inputs.StoredState(each.name, each.draft(0).data, None) for each in blocks])
    while sum(len(block.documents) for block in blocks) > 1:
        estimate.check()
        groups = topic_blocks.groups(blocks)
        own = [topic_blocks.call(model, group, notes) for group in groups]
        calls += own
        if len(groups) == 1:
            break
        answers = _answers(estimate, own)
        blocks = [
            _written(answers.get(call.key(estimate.tenant)), group)
            for group, call in zip(groups, own, strict=True)
        ]
    return calls


def _written(answer: bytes | None, group: Sequence[TopicBlock]) -> TopicBlock:
    """The block of a map over others: by its answer, if there is one that can be used."""
    mapped, _ = topic_blocks.read(answer, group)
    if mapped.topics:
        return topic_blocks.of_map(mapped)
    return _unwritten(topic_maps.MOST_CHILDREN, group[0].sources[0][0])


def _answers(estimate: JobEstimate, calls: Sequence[Call]) -> Mapping[str, bytes]:
    return inputs.answers(estimate.db, estimate.tenant, [call.key(estimate.tenant) for call in calls])


def _unwritten(count: int, source: NodeSourceDraft) -> TopicBlock:
    """A block of so many topics that nobody has written yet, unlike any other."""
    name = neighbour_groups.digest(f"{source}")
    return TopicBlock(name, [UNWRITTEN] * count, [[source]] * count)
