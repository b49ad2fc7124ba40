"""The nodes of a level: texts grouped, each group summarised and embedded, and ready to be staged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import WorkError
from holdfast.engine.models import Model
from holdfast.engine.work import Work
from holdfast.extras import LazyModule
from holdfast.kinds import model_calls, neighbour_groups, summaries
from holdfast.kinds.summaries import GroupSummary, SummaryRules
from holdfast.ledger.pay import Call
from holdfast.search import tokenizer
from holdfast.store.derived.inputs import EmbeddedText, StagedNode
from holdfast.store.derived.staging import NodeDraft, NodeSourceDraft
from holdfast.vectors import encoding
from holdfast.vectors.encoding import Vector

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

SUMMARY, PASSAGE = "summary", "passage"
# Summaries that are paid for together; between two batches a cancelled job stops.
BATCH = 16
# Of the lines of a chunk that are rows of a table, for it to be one.
TABLE_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class TreeMember:
    """A text to be summarised with others: a chunk, or a node of the level below."""

    text: str
    vector: bytes | None
    provider: str | None
    model: str | None
    sources: Sequence[NodeSourceDraft]
    key: str | None = None
    digest: str = ""

    @property
    def name(self) -> str:
        """What stands for its text."""
        return self.digest or neighbour_groups.digest(self.text)


def of_chunk(chunk: EmbeddedText, document: str, version: int) -> TreeMember:
    """A chunk as a member."""
    source = NodeSourceDraft(document, version, chunk.number, chunk.number)
    digest = neighbour_groups.digest(chunk.text)
    return TreeMember(chunk.text, chunk.vector, chunk.provider, chunk.model, [source], digest=digest)


def of_node(node: StagedNode, sources: Sequence[NodeSourceDraft]) -> TreeMember:
    """A node of the level below as a member."""
    digest = neighbour_groups.digest(node.text)
    return TreeMember(node.text, node.vector, node.provider, node.model, sources, node.key, digest)


def is_table(text: str) -> bool:
    """True for a chunk that is nearly all rows of a table: a summary of numbers says little."""
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    rows = sum(line.count("|") > 1 or "\t" in line for line in lines)
    return rows > 1 and rows >= TABLE_SHARE * len(lines)


def embedder(members: Sequence[TreeMember]) -> tuple[str, str] | None:
    """The provider and model that embedded most of the members; None if none is embedded."""
    counts = Counter((each.provider, each.model) for each in members if each.vector and each.provider)
    if not counts:
        return None
    (provider, model), _ = min(counts.items(), key=lambda item: (-item[1], str(item[0])))
    return str(provider), str(model)


def matrix(members: Sequence[TreeMember]) -> Vector:
    """The vectors of the members, of length one; zeros for those that another model embedded, or none."""
    chosen = embedder(members)
    vectors = [
        encoding.decode(each.vector) if each.vector and (each.provider, each.model) == chosen else None
        for each in members
    ]
    width = max((len(each) for each in vectors if each is not None), default=1)
    rows = np.zeros((len(members), width), dtype=np.float32)
    for at, vector in enumerate(vectors):
        if vector is not None and len(vector) == width:
            rows[at] = vector
    return encoding.normalised(rows)


def items(members: Sequence[TreeMember]) -> dict[str, Vector]:
    """Vectors by what the members say, all of one width."""
    return {each.name: row for each, row in zip(members, matrix(members), strict=True)}


@dataclass(frozen=True, slots=True)
class Group:
    """Members of one node to be made. `name` makes its key differ from that of an equal group."""

    members: Sequence[TreeMember]
    name: str
    document: str | None = None
    version: int = 0

    @property
    def texts(self) -> list[str]:
        """The texts of its members, each once."""
        return list(dict.fromkeys(each.text for each in self.members))


@dataclass(slots=True)
class LevelWork:
    """The summaries of one slice, as they are made."""

    work: Work
    model: Model
    rules: SummaryRules
    level: int
    errors: list[tuple[Group, WorkError]] = field(default_factory=list)

    def nodes(self, groups: Sequence[Group]) -> list[NodeDraft]:
        """A node for each group, in order, paid for and embedded."""
        nodes: list[NodeDraft] = []
        for start in range(0, len(groups), BATCH):
            batch = groups[start : start + BATCH]
            self.work.progress(start, len(groups), unit="summaries", stages=stages(start, len(groups)))
            nodes += self._batch(batch)
            paid, reused = self.work.spent.paid_calls, self.work.spent.reused_calls
            self.work.note(f"{len(nodes)} of {len(groups)} summaries; {paid} calls paid, {reused} reused")
        return nodes

    def _batch(self, groups: Sequence[Group]) -> list[NodeDraft]:
        # A single text needs no summary: the node quotes it, for nothing.
        several = [group for group in groups if len(group.texts) > 1]
        calls = [summaries.call(self.model, group.texts, self.rules) for group in several]
        answers = iter(model_calls.paid(self.work, calls) if calls else ())
        summed = []
        for group in groups:
            if len(group.texts) == 1:
                summed.append(GroupSummary(summaries.shortened(group.texts[0]), group.texts[0]))
                continue
            summed.append(summaries.read(next(answers), group.texts))
            if (error := summed[-1].error) is not None:
                self.errors.append((group, error))
        embedded = self._embedded(groups, summed)
        return [self._node(*each) for each in zip(groups, summed, embedded, strict=True)]

    def _embedded(self, groups: Sequence[Group], summed: Sequence[GroupSummary]) -> list[str | None]:
        """The calls that embedded the summaries, by the model that embedded what they summarise."""
        chosen = [embedder(group.members) for group in groups]
        calls = [
            None if by is None else Call(by[0], "embeddings", by[1], summary.text)
            for by, summary in zip(chosen, summed, strict=True)
        ]
        by_model: dict[tuple[str, str], list[Call]] = {}
        for call in calls:
            if call is not None:
                by_model.setdefault((call.provider, call.model), []).append(call)
        for some in by_model.values():
            self.work.pay(some)
        return [None if call is None else call.key(self.work.claim.tenant) for call in calls]

    def _node(self, group: Group, summary: GroupSummary, call_key: str | None) -> NodeDraft:
        quotes = len(group.texts) == 1
        data: dict[str, Any] = {}
        if self.model.stand_in and not quotes:
            data["stand_in"] = True
        if summary.error is not None:
            data["error"] = {"code": summary.error.code, "message": summary.error.message[:500]}
        below = [each.key for each in group.members if each.key is not None]
        return NodeDraft(
            key=group.name,
            type=PASSAGE if quotes else SUMMARY,
            level=self.level,
            title=summary.title,
            text=summary.text,
            sources=merged(source for each in group.members for source in each.sources),
            document=group.document,
            call_key=call_key,
            words=None if quotes else tokenizer.joined(f"{summary.title}\n{summary.text}"),
            data=data,
            children=below,
        )


def merged(sources: Any) -> list[NodeSourceDraft]:
    """The sources with neighbouring chunks of a document as one range, ordered by document and chunk."""
    ranges: list[NodeSourceDraft] = []
    for each in sorted(set(sources), key=lambda each: (each.document, each.version, each.first, each.last)):
        last = ranges[-1] if ranges else None
        if (
            last
            and (last.document, last.version) == (each.document, each.version)
            and each.first <= last.last + 1
        ):
            end = max(last.last, each.last)
            ranges[-1] = NodeSourceDraft(last.document, last.version, last.first, end)
        else:
            ranges.append(each)
    return ranges


def stages(done: int, total: int) -> dict[str, tuple[int, int]]:
    """How far a slice is."""
    return {"summarising": (done, total)}


def document_groups(
    members: Sequence[TreeMember], document: str, version: int, level: int, most: int
) -> list[Group]:
    """The groups of a document's level, each with a key that is its own in the tree."""
    names = [each.name for each in members]
    rules = neighbour_groups.GroupRules(most)
    groups = []
    seen: Counter[str] = Counter()
    for part in neighbour_groups.groups(names, matrix(members), rules):
        content = "\n".join([document, str(level), *(names[at] for at in part)])
        seen[content] += 1
        key = neighbour_groups.digest(f"{content}\n{seen[content]}")
        groups.append(Group([members[at] for at in part], key, document, version))
    return groups
