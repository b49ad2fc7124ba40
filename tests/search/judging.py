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
    found: dict[str, dict[str, str]] = {}
    for name, passage in passages().items():
        found.setdefault(name[:-2], {})[name] = passage
    return found


def queries() -> dict[str, dict[str, int]]:
    """Each query with its relevant passages, graded 3 (answers it) to 1 (touches it)."""
    found = {}
    for line in (HERE / "queries.tsv").read_text(encoding="utf-8").splitlines():
        query, judged = line.split("\t")
        found[query] = {name: int(grade) for name, grade in (one.split(":") for one in judged.split())}
    return found


def ndcg(ranking: Sequence[str], judged: dict[str, int], depth: int = 10) -> float:
    """Discounted gain of a ranking, as a share of the best one there is."""
    gains = [judged.get(name, 0) for name in ranking[:depth]]
    best = sorted(judged.values(), reverse=True)[:depth]
    return _discounted(gains) / _discounted(best)


def _discounted(gains: Sequence[int]) -> float:
    return sum((2**gain - 1) / math.log2(place + 2) for place, gain in enumerate(gains))


def mean_ndcg(rank: Callable[[str], Sequence[str]]) -> float:
    asked = queries()
    return sum(ndcg(rank(query), judged) for query, judged in asked.items()) / len(asked)
