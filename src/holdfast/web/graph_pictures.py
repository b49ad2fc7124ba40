"""The picture of a knowledge graph: circles and lines at stored positions, and labels that do not overlap."""

import functools
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.service.graph_catalogue import EntityName
from holdfast.service.graphs import GraphPicture
from holdfast.web import graph_spacing

WIDTH, HEIGHT = 1000, 680
MARGIN_X, MARGIN_Y = 70, 28
SMALLEST, LARGEST = 5.0, 15.0
LINE_HEIGHT, LETTER = 17.0, 7.6
LONGEST_LABEL = 26
MOST_LINES = 1_200
# Labels of the most important, which may lie over small circles.
MUST_LABEL = 30
COLOURS = 8
# Lines are as wide as one of so many steps.
WIDTHS, THINNEST, THICKEST = 4, 0.7, 3.0
# The side of a square by which labels look for what is around them.
SQUARE = 40.0
# Pictures that a process keeps: a page that follows its job draws the same one again and again.
DRAWN = 16


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
class DrawnLines:
    """Relations of about the same weight as one path; `is_near` if they are those of the chosen entity.

    One element for many lines: a browser needs a tenth of the time for it.
    """

    path: str
    width: float
    is_near: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """Everything that is drawn, lines first."""

    lines: tuple[DrawnLines, ...]
    entities: tuple[DrawnEntity, ...]
    width: int = WIDTH
    height: int = HEIGHT


@functools.lru_cache(DRAWN)
def draw(picture: GraphPicture, chosen: str | None, marked: frozenset[str]) -> Drawing:
    """The picture with one entity chosen, or those of a community marked."""
    positions = _spread(picture.entities)
    near = set(marked)
    for edge in picture.edges:
        if chosen in (edge.source, edge.target):
            near |= {edge.source, edge.target}
    entities = _labelled(picture.entities, positions, chosen, near)
    return Drawing(_lines(picture, positions, chosen), entities)


def _lines(
    picture: GraphPicture, positions: Mapping[str, tuple[float, float]], chosen: str | None
) -> tuple[DrawnLines, ...]:
    """The heavier a relation the wider its line, in a few steps; those of the chosen entity last, on top."""
    edges = picture.edges[:MOST_LINES]
    heaviest = max((edge.weight for edge in edges), default=1.0) or 1.0
    paths: dict[tuple[bool, int], list[str]] = {}
    for edge in edges:
        if edge.source in positions and edge.target in positions:
            step = round((WIDTHS - 1) * math.sqrt(max(0.0, edge.weight) / heaviest))
            (x1, y1), (x2, y2) = positions[edge.source], positions[edge.target]
            is_near = chosen in (edge.source, edge.target)
            paths.setdefault((is_near, step), []).append(f"M{x1:g} {y1:g}L{x2:g} {y2:g}")
    return tuple(
        DrawnLines("".join(path), round(THINNEST + (THICKEST - THINNEST) * step / (WIDTHS - 1), 1), is_near)
        for (is_near, step), path in sorted(paths.items())
    )


def _spread(entities: Sequence[EntityName]) -> dict[str, tuple[float, float]]:
    """Where circles are. In an order of their own: what is chosen moves nothing."""
    if not entities:
        return {}
    order = sorted(entities, key=lambda each: each.key)
    area = (MARGIN_X, MARGIN_Y, WIDTH - MARGIN_X, HEIGHT - MARGIN_Y)
    positions = graph_spacing.spread([each.x for each in order], [each.y for each in order], area)
    return {each.key: position for each, position in zip(order, positions, strict=True)}


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
    """What is taken of the picture, by squares, so that a label is compared with what is around it alone."""

    def __init__(self, circles: Iterable[Box]) -> None:
        self._circles: dict[tuple[int, int], list[Box]] = {}
        self._labels: dict[tuple[int, int], list[Box]] = {}
        for box in circles:
            _put(self._circles, box)

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
        for taken in ((self._labels, self._circles), (self._labels,))[: 1 + over_circles]:
            for label_x, label_y, anchor, left, middle in places:
                box = (left, middle - LINE_HEIGHT / 2, left + width, middle + LINE_HEIGHT / 2)
                inside = box[0] >= 0 and box[1] >= 0 and box[2] <= WIDTH and box[3] <= HEIGHT
                if inside and not any(_is_taken(some, box) for some in taken):
                    _put(self._labels, box)
                    return label_x, label_y, anchor
        return None


def _around(x: float, y: float, radius: float) -> Box:
    return x - radius, y - radius, x + radius, y + radius


def _squares(box: Box) -> list[tuple[int, int]]:
    left, top, right, bottom = (int(each // SQUARE) for each in box)
    return [(column, row) for column in range(left, right + 1) for row in range(top, bottom + 1)]


def _put(boxes: dict[tuple[int, int], list[Box]], box: Box) -> None:
    for square in _squares(box):
        boxes.setdefault(square, []).append(box)


def _is_taken(boxes: Mapping[tuple[int, int], Sequence[Box]], box: Box) -> bool:
    left, top, right, bottom = box
    for square in _squares(box):
        for other in boxes.get(square, ()):
            if left < other[2] and other[0] < right and top < other[3] and other[1] < bottom:
                return True
    return False
