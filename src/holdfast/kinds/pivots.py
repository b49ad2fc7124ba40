"""Clusters of texts from many documents around pivots that are kept from one generation to the next.

A pivot is a centroid that never moves. A text that was in a cluster stays in it; a new one goes to the
nearest pivot. A cluster that became too large is divided in two, by 2-means. One with a single member is
dissolved, and its member goes to the nearest pivot with room. So what changes is around what was edited, and
where nothing was, nothing does. The first clusters are made by the same rule: one cluster of everything is
divided until all are small enough. Pure functions, the same on every run and every database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.extras import LazyModule
from holdfast.kinds.neighbour_groups import DIGITS, digest
from holdfast.vectors.encoding import normalised

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

LEAST = 2
ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Pivot:
    """A centroid of length one, and the members that its cluster had when it was stored."""

    name: str
    vector: NDArray[np.float32] = field(compare=False)
    members: tuple[str, ...]


def clustered(items: Mapping[str, NDArray[np.float32]], stored: Sequence[Pivot], most: int) -> list[Pivot]:
    """The clusters of the items, by name; every item is in exactly one. `stored` are those of last time.

    Items are named by what they say, so their order and where they come from decide nothing.
    """
    if not items:
        return []
    names = sorted(items)
    dimensions = len(next(iter(items.values())))
    usable = [pivot for pivot in stored if len(pivot.vector) == dimensions]
    clusters = {pivot.name: _Cluster(pivot.name, pivot.vector, []) for pivot in sorted(usable, key=_by_name)}
    _assign(clusters, names, items, {member: pivot.name for pivot in usable for member in pivot.members})
    for cluster in list(clusters.values()):
        if len(cluster.members) > most:
            del clusters[cluster.name]
            for part in _divided(cluster.members, items, most):
                while part.name in clusters:
                    part.name = digest(part.name)
                clusters[part.name] = part
    _dissolve(clusters, items, most)
    return [
        Pivot(each.name, each.vector, tuple(sorted(each.members)))
        for each in sorted(clusters.values(), key=_by_name)
        if each.members
    ]


@dataclass(slots=True)
class _Cluster:
    name: str
    vector: NDArray[np.float32]
    members: list[str]


def _by_name(cluster: Pivot | _Cluster) -> str:
    return cluster.name


def centroid(vectors: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """The mean of the vectors, of length one."""
    return normalised(np.mean(np.stack(list(vectors)), axis=0))


def _new(members: Sequence[str], items: Mapping[str, NDArray[np.float32]]) -> _Cluster:
    centre = centroid([items[name] for name in members])
    return _Cluster(digest("\n".join(members)), centre, list(members))


def _assign(
    clusters: dict[str, _Cluster],
    names: Sequence[str],
    items: Mapping[str, NDArray[np.float32]],
    home: Mapping[str, str],
) -> None:
    """Each item is in the cluster that it was in, or in that of the nearest pivot."""
    strangers = [name for name in names if name not in home]
    for name in names:
        if name in home:
            clusters[home[name]].members.append(name)
    if not strangers:
        return
    if not clusters:
        everything = _new(names, items)
        clusters[everything.name] = everything
        return
    listed = list(clusters.values())
    pivots = np.stack([cluster.vector for cluster in listed])
    for start in range(0, len(strangers), 1000):
        some = strangers[start : start + 1000]
        cosines = np.round(np.stack([items[name] for name in some]) @ pivots.T, DIGITS)
        for name, best in zip(some, np.argmax(cosines, axis=1).tolist(), strict=True):
            listed[best].members.append(name)


def _divided(members: Sequence[str], items: Mapping[str, NDArray[np.float32]], most: int) -> list[_Cluster]:
    """Clusters of at most `most` members, by dividing in two until they are."""
    parts, waiting = [], [sorted(members)]
    while waiting:
        part = waiting.pop()
        if len(part) <= most:
            parts.append(_new(part, items))
            continue
        left = two_means(np.stack([items[name] for name in part]))
        waiting.append([name for name, is_left in zip(part, left, strict=True) if is_left])
        waiting.append([name for name, is_left in zip(part, left, strict=True) if not is_left])
    return parts


def two_means(matrix: NDArray[np.float32]) -> list[bool]:
    """Which rows are in the first of two clusters; each has at least two, or half of the rows.

    It begins with the row that is farthest from the mean, and the one that is farthest from that.
    """
    number = len(matrix)
    first = int(np.argmin(np.round(matrix @ np.mean(matrix, axis=0), DIGITS)))
    second = int(np.argmin(np.round(matrix @ matrix[first], DIGITS)))
    centres = matrix[[first, second]]
    margin = np.zeros(number)
    before: list[bool] = []
    for _ in range(ROUNDS):
        margin = np.round(matrix @ (centres[0] - centres[1]), DIGITS)
        left = margin > 0
        if left.tolist() == before or not left.any() or left.all():
            break
        before = left.tolist()
        centres = normalised(np.stack([matrix[left].mean(axis=0), matrix[~left].mean(axis=0)]))
    sides: list[bool] = (margin > 0).tolist()
    least = min(LEAST, number // 2)
    if least <= sum(sides) <= number - least:
        return sides
    # One side is too small, or all rows are alike: the order of the margins decides.
    count = (
        least if 0 < sum(sides) < least else number - least if least < sum(sides) < number else number // 2
    )
    order = np.argsort(-margin, kind="stable")[:count].tolist()
    chosen = set(order)
    return [row in chosen for row in range(number)]


def _dissolve(clusters: dict[str, _Cluster], items: Mapping[str, NDArray[np.float32]], most: int) -> None:
    """No cluster has fewer than two members, as long as another has room for one more."""
    for cluster in sorted(clusters.values(), key=_by_name):
        if not cluster.members:
            del clusters[cluster.name]
    for cluster in sorted(clusters.values(), key=_by_name):
        if len(cluster.members) >= LEAST or len(clusters) == 1:
            continue
        others = [
            each
            for each in sorted(clusters.values(), key=_by_name)
            if each is not cluster and len(each.members) < most
        ]
        if not others:
            continue
        cosines = np.round(np.stack([each.vector for each in others]) @ items[cluster.members[0]], DIGITS)
        others[int(np.argmax(cosines))].members.append(cluster.members[0])
        del clusters[cluster.name]
