"""A mind map as text: Markdown, an outline for a terminal, and a picture (SVG).

The picture is a tidy tree from left to right: one row for each topic without subtopics, the others in the
middle of theirs. Widths are estimates that are rather too large, as the font is the reader's. Its colours
have enough contrast on a light and on a dark ground.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from holdfast.service.mind_maps import MapTopic, MindMap

ROW, SIZE = 26, 14
PADDING, GAP, MARGIN = 8, 56, 16
# Characters of a title in the picture; what is longer is cut, and whole in the tip of the box.
MOST_CHARACTERS = 46
# Widths of a character, in parts of the size of the font: of a wide one, a capital, and any other.
WIDE, CAPITAL, USUAL = 1.05, 0.78, 0.62
_MARKED = frozenset("\\`*_{}[]<>()#+-.!|~&$^=:")
_STYLE = (
    "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif;font-size:14px;"
    "fill:#767676}.main{font-weight:600}"
    "@media (prefers-color-scheme:light){text{fill:#1f2328}}"
    "@media (prefers-color-scheme:dark){text{fill:#e6e6e6}}"
)


def markdown(mind_map: MindMap) -> str:
    """A heading and a nested list. Nothing in a title is read as Markdown or HTML."""
    lines = [f"# {_plain_markdown(mind_map.title)}", ""]
    lines += [f"{'  ' * depth}- {_plain_markdown(topic.title)}" for depth, topic in _listed(mind_map.topics)]
    return "\n".join(lines) + "\n"


def outline(mind_map: MindMap) -> str:
    """The topics, each on a line, indented."""
    lines = [_line(mind_map.title)]
    lines += [f"{'  ' * (depth + 1)}{_line(topic.title)}" for depth, topic in _listed(mind_map.topics)]
    return "\n".join(lines) + "\n"


def _listed(topics: Sequence[MapTopic], depth: int = 0) -> Iterator[tuple[int, MapTopic]]:
    for topic in topics:
        yield depth, topic
        yield from _listed(topic.topics, depth + 1)


def _line(text: str) -> str:
    """The text on one line, without characters that control a terminal or break XML."""
    return " ".join("".join(each if _is_printed(each) else " " for each in text).split())


def _is_printed(character: str) -> bool:
    return unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def _plain_markdown(text: str) -> str:
    return "".join(f"\\{each}" if each in _MARKED else each for each in _line(text))


@dataclass(frozen=True, slots=True)
class _Box:
    """A title at its position in the picture; `above` is the right middle of the one that it belongs to."""

    title: str
    shown: str
    depth: int
    x: float
    y: float
    width: float
    above: tuple[float, float] | None


def svg(mind_map: MindMap) -> str:
    """The picture, as a document of its own."""
    title = _line(mind_map.title)
    boxes = _boxes(mind_map)
    width = max(box.x + box.width for box in boxes) + MARGIN
    height = max(box.y for box in boxes) + ROW / 2 + MARGIN
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg"',
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"',
        'role="img" aria-labelledby="map-title">',
        f'<title id="map-title">{escape(f"Mind map of {title}")}</title><style>{_STYLE}</style>',
    ]
    parts += [_link(box) for box in boxes if box.above is not None]
    parts += [_drawn(box) for box in boxes]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _boxes(mind_map: MindMap) -> list[_Box]:
    root = MapTopic("", mind_map.title, -1, False, False, False, (), 0, mind_map.topics)
    widths: list[float] = []
    for depth, topic in _listed([root]):
        widths += [0.0] * (depth + 1 - len(widths))
        widths[depth] = max(widths[depth], _width(_cut(topic.title)))
    starts = [MARGIN + sum(widths[:depth]) + GAP * depth for depth in range(len(widths))]
    boxes: list[_Box] = []
    row = 0

    def place(topic: MapTopic, depth: int) -> tuple[float, list[int]]:
        """The row of a topic, whose boxes below it are in the list; theirs get its position later."""
        nonlocal row
        below = [place(each, depth + 1) for each in topic.topics]
        if below:
            y = (below[0][0] + below[-1][0]) / 2
        else:
            y = MARGIN + ROW * (row + 0.5)
            row += 1
        shown = _cut(topic.title)
        width = _width(shown)
        right = (starts[depth] + width, y)
        for _y, (at, *_rest) in below:
            old = boxes[at]
            boxes[at] = _Box(old.title, old.shown, old.depth, old.x, old.y, old.width, right)
        boxes.append(_Box(_line(topic.title), shown, depth, starts[depth], y, width, None))
        return y, [len(boxes) - 1]

    place(root, 0)
    return boxes


def _cut(title: str) -> str:
    line = _line(title)
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1].rstrip()}…"


def _width(text: str) -> float:
    parts = (
        WIDE if unicodedata.east_asian_width(each) in "WFA" else CAPITAL if each.isupper() else USUAL
        for each in text
    )
    return 2 * PADDING + SIZE * sum(parts)


def _link(box: _Box) -> str:
    x, y = box.above or (0.0, 0.0)
    middle = (x + box.x) / 2
    curve = f"M{x:.1f} {y:.1f}C{middle:.1f} {y:.1f} {middle:.1f} {box.y:.1f} {box.x:.1f} {box.y:.1f}"
    return f'<path d="{curve}" fill="none" stroke="#8a8a8a" stroke-width="1.5"/>'


def _drawn(box: _Box) -> str:
    name = ' class="main"' if box.depth < 2 else ""
    top = box.y - ROW / 2 + 2
    return (
        f"<g><title>{escape(box.title)}</title>"
        f'<rect x="{box.x:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{ROW - 4}" rx="6" '
        'fill="#808080" fill-opacity="0.12" stroke="#8a8a8a"/>'
        f'<text x="{box.x + PADDING:.1f}" y="{box.y + SIZE * 0.35:.1f}"{name}>{escape(box.shown)}</text></g>'
    )
