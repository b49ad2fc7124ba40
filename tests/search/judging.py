"""The judged collection, and nDCG@10 over it."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).parent / "judged"


def passages() -> dict[str, str]:
    lines = (HERE / "passages.tsv").read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines)


def by_topic() -> dict[str, dict[str, str]]:
    """The passages of each topic; the topic is a document, its passages are the chunks."""
    result: dict[str, dict[str, str]] = {}
    for name, passage in passages().items():
        result.setdefault(name[:-2], {})[name] = passage
    return result


def queries() -> dict[str, dict[str, int]]:
    """Each query with its relevant passages, graded 3 (answers it) to 1 (touches it)."""
    result = {}
    for line in (HERE / "queries.tsv").read_text(encoding="utf-8").splitlines():
        query, judged = line.split("\t")
        result[query] = {name: int(grade) for name, grade in (one.split(":") for one in judged.split())}
    return result


def ndcg(ranking: Sequence[str], judged: dict[str, int], depth: int = 10) -> float:
    """Discounted gain of a ranking, as a share of the best one there is."""
    gains = [judged.get(name, 0) for name in ranking[:depth]]
    best = sorted(judged.values(), reverse=True)[:depth]
    return _discounted(gains) / _discounted(best)


def _discounted(gains: Sequence[int]) -> float:
    return sum((2**gain - 1) / math.log2(position + 2) for position, gain in enumerate(gains))


def mean_ndcg(rank: Callable[[str], Sequence[str]]) -> float:
    requested = queries()
    return sum(ndcg(rank(query), judged) for query, judged in requested.items()) / len(requested)
