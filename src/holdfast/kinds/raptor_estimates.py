"""The calls of a tree of summaries before any is made: the tree is built as it would be, with what is known.

Groups are those that a run would make, from the stored vectors. A summary that was paid for before is read
from the ledger, so that what is above it is known too; any other is stood for by a text of its length, with
the mean of the vectors that it summarises. So the estimate of an unchanged collection is exact; that of a new
one is off by as much as unwritten summaries differ from their passages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.engine.job_specs import JobEstimate
from holdfast.engine.models import Model
from holdfast.kinds import model_calls, neighbour_groups, pivots, raptor_nodes, summaries
from holdfast.kinds.pivots import Pivot
from holdfast.kinds.raptor_nodes import Group, TreeMember
from holdfast.kinds.summaries import SummaryRules
from holdfast.ledger.pay import Call
from holdfast.providers import local
from holdfast.store.base.database import Database
from holdfast.store.derived import inputs
from holdfast.vectors import encoding
from holdfast.vectors.encoding import Vector

# Characters of a token of an unwritten summary.
LETTERS = "word "


@dataclass(slots=True)
class TreeEstimate:
    """A tree that is built without paying for it, and the calls that it takes."""

    db: Database
    tenant: str
    model: Model
    rules: SummaryRules
    group: int
    check: Callable[[], None]
    calls: list[Call] = field(default_factory=list)

    def document(self, members: Sequence[TreeMember], document: str, version: int) -> TreeMember | None:
        """The root of a document; None for one without text."""
        level = 1
        while members and (level == 1 or len(members) > 1):
            groups = raptor_nodes.document_groups(members, document, version, level, self.group)
            members = self.summarised(groups)
            level += 1
        return members[0] if members else None

    def tiers(self, members: Sequence[TreeMember], stored: Mapping[int, Sequence[Pivot]]) -> None:
        """The levels above: of each, what the published generation has kept of it."""
        items = raptor_nodes.items(members)
        texts: dict[str, list[TreeMember]] = {}
        for each in members:
            texts.setdefault(each.name, []).append(each)
        tier = 1
        while len(items) > 1:
            self.check()
            clusters = pivots.clustered(items, stored.get(tier, ()), self.group)
            groups = [
                Group(
                    sorted(
                        (each for name in pivot.members for each in texts[name]), key=lambda each: each.name
                    ),
                    pivot.name,
                )
                for pivot in clusters
            ]
            nodes = self.summarised(groups)
            items = {pivot.name: pivot.vector for pivot in clusters}
            texts = {pivot.name: [node] for pivot, node in zip(clusters, nodes, strict=True)}
            tier += 1

    def summarised(self, groups: Sequence[Group]) -> list[TreeMember]:
        """A member for each group: its summary if that is known, else something of its size."""
        self.check()
        calls = {
            group.name: summaries.call(self.model, group.texts, self.rules)
            for group in groups
            if len(group.texts) > 1
        }
        self.calls += calls.values()
        keys = [call.key(self.tenant) for call in calls.values()]
        answers = inputs.answers(self.db, self.tenant, keys)
        texts = {}
        for group in groups:
            call = calls.get(group.name)
            answer = None if call is None else answers.get(call.key(self.tenant))
            if call is None:
                texts[group.name] = group.texts[0]
            elif answer is not None:
                texts[group.name] = summaries.read(answer, group.texts).text
            else:
                texts[group.name] = f"{group.name} {LETTERS * self.rules.tokens}"
        return self._embedded(groups, texts)

    def _embedded(self, groups: Sequence[Group], texts: Mapping[str, str]) -> list[TreeMember]:
        embeddings = {}
        for group in groups:
            by = raptor_nodes.embedder(group.members)
            if by is not None:
                embeddings[group.name] = Call(by[0], "embeddings", by[1], texts[group.name])
        self.calls += [call for call in embeddings.values() if call.provider != local.NAME]
        keys = [call.key(self.tenant) for call in embeddings.values()]
        vectors = inputs.answers(self.db, self.tenant, keys)
        members = []
        for group in groups:
            self.check()
            text, embedding = texts[group.name], embeddings.get(group.name)
            vector = None if embedding is None else vectors.get(embedding.key(self.tenant))
            if embedding is not None and vector is None:
                vector = encoding.encode(pivots.centroid(list(raptor_nodes.matrix(group.members))))
            provider = None if embedding is None else embedding.provider
            model = None if embedding is None else embedding.model
            digest = neighbour_groups.digest(text)
            members.append(TreeMember(text, vector, provider, model, (), group.name, digest))
        return members


def calls_of(
    estimate: JobEstimate, stored: Mapping[int, Sequence[Pivot]], *, themes: bool, above: bool
) -> list[Call]:
    """The calls of a job, in the order of its levels for each document, then those above documents."""
    params: Any = estimate.params
    model = model_calls.required(estimate.model)
    rules = SummaryRules(params["summary_tokens"], params["notes"])
    tree = TreeEstimate(estimate.db, estimate.tenant, model, rules, params["group"], estimate.check)
    roots: list[TreeMember] = []
    for document, head, version in estimate.documents:
        estimate.check()
        chunks = inputs.chunks_of(estimate.db, estimate.tenant, head, version) or ()
        members = [
            raptor_nodes.of_chunk(chunk, document, version)
            for chunk in chunks
            if not raptor_nodes.is_table(chunk.text)
        ]
        if themes:
            roots += members
        elif (root := tree.document(members, document, version)) is not None:
            roots.append(root)
    if themes or above:
        tree.tiers(roots, stored)
    return tree.calls


def pivot_of(state: inputs.StoredState) -> Pivot:
    """A pivot as it was stored."""
    return Pivot(state.name, vector_of(state), tuple(state.data["members"]))


def vector_of(state: inputs.StoredState) -> Vector:
    """The vector of a stored pivot."""
    return encoding.decode(state.vector or b"\0\0\0\0")
