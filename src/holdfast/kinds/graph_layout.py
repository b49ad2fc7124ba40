"""Where entities and communities are drawn: a disc in a disc, what belongs together close to each other.

Positions are from 0 to 1 and depend on nothing but the communities and their names, so that the same graph
has the same picture everywhere.
"""

import math
from collections.abc import Mapping, Sequence

from holdfast.kinds.communities import Community

DIGITS = 4
GOLDEN = math.pi * (3 - math.sqrt(5))
# Of the room of a member in its community, and of all in the picture: the rest is space between them.
FILL = 0.8

Position = tuple[float, float]


def positions(listed: Sequence[Community]) -> dict[str, Position]:
    """The middle of every community by its name, and the place of every item."""
    by_name = {each.name: each for each in listed}
    inner = {name for each in listed if each.level > 1 for name in each.members}
    sizes = _sizes(listed)
    tops = sorted((each.name for each in listed if each.name not in inner), key=lambda n: (-sizes[n], n))
    places: dict[str, Position] = {}
    waiting = _placed(tops, sizes, (0.5, 0.5), 0.5)
    while waiting:
        name, position, radius = waiting.pop()
        places[name] = (round(position[0], DIGITS), round(position[1], DIGITS))
        own = by_name.get(name)
        if own is not None:
            members = sorted(own.members, key=lambda each: (-sizes.get(each, 1), each))
            waiting += _placed(members, sizes, position, radius)
    return places


def _sizes(listed: Sequence[Community]) -> Mapping[str, int]:
    """How many items are in each community."""
    sizes: dict[str, int] = {}
    for each in sorted(listed, key=lambda each: each.level):
        sizes[each.name] = sum(sizes.get(member, 1) for member in each.members)
    return sizes


def _placed(
    names: Sequence[str], sizes: Mapping[str, int], middle: Position, radius: float
) -> list[tuple[str, Position, float]]:
    """The names as seeds of a sunflower are, each with room for what is in it."""
    total = sum(sizes.get(name, 1) for name in names)
    placed = []
    before = 0
    for number, name in enumerate(names):
        size = sizes.get(name, 1)
        share = size / total
        distance = radius * FILL * math.sqrt((before + size / 2) / total) if len(names) > 1 else 0.0
        if number == 0 and share > 0.5:
            distance = 0.0
        angle = number * GOLDEN
        x, y = middle[0] + distance * math.cos(angle), middle[1] + distance * math.sin(angle)
        placed.append(
            (name, (min(1.0, max(0.0, x)), min(1.0, max(0.0, y))), radius * FILL * math.sqrt(share))
        )
        before += size
    return placed
