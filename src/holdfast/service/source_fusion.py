"""Merges the hits of other search sources with those of the chunks: each source's best hit gets its weight.

A source is third-party code, so what it returns is looked up: a document that is not in the collection, or
is deleted, is no hit. A source that fails is left out, and the response says so.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from holdfast.core import filters
from holdfast.core.errors import HoldfastError
from holdfast.core.filters import Filter
from holdfast.engine.job_specs import SearchQuery, SearchSource, SourceHit
from holdfast.search.fusion import LegScore
from holdfast.search.hits import Found, Hit, QualityNotice
from holdfast.store.library import documents

_FAILURES = (HoldfastError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)

# Hits of a source that are looked up where a filter leaves only some of them.
MOST_FILTERED = 1000

log = logging.getLogger(__name__)


def merged(
    answer: Found,
    query: SearchQuery,
    sources: Sequence[SearchSource],
    notices: list[QualityNotice],
    *,
    only: Filter | None = None,
) -> Found:
    """The answer with the hits of the sources among its own; what went wrong is among the notices.

    A source without a hit is no leg of the search.
    """
    # The chunks' own scores say how good an answer is; without any, those of the sources stand alone.
    best = answer.hits[0].score if answer.hits else 1.0
    hits = list(answer.hits)
    legs = list(answer.legs)
    for source in sources:
        try:
            if more := _hits(source, query, best, only):
                hits += more
                legs.append(source.name)
        except _FAILURES as error:
            log.warning("search source %s failed", source.name, exc_info=True)
            message = f"the search source {source.name} failed ({type(error).__name__}) and was left out"
            notices.append(QualityNotice("source_failed", message))
    hits.sort(key=lambda hit: -hit.score)  # stable: equals stay in the order of the sources
    return replace(answer, hits=tuple(hits[: query.limit]), legs=tuple(legs))


def _hits(source: SearchSource, query: SearchQuery, best: float, only: Filter | None) -> list[Hit]:
    most = query.limit if only is None else MOST_FILTERED
    candidates = list(source.find(query))[:most] if source.find is not None else []
    top = max((hit.score for hit in candidates), default=0.0)
    if top <= 0:
        return []
    hits = (
        _hit(query, source.name, hit, rank, source.weight * best * max(0.0, hit.score) / top, only)
        for rank, hit in enumerate(candidates, start=1)
    )
    return list(islice((hit for hit in hits if hit is not None), query.limit))


def _hit(
    query: SearchQuery, source: str, hit: SourceHit, rank: int, score: float, only: Filter | None
) -> Hit | None:
    document = documents.document(query.db, query.tenant, hit.document_id)
    if document is None or document.collection != query.collection or not document.visible:
        return None
    if only is not None and not filters.matches(only, document):
        return None
    part = LegScore(source, rank, hit.score)
    return Hit(
        document.id,
        document.title if hit.title is None else hit.title,
        hit.page,
        str(hit.text),
        score,
        document.published_generation,
        0,
        0,
        0,
        (part,),
        {},
        source,
        document.collection,
        type=hit.type or source,
        node=hit.node,
        covers=hit.covers,
    )
