"""Communities of a graph that stay what they were: only what is new in it chooses where it belongs.

An item that was in a community stays there, also when all others have left it: to move it would change the
report of the community that it joins, where nothing was edited. A new one joins the community where it raises
the modularity of the graph most, again and again until none would move. A community that became too large is
divided. Then the same is done over the communities, level by level, as long as any two belong together. All
of it is repeated until nothing moves, and only then stored: with nothing changed, nothing changes. Everything
is decided by names and weights, in the order of names. Pure functions.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.kinds.neighbour_groups import digest

MOST = 10
MOST_LEVELS = 12
ROUNDS = 10
# A gain below this is none: sums of floats differ in their last digits.
NO_GAIN = 1e-9

Edges = Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class Community:
    """Members are items of the graph on level 1, above that names of communities of any level below."""

    name: str
    level: int
    members: tuple[str, ...]


def communities(
    items: Iterable[str], edges: Edges, stored: Mapping[int, Mapping[str, str]], most: int = MOST
) -> list[Community]:
    """The communities of all levels. `stored` has for each level what was in which community last time.

    Every item is in exactly one community of level 1, perhaps alone. On a level above, a community has two
    members or more; what is in none there may be in one of a higher level.
    """
    listed: list[Community] = []
    graph = _Graph(sorted(set(items)), edges)
    for level in range(1, MOST_LEVELS + 1):
        homes = _settled(graph, stored.get(level, {}), level, most)
        members: dict[str, list[str]] = {}
        for item in graph.items:
            members.setdefault(homes[item], []).append(item)
        groups = {name: each for name, each in sorted(members.items()) if level == 1 or len(each) > 1}
        listed += [Community(name, level, tuple(each)) for name, each in groups.items()]
        if level > 1 and not groups:
            break
        upper = {item: homes[item] if homes[item] in groups else item for item in graph.items}
        graph = graph.over(upper)
    return listed


def modularity(homes: Mapping[str, str], edges: Edges) -> float:
    """How much more weight is inside of communities than chance would put there."""
    graph = _Graph(sorted(homes), edges)
    if not graph.weight:
        return 0.0
    inner: dict[str, float] = {}
    total: dict[str, float] = {}
    for at, item in enumerate(graph.items):
        home = homes[item]
        total[home] = total.get(home, 0.0) + graph.degrees[at]
        inner[home] = inner.get(home, 0.0) + 2 * graph.loops[at]
        for other, weight in graph.links[at].items():
            if homes[graph.items[other]] == home:
                inner[home] += weight
    return sum(inner[each] / graph.weight - (total[each] / graph.weight) ** 2 for each in total)


class _Graph:
    """Items with weighted links; `weight` is that of all links, counted from both ends."""

    def __init__(self, items: Sequence[str], edges: Edges, loops: Mapping[str, float] | None = None) -> None:
        self.items = list(items)
        self.at = {item: at for at, item in enumerate(self.items)}
        self.links: list[dict[int, float]] = [{} for _ in self.items]
        self.loops = [0.0 if loops is None else loops.get(item, 0.0) for item in self.items]
        for (source, target), weight in sorted(edges.items()):
            if source == target or source not in self.at or target not in self.at or weight <= 0:
                continue
            for one, other in ((source, target), (target, source)):
                own = self.links[self.at[one]]
                own[self.at[other]] = own.get(self.at[other], 0.0) + weight
        self.degrees = [
            sum(links.values()) + 2 * loop for links, loop in zip(self.links, self.loops, strict=True)
        ]
        self.weight = sum(self.degrees)

    def over(self, upper: Mapping[str, str]) -> "_Graph":
        """The graph of what is above the items."""
        edges: dict[tuple[str, str], float] = {}
        loops: dict[str, float] = {}
        for at, item in enumerate(self.items):
            home = upper[item]
            loops[home] = loops.get(home, 0.0) + self.loops[at]
            for other, weight in self.links[at].items():
                if other < at:
                    continue
                target = upper[self.items[other]]
                if target == home:
                    loops[home] += weight
                else:
                    pair = (min(home, target), max(home, target))
                    edges[pair] = edges.get(pair, 0.0) + weight
        return _Graph(sorted(set(upper.values())), edges, loops)

    def of(self, members: Sequence[str]) -> "_Graph":
        """The graph of some items alone."""
        own = {self.at[item] for item in members}
        edges = {
            (self.items[at], self.items[other]): weight
            for at in own
            for other, weight in self.links[at].items()
            if at < other and other in own
        }
        return _Graph(sorted(members), edges, {item: self.loops[self.at[item]] for item in members})


def _settled(graph: _Graph, stored: Mapping[str, str], level: int, most: int) -> dict[str, str]:
    """For each item the name of its community, none of which is too large."""
    homes: dict[int, str] = {}
    for at, item in enumerate(graph.items):
        homes[at] = stored.get(item) or _name([item], level)
    new = {at for at, item in enumerate(graph.items) if item not in stored}
    moving = new
    for _ in range(ROUNDS):
        before = dict(homes)
        _move(graph, homes, moving, level)
        _divide(graph, homes, level, most)
        moving = new & _lonely(homes)
        if homes == before:
            break
    return {item: homes[at] for at, item in enumerate(graph.items)}


def _lonely(homes: Mapping[int, str]) -> set[int]:
    sizes: dict[str, int] = {}
    for home in homes.values():
        sizes[home] = sizes.get(home, 0) + 1
    return {at for at, home in homes.items() if sizes[home] == 1}


def _move(graph: _Graph, homes: dict[int, str], free: set[int], level: int) -> None:
    """Each free item is where its gain is greatest; the moves of one are seen by the next."""
    totals: dict[str, float] = {}
    for at, home in homes.items():
        totals[home] = totals.get(home, 0.0) + graph.degrees[at]
    waiting = deque(sorted(free))
    queued = set(waiting)
    # Every move raises the modularity, so it ends by itself; the bound is for rounding errors.
    for _ in range(50 * len(free) + 1):
        if not waiting or not graph.weight:
            return
        at = waiting.popleft()
        queued.discard(at)
        home = homes[at]
        totals[home] -= graph.degrees[at]
        best = _best(graph, homes, totals, at) or _name([graph.items[at]], level)
        homes[at] = best
        totals[best] = totals.get(best, 0.0) + graph.degrees[at]
        if best != home:
            for other in graph.links[at]:
                if other in free and other not in queued and homes[other] != best:
                    waiting.append(other)
                    queued.add(other)


def _best(graph: _Graph, homes: Mapping[int, str], totals: Mapping[str, float], at: int) -> str | None:
    """The community where an item raises the modularity most, its own among equals; None: it is best alone.

    The item itself is not in the totals.
    """
    home, degree = homes[at], graph.degrees[at]
    weights: dict[str, float] = {}
    for other, weight in graph.links[at].items():
        weights[homes[other]] = weights.get(homes[other], 0.0) + weight
    best, most = home, weights.get(home, 0.0) - degree * totals[home] / graph.weight
    for name in sorted(weights):
        gain = weights[name] - degree * totals[name] / graph.weight
        if gain > most + NO_GAIN:
            best, most = name, gain
    return None if most < -NO_GAIN else best


def _divide(graph: _Graph, homes: dict[int, str], level: int, most: int) -> None:
    """No community has more than `most` members; the largest part keeps its name, and what is above it."""
    members: dict[str, list[int]] = {}
    for at in sorted(homes):
        members.setdefault(homes[at], []).append(at)
    taken = set(members)
    # A community is named for the items that it began with, and none is called as one that is there already.
    for _, own in sorted(members.items()):
        if len(own) <= most:
            continue
        inner = graph.of([graph.items[at] for at in own])
        parts = _parts(inner, most)
        if level > 1:
            parts = _joined(inner, parts, most)
        for part in sorted(parts, key=lambda part: (-len(part), part))[1:]:
            name = _name(part, level)
            while name in taken:
                name = digest(name)
            taken.add(name)
            for item in part:
                homes[graph.at[item]] = name


def _parts(graph: _Graph, most: int) -> list[list[str]]:
    """Parts of two to `most` items: those that belong together, or neighbours in equal numbers."""
    homes = dict(enumerate(graph.items))
    _move(graph, homes, set(homes), 0)
    groups: dict[str, list[str]] = {}
    for at, item in enumerate(graph.items):
        groups.setdefault(homes[at], []).append(item)
    parts = sorted(each for each in groups.values() if len(each) > 1)
    single = sorted(item for each in groups.values() if len(each) == 1 for item in each)
    if len(parts) < 2:
        return _in_equal_numbers(graph, graph.items, most)
    for item in single:
        links = graph.links[graph.at[item]]
        room = [part for part in parts if len(part) < most]
        if not room:
            return _in_equal_numbers(graph, graph.items, most)
        nearest = min(
            room, key=lambda part: (-sum(links.get(graph.at[each], 0.0) for each in part), len(part), part)
        )
        nearest.append(item)
    return [
        piece
        for part in parts
        for piece in ([sorted(part)] if len(part) <= most else _parts(graph.of(part), most))
    ]


def _joined(graph: _Graph, parts: Sequence[Sequence[str]], most: int) -> list[list[str]]:
    """The parts with those that belong together most as one, as long as it has at most `most` items.

    For levels above the first: there the fewer parents there are, the fewer reports a change goes through.
    """
    groups = {part[0]: list(part) for part in parts}
    above = graph.over({item: part[0] for part in parts for item in part})
    degrees = dict(zip(above.items, above.degrees, strict=True))
    links = {
        name: {above.items[other]: weight for other, weight in above.links[at].items()}
        for at, name in enumerate(above.items)
    }

    def loss(one: str, other: str) -> float:
        """What modularity loses when they are joined; less than nothing if they belong together."""
        return degrees[one] * degrees[other] / above.weight - links[one][other]

    def offers(name: str) -> list[tuple[float, str, str]]:
        return [(loss(name, other), min(name, other), max(name, other)) for other in links[name]]

    waiting = [offer for name in groups for offer in offers(name)]
    heapq.heapify(waiting)
    while waiting:
        offered, one, other = heapq.heappop(waiting)
        if one not in groups or other not in groups or len(groups[one]) + len(groups[other]) > most:
            continue
        if offered != loss(one, other):  # it is from before one of them grew
            continue
        groups[one] += groups.pop(other)
        degrees[one] += degrees.pop(other)
        for name, weight in links.pop(other).items():
            del links[name][other]
            if name != one:
                links[one][name] = links[name][one] = links[one].get(name, 0.0) + weight
        for offer in offers(one):
            heapq.heappush(waiting, offer)
    return [sorted(group) for group in groups.values()]


def _in_equal_numbers(graph: _Graph, items: Sequence[str], most: int) -> list[list[str]]:
    """Items in the order in which their links reach them, cut into as few parts as can be."""
    order: list[str] = []
    seen: set[str] = set()
    for start in sorted(items, key=lambda item: (-graph.degrees[graph.at[item]], item)):
        waiting = deque([] if start in seen else [start])
        seen.add(start)
        while waiting:
            item = waiting.popleft()
            order.append(item)
            links = graph.links[graph.at[item]]
            for other in sorted(links, key=lambda at: (-links[at], graph.items[at])):
                if graph.items[other] not in seen:
                    seen.add(graph.items[other])
                    waiting.append(graph.items[other])
    number = -(-len(order) // most)
    cuts = [len(order) * part // number for part in range(number + 1)]
    return [sorted(order[cuts[part] : cuts[part + 1]]) for part in range(number)]


def _name(items: Sequence[str], level: int) -> str:
    return digest("\n".join([f"community {level}", *items]))
