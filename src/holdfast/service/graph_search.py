"""Search by the knowledge graph of a collection. No language model is asked.

*local*: the entities that the question names or means, their relations, and the passages that both were made
of; each hit says by which entity and relation it was reached. *global*: the reports on communities that fit
the question, each with passages that it rests on. All of an answer is read in one snapshot; the usual search
is asked afterwards how well the passages fit the question, and adds none.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from holdfast.core.errors import BadRequestError, HoldfastError
from holdfast.engine.engine import Engine
from holdfast.kinds.summary_search import SummarySearch
from holdfast.search import tokenizer
from holdfast.search.fusion import LegScore
from holdfast.search.hits import Found, Hit, HitPassage, PathStep, QualityNotice
from holdfast.search.searcher import MOST_HITS
from holdfast.service import graphs as graph_views
from holdfast.service.graph_catalogue import EntityName, GraphCatalogues, GraphView, folded
from holdfast.service.search_pages import SearchRequest
from holdfast.store.base.database import Tx
from holdfast.store.derived import graphs, trees
from holdfast.store.derived.graphs import ENTITY, RELATION, REPORT, GraphEdge, SourcePassage, SourceRange
from holdfast.store.derived.trees import DerivedNode
from holdfast.store.search import search_reads
from holdfast.vectors.encoding import Vector

LEG = "graph"
MOST_ENTITIES = 12
MOST_RELATIONS = 60
MOST_RANGES = 2_000
MOST_PASSAGES = 300
MOST_COVERED = 20
CITED = 5
CANDIDATES = 60
# A name in the question says more than a likeness: it counts as much as being first twice.
RANK_CONSTANT, NAME_CONSTANT = 60, 30
SHORTEST_NAME = 2
BY_ENTITY = 0.5  # what a passage is worth that an entity, and no relation, leads to
BEYOND = 0.5  # what an entity is worth that is one relation away
BY_GRAPH = 0.5  # of a hit's score; the rest is how well its text fits the question

# The least cosine of a report where the question has a word of any report; as for chunks.
KNOWN_FLOOR = 0.12
MOST_TOP = 200
# A question of nothing but these is about the collection as a whole.
GENERAL = (
    "what which is are this these those the of in a collection document documents file files text texts "
    "about topic topics theme themes subject subjects main most important summary summarise summarize "
    "overview everything all whole content contents tell me give describe say deal with do does it they"
)

Hybrid: TypeAlias = Callable[[str, Sequence[str]], Found]
"""Answers the usual search in a collection, in these documents."""
Embed: TypeAlias = "Callable[[str], Vector | None]"


@functools.cache
def _general_terms() -> frozenset[str]:
    """By the stemmer, which an installation without the server extra does not have."""
    return frozenset(tokenizer.analyse(GENERAL))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A range of chunks, what leads there, and how well."""

    range: SourceRange
    score: float
    path: tuple[PathStep, ...]


@dataclass(frozen=True, slots=True)
class _Reached:
    """An entity that the question leads to: how well, and on which way."""

    score: float
    path: tuple[PathStep, ...]


class GraphSearch:
    """Searches the graphs of an installation; shared by all threads of a process."""

    def __init__(self, engine: Engine, catalogues: GraphCatalogues) -> None:
        self._db = engine.db
        self._catalogues = catalogues
        self._entities = SummarySearch(graphs.KIND, ENTITY)
        self._reports = SummarySearch(graphs.KIND, REPORT)

    def search(
        self, request: SearchRequest, collection: str, most: int, embed: Embed, hybrid: Hybrid
    ) -> Found:
        """The best hits in one collection; ConflictError `no_graph` without a graph."""
        if request.like is not None:
            message = "`like` cannot be used with the modes `local` and `global`; send a question as `q`"
            raise BadRequestError(message, code="bad_request")
        notices: list[QualityNotice] = []
        vector = None
        try:
            vector = embed(request.text)
        except HoldfastError as error:
            message = f"the question could not be embedded ({error.message}): only words were matched"
            notices.append(QualityNotice("not_embedded", message))
        reader = graphs.reader(request.tenant, collection, request.only)

        def body(tx: Tx) -> list[Hit]:
            view = self._catalogues.view(tx, reader)
            if view is None:
                raise graph_views.missing(collection)
            if view.stale and request.only is None:
                message = "documents have changed since the graph was built: run the job graph again"
                notices.append(QualityNotice("stale_graph", message))
            if request.graph == "global":
                return self._global(tx, view, request, vector, most)
            return self._local(tx, view, request, vector)

        hits = self._db.read(body)
        legs: tuple[str, ...] = (LEG,)
        if request.graph == "local" and hits:
            result = hybrid(collection, sorted({hit.document_id for hit in hits}))
            hits = _with_text(hits, result.hits)
            legs = (LEG, *result.legs)
        return Found(tuple(hits[:most]), 0, legs, tuple(notices))

    def _local(self, tx: Tx, view: GraphView, request: SearchRequest, vector: Vector | None) -> list[Hit]:
        scores = self._entity_scores(tx, view, request.text, vector)
        entities = {
            key: _Reached(score, (_step(entity),))
            for key, score in scores.items()
            if (entity := view.catalogue.entity(key)) is not None
        }
        edges = _relations(tx, view, entities)
        nodes = view.reader.named(tx, view.head, [*entities, *(edge.node for edge, _ in edges)])
        beyond = _other_ends(view, entities, edges, nodes)
        known = {edge.node for edge, _ in edges}
        further = [each for each in _relations(tx, view, beyond) if each[0].node not in known]
        nodes |= view.reader.named(tx, view.head, [*beyond, *(edge.node for edge, _ in further)])
        candidates = _candidates(tx, view, entities | beyond, [*edges, *further], nodes)
        if request.documents is not None:
            documents = frozenset(request.documents)
            candidates = [each for each in candidates if each.range.document in documents]
        return _hits(tx, view, candidates)

    def _entity_scores(self, tx: Tx, view: GraphView, text: str, vector: Vector | None) -> dict[str, float]:
        """The entities that the question names or means, the best first."""
        scores: dict[str, float] = {}
        ranked = self._entities.ranked(tx, view.reader.tenant, view.head, text, vector)
        visible = [key for _, key in ranked if view.shows(key) and key in view.catalogue.by_key]
        for rank, key in enumerate(visible, start=1):
            scores[key] = 1.0 / (RANK_CONSTANT + rank)
        for rank, entity in enumerate(_named(view, text), start=1):
            scores[entity.key] = scores.get(entity.key, 0.0) + 1.0 / (NAME_CONSTANT + rank)
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:MOST_ENTITIES]
        return dict(best)

    def _global(
        self, tx: Tx, view: GraphView, request: SearchRequest, vector: Vector | None, most: int
    ) -> list[Hit]:
        ranked = self._reports.ranked(tx, view.reader.tenant, view.head, request.text, vector, KNOWN_FLOOR)
        if not ranked and _is_about_all(request.text):
            ranked = [
                (1.0 / n, each.key) for n, each in enumerate(view.catalogue.reports[:MOST_TOP], start=1)
            ]
        nodes = view.reader.named(tx, view.head, [key for _, key in ranked])
        hits: list[Hit] = []
        for rank, (score, key) in enumerate(ranked, start=1):
            node = nodes.get(key)
            if node is None or not view.shows(key):
                continue
            covers = tuple(trees.covered(tx, view.head, key, MOST_COVERED))
            if request.documents is not None and not set(covers) <= set(request.documents):
                continue
            if len(hits) >= min(most, MOST_HITS):
                break
            hits.append(_report_hit(tx, view, node, covers, LegScore(LEG, rank, score), request.text))
        top = max((hit.score for hit in hits), default=1.0)
        return [replace(hit, score=hit.score / top) for hit in hits]


def _is_about_all(text: str) -> bool:
    """True for a question such as “What are the main topics of these documents?”."""
    # Of stop words alone there is no term.
    return folded(text) != "" and frozenset(tokenizer.analyse(text)) <= _general_terms()


def _named(view: GraphView, text: str) -> list[EntityName]:
    """The entities whose whole name is in the text, the longest name first."""
    question = f" {folded(text)} "
    named: list[tuple[int, EntityName]] = []
    for each in view.catalogue.entities:
        lengths = [
            len(phrase)
            for phrase in each.phrases
            if len(phrase) >= SHORTEST_NAME and f" {phrase} " in question
        ]
        if lengths and view.shows(each.key):
            named.append((max(lengths), each))
    named.sort(key=lambda item: (-item[0], -item[1].mentions, item[1].key))
    return [each for _, each in named[:MOST_ENTITIES]]


def _relations(tx: Tx, view: GraphView, entities: Mapping[str, _Reached]) -> list[tuple[GraphEdge, float]]:
    """The relations of these entities with their worth: those between two of them are the best."""
    scored = []
    for edge in graphs.edges_of(tx, view.head, list(entities)):
        if view.shows(edge.node) and view.shows(edge.source) and view.shows(edge.target):
            ends = sum(entities[key].score for key in (edge.source, edge.target) if key in entities)
            scored.append((edge, ends * (1.0 + 0.1 * math.log1p(max(0.0, edge.weight)))))
    scored.sort(key=lambda item: (-item[1], item[0].node))
    return scored[:MOST_RELATIONS]


def _other_ends(
    view: GraphView,
    entities: Mapping[str, _Reached],
    edges: Sequence[tuple[GraphEdge, float]],
    nodes: Mapping[str, DerivedNode],
) -> dict[str, _Reached]:
    """The entities one relation away: what they are made of answers questions over two passages."""
    beyond: dict[str, _Reached] = {}
    for edge, score in edges:
        for near, far in ((edge.source, edge.target), (edge.target, edge.source)):
            entity, relation = view.catalogue.entity(far), nodes.get(edge.node)
            is_new = near in entities and far not in entities and far not in beyond
            if is_new and entity is not None and relation is not None and len(beyond) < MOST_ENTITIES:
                steps = (*entities[near].path, _relation_step(relation), _step(entity))
                beyond[far] = _Reached(score * BEYOND, steps)
    return beyond


def _candidates(
    tx: Tx,
    view: GraphView,
    entities: Mapping[str, _Reached],
    edges: Sequence[tuple[GraphEdge, float]],
    nodes: Mapping[str, DerivedNode],
) -> list[_Candidate]:
    """What entities and relations were made of, the best first."""
    ranges = graphs.ranges_of(tx, view.head, list(nodes), MOST_RANGES)
    candidates = []
    for edge, score in edges:
        ends = [entities[key] for key in (edge.source, edge.target) if key in entities]
        if (relation := nodes.get(edge.node)) is not None:
            path = (*max(ends, key=lambda each: each.score).path, _relation_step(relation))
            candidates += [_Candidate(each, score, path) for each in ranges[edge.node]]
    for key, reached in entities.items():
        if key in nodes:
            score = reached.score * BY_ENTITY
            candidates += [_Candidate(each, score, reached.path) for each in ranges[key]]
    candidates.sort(key=lambda each: (-each.score, each.range))
    return candidates


def _step(entity: EntityName) -> PathStep:
    return PathStep(ENTITY, entity.key, entity.title)


def _relation_step(relation: DerivedNode) -> PathStep:
    return PathStep(RELATION, relation.key, relation.title)


def _worth_telling(path: tuple[PathStep, ...]) -> int:
    """Lower for a shorter way, and for one that ends at a relation."""
    return len(path) - 2 if path[-1].type == RELATION else len(path)


def _hits(tx: Tx, view: GraphView, candidates: Sequence[_Candidate]) -> list[Hit]:
    """The chunks of the best candidates; several ways to the same chunk add up, the shortest is told."""
    room = MOST_PASSAGES
    chosen = []
    for each in candidates:
        if room <= 0:
            break
        room -= each.range.last - each.range.first + 1
        chosen.append(each)
    passages = graphs.passages(tx, view.reader.tenant, [each.range for each in chosen])
    scores: dict[int, float] = {}
    paths: dict[int, tuple[PathStep, ...]] = {}
    for each in chosen:
        for number in range(each.range.first, each.range.last + 1):
            passage = passages.get((each.range.document, number))
            if passage is not None:
                scores[passage.chunk_id] = scores.get(passage.chunk_id, 0.0) + each.score
                known = paths.setdefault(passage.chunk_id, each.path)
                if _worth_telling(each.path) < _worth_telling(known):
                    paths[passage.chunk_id] = each.path
    shown = search_reads.chunks_of(tx, view.reader.tenant, list(scores))
    top = max((scores[key] for key in shown), default=1.0)
    best = sorted(shown, key=lambda key: (-scores[key], key))
    hits = []
    for rank, key in enumerate(best, start=1):
        chunk, score = shown[key], scores[key] / top
        if chunk.collection != view.reader.collection:
            continue
        hits.append(
            Hit(
                chunk.document_id,
                chunk.title,
                chunk.page,
                chunk.text,
                score,
                chunk.generation,
                chunk.slice,
                chunk.position,
                chunk.chunk_id,
                (LegScore(LEG, rank, score),),
                {},
                collection=chunk.collection,
                language=chunk.language,
                edited=chunk.is_edited,
                path=paths[key],
            )
        )
    return hits


def _with_text(hits: Sequence[Hit], matching: Sequence[Hit]) -> list[Hit]:
    """The hits with how well their text fits the question; `weak` if neither that nor a relation speaks."""
    known = {hit.chunk_id: hit for hit in matching}
    top = max((known[hit.chunk_id].score for hit in hits if hit.chunk_id in known), default=1.0) or 1.0
    scored = []
    for hit in hits:
        text = known.get(hit.chunk_id)
        is_related = len(hit.path) > 1
        score = BY_GRAPH * hit.score + (0.0 if text is None else (1.0 - BY_GRAPH) * text.score / top)
        parts = hit.parts if text is None else (*hit.parts, *text.parts)
        weights = hit.weights if text is None else text.weights
        weak = not is_related and (text is None or text.weak)
        scored.append(replace(hit, score=score, parts=parts, weights=weights, weak=weak))
    scored.sort(key=lambda hit: (-hit.score, hit.document_id, hit.slice, hit.position))
    return scored


def _report_hit(
    tx: Tx, view: GraphView, node: DerivedNode, covers: tuple[str, ...], part: LegScore, question: str
) -> Hit:
    findings = [
        str(each.get("text") or "") for each in node.data.get("findings") or () if isinstance(each, Mapping)
    ]
    more = [each for each in findings if each and each not in node.text]
    passages = _cited(tx, view, node, question)
    return Hit(
        passages[0].document_id if passages else covers[0],
        node.title,
        None,
        "\n".join([node.text, *more]),
        part.score,
        view.head.generation,
        0,
        0,
        0,
        (part,),
        {},
        source=LEG,
        collection=view.reader.collection,
        type=REPORT,
        node=node.key,
        covers=covers,
        path=(PathStep(REPORT, node.key, node.title),),
        passages=passages,
    )


def _cited(tx: Tx, view: GraphView, report: DerivedNode, question: str) -> tuple[HitPassage, ...]:
    """Passages that a report rests on, those first that have most words of the question."""
    findings = [each for each in report.data.get("findings") or () if isinstance(each, Mapping)]
    keys = dict.fromkeys(str(key) for each in findings for key in each.get("cites") or ())
    nodes = view.reader.named(tx, view.head, [key for key in keys if view.shows(key)][:CANDIDATES])
    ranges = graphs.ranges_of(tx, view.head, [*nodes, report.key], MOST_RANGES)
    some = [one for key in (*nodes, report.key) for one in ranges[key]]
    # Of each range its first chunks, and of each document something, before there are too many.
    short = [each._replace(last=min(each.last, each.first + 7)) for each in some]
    passages = graphs.passages(tx, view.reader.tenant, short[:CANDIDATES])
    terms = frozenset(tokenizer.analyse(question))
    order = {at: number for number, at in enumerate(passages)}
    best = sorted(
        passages.items(),
        key=lambda item: (-len(terms & frozenset(tokenizer.analyse(item[1].text))), order[item[0]]),
    )[:CITED]
    shown = search_reads.chunks_of(tx, view.reader.tenant, [each.chunk_id for _, each in best])
    return tuple(
        _passage(each, shown[each.chunk_id].title, shown[each.chunk_id].generation)
        for _, each in best
        if each.chunk_id in shown
    )


def _passage(each: SourcePassage, title: str, generation: int) -> HitPassage:
    chunk = f"{each.document}@{each.slice}.{each.position}"
    return HitPassage(each.document, title, each.page, chunk, generation, each.text)


def merged(results: Mapping[str, Found | HoldfastError], most: int) -> Found:
    """The hits of several collections, the best first; the error of the first where none has a graph."""
    answers = [each for each in results.values() if isinstance(each, Found)]
    errors = [each for each in results.values() if isinstance(each, HoldfastError)]
    if not answers:
        raise errors[0]
    hits = sorted((hit for each in answers for hit in each.hits), key=lambda hit: -hit.score)
    legs = tuple(dict.fromkeys(leg for each in answers for leg in each.legs))
    notices = [notice for each in answers for notice in each.notices]
    notices += [QualityNotice("no_graph", error.message) for error in errors]
    return Found(tuple(hits[:most]), 0, legs, tuple(notices))
