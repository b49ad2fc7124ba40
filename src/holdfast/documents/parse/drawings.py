"""What Office files share: titles of charts, and parts of the package that a part refers to."""

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def related(part: Any, ending: str) -> Iterator[Any]:
    """The parts of the package that `part` refers to by a relationship of this type, in order."""
    for relation in part.rels.values():
        if relation.reltype.endswith(ending) and not relation.is_external:
            yield relation.target_part


def chart_titles(element: Any, part: Any) -> Iterator[str]:
    """The titles of the charts drawn in an element of `part`."""
    for chart in element.iter(f"{_C}chart"):
        relation = part.rels.get(chart.get(_RELATION, ""))
        if relation is not None and not relation.is_external:
            yield from titles(relation.target_part.blob)


def titles(chart: bytes) -> Iterator[str]:
    """The title of a chart and those of its axes, without those that its program makes up."""
    for title in xml(chart).iter(f"{_C}title"):
        text = " ".join("".join(piece.text or "" for piece in title.iter(f"{_A}t")).split())
        if text:
            yield text


def comment_texts(comments: bytes) -> Iterator[str]:
    """The texts of the comments of a slide: `p:text` in the older form, paragraphs in the newer one."""
    for comment in xml(comments):
        texts = (piece.text or "" for piece in comment.iter() if piece.tag in {f"{_P}text", f"{_A}t"})
        text = " ".join(" ".join(texts).split())
        if text:
            yield text


def xml(data: bytes) -> ET.Element:
    """The tree of a part."""
    return ET.fromstring(data)  # noqa: S314 (expat 2.5, in the child)
