"""The picture of a knowledge graph: circles and lines at stored positions, and labels that do not overlap."""

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.service.graph_catalogue import EntityName
from holdfast.service.graphs import GraphPicture

WIDTH, HEIGHT = 1000, 680
MARGIN_X, MARGIN_Y = 70, 28
SMALLEST, LARGEST = 5.0, 15.0
LINE_HEIGHT, LETTER = 17.0, 7.6
LONGEST_LABEL = 26
MOST_LINES = 1_200
# Labels of the most important, which may lie over small circles.
MUST_LABEL = 30
COLOURS = 8


@dataclass(frozen=True, slots=True)
class DrawnEntity:
    """A circle with its label; `anchor` is empty where there is no room for the label but on demand."""

    entity: EntityName
    x: float
    y: float
    radius: float
    colour: int
    label: str
    label_x: float
    label_y: float
    anchor: str
    is_chosen: bool
    is_near: bool


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A relation between two circles; `is_near` if it is one of the chosen entity."""

    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    is_near: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """Everything that is drawn, lines first."""

    lines: tuple[DrawnLine, ...]
    entities: tuple[DrawnEntity, ...]
    width: int = WIDTH
    height: int = HEIGHT


def draw(picture: GraphPicture, chosen: str | None, marked: frozenset[str]) -> Drawing:
    """The picture with one entity chosen, or those of a community marked."""
    positions = _spread(picture.entities)
    near = set(marked)
    for edge in picture.edges:
        if chosen in (edge.source, edge.target):
            near |= {edge.source, edge.target}
    lines = []
    heaviest = max((edge.weight for edge in picture.edges), default=1.0) or 1.0
    for edge in picture.edges[:MOST_LINES]:
        if edge.source in positions and edge.target in positions:
            width = 0.7 + 2.3 * math.sqrt(max(0.0, edge.weight) / heaviest)
            is_near = chosen in (edge.source, edge.target)
            lines.append(DrawnLine(*positions[edge.source], *positions[edge.target], width, is_near))
    entities = _labelled(picture.entities, positions, chosen, near)
    return Drawing(tuple(sorted(lines, key=lambda line: line.is_near)), entities)


def _spread(entities: Sequence[EntityName]) -> dict[str, tuple[float, float]]:
    """Where circles are: the stored positions, stretched over the picture and pushed apart a little."""
    if not entities:
        return {}
    columns = _stretched([each.x for each in entities])
    rows = _stretched([each.y for each in entities])
    at = [
        [MARGIN_X + x * (WIDTH - 2 * MARGIN_X), MARGIN_Y + y * (HEIGHT - 2 * MARGIN_Y)]
        for x, y in zip(columns, rows, strict=True)
    ]
    _push_apart(at, math.sqrt(WIDTH * HEIGHT / len(at)) * 0.62)
    return {each.key: (round(x, 1), round(y, 1)) for each, (x, y) in zip(entities, at, strict=True)}


def _stretched(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    return [0.5 if high - low < 1e-6 else (value - low) / (high - low) for value in values]


def _push_apart(at: list[list[float]], spacing: float, rounds: int = 24) -> None:
    """Circles keep a distance, as far as there is room; the same positions give the same picture."""
    distance = min(spacing, 90.0)
    for _ in range(rounds):
        cells: dict[tuple[int, int], list[int]] = {}
        for number, (x, y) in enumerate(at):
            cells.setdefault((int(x // distance), int(y // distance)), []).append(number)
        for number, own in enumerate(at):
            column, row = int(own[0] // distance), int(own[1] // distance)
            around = (
                other
                for i in (-1, 0, 1)
                for j in (-1, 0, 1)
                for other in cells.get((column + i, row + j), ())
                if other > number
            )
            for other in around:
                _push(own, at[other], distance, number + other)
        for point in at:
            point[0] = min(WIDTH - MARGIN_X, max(MARGIN_X, point[0]))
            point[1] = min(HEIGHT - MARGIN_Y, max(MARGIN_Y, point[1]))


def _push(one: list[float], other: list[float], distance: float, angle: int) -> None:
    x, y = other[0] - one[0], other[1] - one[1]
    apart = math.hypot(x, y)
    if apart >= distance:
        return
    if apart < 1e-3:  # two on one spot: in some direction, always the same
        x, y, apart = math.cos(angle), math.sin(angle), 1.0
    by = (distance - min(apart, distance)) / 2 * 0.5
    for axis, length in ((0, x), (1, y)):
        one[axis] -= length / apart * by
        other[axis] += length / apart * by


def _labelled(
    entities: Sequence[EntityName],
    positions: Mapping[str, tuple[float, float]],
    chosen: str | None,
    near: Iterable[str],
) -> tuple[DrawnEntity, ...]:
    """Circles with labels: that of the chosen one first, then its neighbours', then by mentions."""
    around = frozenset(near)
    most = max((each.mentions for each in entities), default=1) or 1
    order = sorted(
        entities, key=lambda each: (each.key != chosen, each.key not in around, -each.mentions, each.key)
    )
    sizes = {
        each.key: SMALLEST + (LARGEST - SMALLEST) * math.sqrt(max(0, each.mentions) / most)
        for each in entities
    }
    boxes = _Boxes(_around(*positions[each.key], sizes[each.key]) for each in entities)
    drawn = []
    for number, each in enumerate(order):
        x, y = positions[each.key]
        label = each.title if len(each.title) <= LONGEST_LABEL else f"{each.title[: LONGEST_LABEL - 1]}…"
        at = boxes.room(x, y, sizes[each.key], LETTER * len(label), over_circles=number < MUST_LABEL)
        label_x, label_y, anchor = at or (x + sizes[each.key] + 4, y + 4, "")
        drawn.append(
            DrawnEntity(
                each,
                x,
                y,
                round(sizes[each.key], 1),
                _colour(each.community),
                label,
                round(label_x, 1),
                round(label_y, 1),
                anchor,
                each.key == chosen,
                each.key in around,
            )
        )
    return tuple(drawn)


def _colour(community: str | None) -> int:
    """The same for a community in every picture."""
    return COLOURS - 1 if community is None else zlib.crc32(community.encode()) % COLOURS


Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom."""


class _Boxes:
    """What is taken of the picture."""

    def __init__(self, circles: Iterable[Box]) -> None:
        self._circles = list(circles)
        self._labels: list[Box] = []

    def room(
        self, x: float, y: float, radius: float, width: float, *, over_circles: bool
    ) -> tuple[float, float, str] | None:
        """Where a label finds room beside, below or above its circle; None if nowhere."""
        gap = radius + 3
        places = (
            (x + gap, y + 4, "start", x + gap, y),
            (x - gap, y + 4, "end", x - gap - width, y),
            (x, y + gap + 11, "middle", x - width / 2, y + gap + 7),
            (x, y - gap - 2, "middle", x - width / 2, y - gap - 6),
        )
        for taken in ([*self._circles, *self._labels], self._labels)[: 1 + over_circles]:
            for label_x, label_y, anchor, left, middle in places:
                box = (left, middle - LINE_HEIGHT / 2, left + width, middle + LINE_HEIGHT / 2)
                inside = box[0] >= 0 and box[1] >= 0 and box[2] <= WIDTH and box[3] <= HEIGHT
                if inside and not any(_overlap(box, other) for other in taken):
                    self._labels.append(box)
                    return label_x, label_y, anchor
        return None


def _around(x: float, y: float, radius: float) -> Box:
    return x - radius, y - radius, x + radius, y + radius


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
