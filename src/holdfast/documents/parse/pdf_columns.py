"""The reading order of a page in columns: recursive cuts along the empty strips between its segments.

PDFium gives text in the order in which it was drawn. Most programs draw column by column, and cutting such
pages makes them worse. So a page is cut only if PDFium itself runs across: if many of its neighbours stand on
one line with a wide gap between them and prose on both sides.
"""

from collections.abc import Sequence

from holdfast.documents.parse.pdf_characters import WIDE, Segment, on_one_line

# The share of such neighbours is 0.29 and more on scrambled pages, 0.07 and less on all others.
_SCRAMBLED = 0.15
MOST_SEGMENTS = 4_000
_DEEPEST = 8
_Strip = tuple[float, float]


def is_scrambled(segments: Sequence[Segment]) -> bool:
    """True if PDFium's order runs across columns."""
    if len(segments) > MOST_SEGMENTS:
        return False
    prose = [_is_prose(segment) for segment in segments]
    across = sum(
        prose[at - 1] and prose[at] and _are_apart(segments[at - 1], segments[at])
        for at in range(1, len(segments))
    )
    return across >= 3 and across > _SCRAMBLED * len(segments)


def _are_apart(one: Segment, two: Segment) -> bool:
    gap = max(two.left - one.right, one.left - two.right)
    return gap > WIDE * max(one.height, two.height) and on_one_line(one, two)


def _is_prose(segment: Segment) -> bool:
    """True for several words, mostly letters; scripts without spaces by letters alone."""
    text = segment.text
    letters = sum(map(str.isalpha, text))
    return letters >= 8 and letters >= 0.6 * len(text) and (text.count(" ") >= 2 or not text.isascii())


def regions(segments: Sequence[Segment]) -> list[list[Segment]]:
    """The segments by region, in reading order; within a region they stay in PDFium's order."""
    positions = {id(segment): at for at, segment in enumerate(segments)}
    cells = _cut(list(segments), 0, right_to_left=_is_right_to_left(segments))
    return [sorted(cell, key=lambda segment: positions[id(segment)]) for cell in cells]


def _is_right_to_left(segments: Sequence[Segment]) -> bool:
    letters = [each.letter for segment in segments for each in segment.characters if each.letter.isalpha()]
    return 2 * sum("\u0590" <= letter <= "\u08ff" for letter in letters) > len(letters)


def _cut(segments: list[Segment], depth: int, *, right_to_left: bool) -> list[list[Segment]]:
    if len(segments) < 2 or depth > _DEEPEST:
        return [segments]
    cells: list[list[Segment]] = []
    plain: list[Segment] = []
    for group in _groups(_bands(segments)):
        columns = _split(group.segments, group.strips)
        if len(columns) == 1:
            plain += group.segments  # consecutive groups without columns are one region
            continue
        if plain:
            cells.append(plain)
            plain = []
        for column in reversed(columns) if right_to_left else columns:
            cells += _cut(column, depth + 1, right_to_left=right_to_left)
    if plain:
        cells.append(plain)
    return cells


def _bands(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Segments grouped from top to bottom, cut wherever no segment is."""
    bands: list[list[Segment]] = []
    floor = 0.0
    for segment in sorted(segments, key=lambda each: -each.top):
        # Loose boxes of neighbouring lines touch: a fifth of the height of a line does not count.
        touching = min(0.2 * segment.height, 3.0)
        if bands and segment.top - touching > floor:
            bands[-1].append(segment)
            floor = min(floor, segment.bottom + touching)
        else:
            bands.append([segment])
            floor = segment.bottom + touching
    return bands


class _Group:
    """Consecutive bands that share an empty vertical strip with text on both sides; or that have none."""

    def __init__(self, band: list[Segment]) -> None:
        self.segments = list(band)
        self.strips = _free(band)
        self._first_right = min(each.right for each in band)
        self._last_left = max(each.left for each in band)

    def takes(self, band: list[Segment]) -> bool:
        """True if the band belongs here, and has been added."""
        other = _Group(band)
        strips = _shared(self.strips, other.strips, min(each.height for each in band))
        first_right = min(self._first_right, other._first_right)
        last_left = max(self._last_left, other._last_left)
        if not _inner(strips, first_right, last_left) and (self.has_columns or other.has_columns):
            return False
        self.segments += band
        self.strips, self._first_right, self._last_left = strips, first_right, last_left
        return True

    @property
    def has_columns(self) -> bool:
        """True if a strip has text on both sides."""
        return _inner(self.strips, self._first_right, self._last_left)


def _inner(strips: Sequence[_Strip], first_right: float, last_left: float) -> bool:
    return any(first_right <= start and end <= last_left for start, end in strips)


def _groups(bands: Sequence[list[Segment]]) -> list[_Group]:
    groups: list[_Group] = []
    for band in bands:
        if not groups or not groups[-1].takes(band):
            groups.append(_Group(band))
    return groups


def _free(segments: Sequence[Segment]) -> list[_Strip]:
    """The empty vertical strips, those at both sides included."""
    strips, right = [], float("-inf")
    for segment in sorted(segments, key=lambda each: each.left):
        if segment.left > right:
            strips.append((right, segment.left))
        right = max(right, segment.right)
    return [*strips, (right, float("inf"))]


def _shared(one: Sequence[_Strip], two: Sequence[_Strip], height: float) -> list[_Strip]:
    """What two lists of strips have in common, if it is wide enough."""
    shared, first, second = [], 0, 0
    while first < len(one) and second < len(two):
        left, right = max(one[first][0], two[second][0]), min(one[first][1], two[second][1])
        if right - left >= 0.8 * height:
            shared.append((left, right))
        if one[first][1] < two[second][1]:
            first += 1
        else:
            second += 1
    return shared


def _split(segments: Sequence[Segment], gutters: Sequence[_Strip]) -> list[list[Segment]]:
    """The segments by column, from left to right."""
    columns: list[list[Segment]] = [[]]
    edges = [end for _start, end in gutters]
    at = 0
    for segment in sorted(segments, key=lambda each: each.left):
        begins = False
        while at < len(edges) and segment.left >= edges[at] - 0.01:
            at += 1
            begins = True
        if begins and columns[-1]:
            columns.append([])
        columns[-1].append(segment)
    return columns
