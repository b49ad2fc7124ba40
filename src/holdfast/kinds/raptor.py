"""The kind `raptor`: a tree of summaries over documents, and over a collection.

Inside a document neighbouring chunks are grouped at boundaries that their content decides
(`neighbour_groups`), each group is summarised, and so on with the summaries, to one root. Across documents
(scope `collection`) the roots are clustered around pivots that the published generation keeps (`pivots`);
scope `themes` does that with all chunks. Every level is a phase: its slices are summaries that workers make
side by side. A later run pays for the groups that changed, and for what is above them.

A group whose summary the model refuses to write is quoted instead, marked, and listed with its document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.core.records import Claim, Slice
from holdfast.engine.job_specs import JobEstimate, SearchSource
from holdfast.engine.kinds import Finish, Kind
from holdfast.engine.work import Work
from holdfast.kinds import corpus, job_summary, neighbour_groups, pivots, raptor_estimates, raptor_nodes
from holdfast.kinds.derived_kind import NOTES, DerivedKind
from holdfast.kinds.log_phrases import many
from holdfast.kinds.pivots import Pivot
from holdfast.kinds.raptor_nodes import Group, LevelWork, TreeMember
from holdfast.kinds.summaries import SummaryRules
from holdfast.kinds.summary_search import SummarySearch
from holdfast.ledger.pay import Call
from holdfast.store.base.database import Database, Tx
from holdfast.store.derived import inputs, staging
from holdfast.store.derived.staging import NodeDraft, StateDraft
from holdfast.store.jobs import job_results
from holdfast.store.jobs.job_results import ResultDraft
from holdfast.store.protocol import slices
from holdfast.vectors import encoding
from holdfast.vectors.encoding import Vector

NAME = "raptor"
VERSION = 1
PROMPTS = 1
DOCUMENT, COLLECTION, THEMES = "document", "collection", "themes"
# What a slice holds at most: chunks (or nodes below) of documents, or clusters.
CHUNKS_IN_SLICE = 400
CLUSTERS_IN_SLICE = 16
# What the best summary is worth beside the best chunk. On the judged collection more makes the ranking worse:
# nDCG@10 is 0.809 without summaries and with 0.1, 0.807 with 0.3, 0.793 with 0.5.
WEIGHT = 0.1
# Where the pivots of themes are kept, beside those of a collection's documents.
OF_THEMES = 100
# A level has some six times as many summaries as the next one, of short documents twice as many.
PHASE_SHARE = 0.7

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "scope": {
            "title": "Scope",
            "type": "string",
            "enum": [DOCUMENT, COLLECTION, THEMES],
            "default": COLLECTION,
            "description": (
                "A tree for each document; these and the collection above them; or themes over all chunks."
            ),
        },
        "summary_tokens": {
            "title": "Length of a summary, in tokens",
            "type": "integer",
            "minimum": 100,
            "maximum": 2000,
            "default": 300,
        },
        "group": {
            "title": "Texts under one summary, at most",
            "type": "integer",
            "minimum": 4,
            "maximum": 32,
            "default": 12,
        },
        "notes": NOTES,
        "rebuild": {
            "title": "Cluster anew",
            "type": "boolean",
            "default": False,
            "description": "Forget the clusters of the last run; what is across documents is paid again.",
        },
    },
}
RESULT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "description": "The title of the document's root."},
        "summary": {"type": "string", "description": "The summary of the whole document."},
        "levels": {"type": "integer", "description": "How many levels of summaries the document has."},
        "node": {"type": "string", "description": "The key of the root in the tree."},
    },
}


def foreseen(estimate: JobEstimate) -> list[Call]:
    """The calls of a job, as far as they can be told before it runs."""
    scope = estimate.params["scope"]
    stored: dict[int, list[Pivot]] = {}
    if not estimate.params["rebuild"]:
        first = OF_THEMES if scope == THEMES else 0
        levels = inputs.states_of(estimate.db, estimate.tenant, NAME, f"collection:{estimate.collection}")
        stored = {
            level - first: [raptor_estimates.pivot_of(each) for each in states]
            for level, states in levels.items()
            if first < level < first + OF_THEMES
        }
    return raptor_estimates.calls_of(estimate, stored, themes=scope == THEMES, above=scope == COLLECTION)


class Raptor:
    """The work of summarising, in one process."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def kind(self) -> Kind:
        """The kind to register."""
        return DerivedKind(
            name=NAME,
            title="Tree of summaries",
            description="Summarises documents and their collection, level by level.",
            version=VERSION,
            prompts=PROMPTS,
            parameters=PARAMETERS,
            result=RESULT,
            stages=("summarising",),
            estimate=foreseen,
            phase_share=PHASE_SHARE,
            search=SearchSource("summaries", SummarySearch(NAME, raptor_nodes.SUMMARY).find, WEIGHT),
        ).kind(self)

    def plan(self, work: Work) -> list[Slice]:
        """The first level: of each document, or of themes over all chunks."""
        sources = corpus.planned(self._db, work)
        work.note(f"reading {many(len(sources), 'document')}")
        listed = [(each.document, each.head_id, each.generation, each.chunks) for each in sources]
        if work.options["scope"] == THEMES:
            return self._themes(work, listed)
        return _document_slices(listed)

    def plan_next(self, work: Work) -> list[Slice]:
        """The next level of documents that have more than one node yet, or of the collection."""
        # By the results: a plan that does its only slice itself has no payload.
        done: list[Mapping[str, Any]] = [each.result for each in work.earlier(work.phase - 1)]
        tier = max((int(each["tier"]) for each in done), default=0)
        if not tier:
            higher = list(_unfinished(done))
            if higher:
                return _document_slices(higher)
            return self._roots(work) if work.options["scope"] == COLLECTION else []
        below = inputs.staged_state(self._db, work.claim, self._kept(work, tier))
        if len(below) < 2:
            return []
        items = {each.name: raptor_estimates.vector_of(each) for each in below}
        keys = {each.name: [str(each.data["node"])] for each in below}
        return self._tier(work, tier + 1, _same_width(items), keys)

    def _roots(self, work: Work) -> list[Slice]:
        """The first level above documents: their roots, clustered."""
        roots = inputs.roots(self._db, work.claim)
        members = [raptor_nodes.of_node(root, ()) for root in roots]
        if len({each.name for each in members}) < 2:
            return []
        keys: dict[str, list[str]] = {}
        for each in members:
            keys.setdefault(each.name, []).append(str(each.key))
        return self._tier(work, 1, raptor_nodes.items(members), keys)

    def _themes(self, work: Work, listed: Sequence[tuple[str, int, int, int]]) -> list[Slice]:
        """The first level of themes: all chunks, clustered."""
        members: list[TreeMember] = []
        places: dict[str, list[list[Any]]] = {}
        for document, head, version, _chunks in listed:
            work.check()
            for chunk in inputs.chunks_of(self._db, work.claim.tenant, head, version) or ():
                if not raptor_nodes.is_table(chunk.text):
                    member = raptor_nodes.of_chunk(chunk, document, version)
                    members.append(member)
                    places.setdefault(member.name, []).append([document, head, version, chunk.number])
        return self._tier(work, 1, raptor_nodes.items(members), places)

    def _tier(
        self, work: Work, tier: int, items: Mapping[str, Vector], members: Mapping[str, Sequence[Any]]
    ) -> list[Slice]:
        """Slices of clusters: of each its pivot, the items around it, and where their texts are."""
        stored = [] if work.options["rebuild"] else self._stored(work, tier)
        clusters = pivots.clustered(items, stored, int(work.options["group"]))
        work.note(f"{many(len(items), 'text')} in {many(len(clusters), 'cluster')}")
        listed = [
            [pivot.name, list(pivot.members), [each for name in pivot.members for each in members[name]]]
            for pivot in clusters
        ]
        cuts = [listed[at : at + CLUSTERS_IN_SLICE] for at in range(0, len(listed), CLUSTERS_IN_SLICE)]
        return [Slice({"tier": tier, "clusters": cut}, weight=len(cut)) for cut in cuts]

    def _kept(self, work: Work, tier: int) -> int:
        return tier + (OF_THEMES if work.options["scope"] == THEMES else 0)

    def _stored(self, work: Work, tier: int) -> list[Pivot]:
        states = inputs.published_state(self._db, work.claim, self._kept(work, tier))
        return [raptor_estimates.pivot_of(each) for each in states]

    def run(self, work: Work) -> Finish:
        """One slice: its summaries made, and ready to be staged."""
        options = work.options
        rules = SummaryRules(int(options["summary_tokens"]), str(options["notes"]))
        level = LevelWork(work, corpus.model_of(work), rules, work.phase + 1)
        tally = job_summary.SliceTally()
        if "tier" in work.payload:
            nodes, state, drafts, counts = self._run_tier(work, level, tally)
        else:
            nodes, state, drafts, counts = self._run_documents(work, level, tally)
        for group, error in level.errors:
            tally.note(error)
            source = group.members[0].sources[0]
            data = {"error": {"code": error.code, "message": error.message}}
            drafts.append(ResultDraft(source.document, source.version, data, chunk=source.first, good=False))
        written = [node for node in nodes if node.type == raptor_nodes.SUMMARY]
        summary = {
            **tally.as_dict(),
            "asked": len(written),
            "found": len(written) - len(level.errors),
            "failed": len(level.errors),
            "nodes": counts,
            "tier": int(work.payload.get("tier", 0)),
        }

        def also(tx: Tx) -> None:
            staging.put(tx, work.claim, nodes, state=state)
            job_results.keep(tx, work.claim, drafts)
            done = raptor_nodes.stages(len(nodes), len(nodes))
            slices.put_progress(tx, work.claim, len(nodes), done, unit="summaries")

        return Finish(summary, also=also)

    def _run_documents(
        self, work: Work, level: LevelWork, tally: job_summary.SliceTally
    ) -> tuple[list[NodeDraft], list[StateDraft], list[ResultDraft], dict[str, list[int]]]:
        """A level of some documents, or a part of one that is long."""
        groups: list[Group] = []
        counts: dict[str, list[int]] = {}
        drafts: list[ResultDraft] = []
        for name, head, number, part, parts in work.payload["documents"]:
            work.check()
            members = self._members(work, str(name), int(head), int(number))
            if members is None:
                tally.replaced += 1
                message = "the document was replaced or deleted before it was read; request the job again"
                data = {"error": {"code": "documents_changed", "message": message}}
                drafts.append(ResultDraft(str(name), int(number), data, good=False))
                continue
            every = raptor_nodes.document_groups(
                members, str(name), int(number), level.level, int(work.options["group"])
            )
            mine = every[len(every) * part // parts : len(every) * (part + 1) // parts]
            counts[str(name)] = [int(head), int(number), len(mine)]
            groups += mine
        nodes = level.nodes(groups)
        whole = {name: parts for name, _, _, _, parts in work.payload["documents"]}
        drafts += [
            _root(node, level.level)
            for node in nodes
            if node.document is not None and counts[node.document][2] == 1 and whole[node.document] == 1
        ]
        return nodes, [], drafts, counts

    def _members(self, work: Work, document: str, head: int, version: int) -> list[TreeMember] | None:
        if work.phase == 0:
            chunks = inputs.chunks_of(self._db, work.claim.tenant, head, version)
            if chunks is None:
                return None
            usable = [chunk for chunk in chunks if not raptor_nodes.is_table(chunk.text)]
            return [raptor_nodes.of_chunk(chunk, document, version) for chunk in usable]
        nodes = inputs.of_document(self._db, work.claim, document, work.phase)
        sources = inputs.sources_of(self._db, work.claim, [node.key for node in nodes])
        return [raptor_nodes.of_node(node, sources[node.key]) for node in nodes]

    def _run_tier(
        self, work: Work, level: LevelWork, tally: job_summary.SliceTally
    ) -> tuple[list[NodeDraft], list[StateDraft], list[ResultDraft], dict[str, list[int]]]:
        """Some clusters of a level across documents."""
        tier = int(work.payload["tier"])
        known = {pivot.name: pivot.vector for pivot in self._stored(work, tier)}
        if work.options["rebuild"]:
            known = {}
        below = {}
        if tier > 1:
            below = {
                each.name: raptor_estimates.vector_of(each)
                for each in inputs.staged_state(self._db, work.claim, self._kept(work, tier - 1))
            }
        groups: list[Group] = []
        centres: list[tuple[str, list[str], Vector]] = []
        read = self._read(work, tally)
        for pivot, names, places in work.payload["clusters"]:
            members = sorted(read(places), key=lambda member: (member.name, member.key or ""))
            if not members:
                continue
            content = "\n".join([f"tier {tier}", str(pivot), *(each.key or each.name for each in members)])
            groups.append(Group(members, neighbour_groups.digest(content)))
            vectors = [below[name] for name in names if name in below] or list(raptor_nodes.matrix(members))
            centre = known.get(str(pivot))
            centres.append((str(pivot), list(names), pivots.centroid(vectors) if centre is None else centre))
        nodes = level.nodes(groups)
        state = [
            StateDraft(
                pivot,
                self._kept(work, tier),
                {"members": names, "node": node.key},
                encoding.encode(centre),
            )
            for (pivot, names, centre), node in zip(centres, nodes, strict=True)
        ]
        return nodes, state, [], {}

    def _read(self, work: Work, tally: job_summary.SliceTally) -> Any:
        """A function that reads the texts of a cluster: nodes by their keys, or chunks by their places."""
        documents: dict[tuple[int, int], dict[int, TreeMember]] = {}

        def chunks(document: str, head: int, version: int) -> dict[int, TreeMember]:
            if (head, version) not in documents:
                work.check()
                pieces = inputs.chunks_of(self._db, work.claim.tenant, head, version)
                tally.replaced += pieces is None
                documents[head, version] = {
                    piece.number: raptor_nodes.of_chunk(piece, document, version) for piece in pieces or ()
                }
            return documents[head, version]

        def members(places: Sequence[Any]) -> list[TreeMember]:
            keys = [each for each in places if isinstance(each, str)]
            if keys:
                nodes = inputs.of_keys(self._db, work.claim, keys)
                sources = inputs.sources_of(self._db, work.claim, [node.key for node in nodes])
                return [raptor_nodes.of_node(node, sources[node.key]) for node in nodes]
            pieces = (
                (chunks(str(name), int(head), int(version)), int(number))
                for name, head, version, number in places
            )
            return [piece[number] for piece, number in pieces if number in piece]

        return members

    def publish(self, tx: Tx, claim: Claim) -> None:
        """At least one summary was made; none is left of a document that was deleted meanwhile."""
        staging.drop_gone(tx, claim)
        job_results.collect(tx, claim.run_id)
        done = [each.result for each in slices.done(tx, claim.run_id)]
        if not staging.has_nodes(tx, claim) or not any(
            each.get("found") or _only_quotes(each) for each in done
        ):
            raise job_summary.why_nothing(tx, claim.run_id, "the documents have no text to summarise")


def _only_quotes(result: Mapping[str, Any]) -> bool:
    return bool(result) and not result.get("asked") and bool(result.get("nodes"))


def _document_slices(listed: Sequence[tuple[str, int, int, int]]) -> list[Slice]:
    """Slices of about so many texts: some documents each, or a part of a long one."""
    planned: list[Slice] = []
    filling: list[list[Any]] = []
    size = 0
    for document, head, version, texts in listed:
        parts = -(-texts // (2 * CHUNKS_IN_SLICE))
        if parts > 1:
            weight = max(1, texts // parts)
            planned += [
                Slice({"documents": [[document, head, version, part, parts]]}, weight=weight)
                for part in range(parts)
            ]
            continue
        if filling and size + texts > CHUNKS_IN_SLICE:
            planned.append(Slice({"documents": filling}, weight=max(1, size)))
            filling, size = [], 0
        filling.append([document, head, version, 0, 1])
        size += texts
    return [*planned, Slice({"documents": filling}, weight=max(1, size))] if filling else planned


def _unfinished(done: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, int, int, int]]:
    """The documents that have more than one node on the level that is done, with how many."""
    counts: dict[tuple[str, int, int], int] = {}
    for each in done:
        for name, (head, version, number) in each["nodes"].items():
            counts[name, head, version] = counts.get((name, head, version), 0) + int(number)
    return ((*document, number) for document, number in counts.items() if number > 1)


def _root(node: NodeDraft, levels: int) -> ResultDraft:
    data = {"title": node.title, "summary": node.text, "levels": levels, "node": node.key}
    return ResultDraft(str(node.document), node.sources[0].version, data)


def _same_width(items: Mapping[str, Vector]) -> dict[str, Vector]:
    width = max(len(each) for each in items.values())
    blank = next(each for each in items.values() if len(each) == width) * 0
    return {name: each if len(each) == width else blank for name, each in items.items()}
