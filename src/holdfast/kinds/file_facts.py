"""What a file says about itself, on its way from the plan of a run to its publication.

The plan hands it to the first slice, whose result keeps it; the transaction that publishes the generation
writes it to the document. So it is visible with the generation that it belongs to, or not at all.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from holdfast.core import gaps
from holdfast.core.gaps import Gap
from holdfast.documents.parse import properties
from holdfast.documents.parse.reader import Cut
from holdfast.documents.parse.records import MOST_ENTRIES, Outline
from holdfast.store.library import page_readings
from holdfast.store.library.documents import Facts


def planned(outline: Outline, *, with_properties: bool) -> dict[str, Any]:
    """What the payload of a document's first slice has beside its pages."""
    planned: dict[str, Any] = {}
    if with_properties and outline.properties:
        planned["properties"] = dict(outline.properties)
    if outline.entries:
        planned["bookmarks"] = [list(astuple(entry)) for entry in outline.entries]
    return planned


def of_slice(payload: Mapping[str, Any], cut: Cut) -> dict[str, Any]:
    """What the result of a slice says about the file."""
    facts = {name: payload[name] for name in ("properties", "bookmarks") if payload.get(name)}
    if cut.page_words:
        facts["page_words"] = [list(each) for each in cut.page_words]
    if cut.headings:
        facts["headings"] = [list(astuple(entry)) for entry in cut.headings]
    return facts


def of_run(results: Sequence[Mapping[str, Any]], chunks: int) -> Facts:
    """The facts of a document, from the results of all slices of its run."""
    own = _first(results, "properties", {})
    return Facts(
        form=_first(results, "format", None),
        pages=sum(int(each.get("pages", 0)) for each in results),
        chunks=chunks,
        thumbnail=_first(results, "thumbnail", None),
        unread=_unread(results),
        properties=own,
        outline=_outline(results),
        title=properties.title_of(own),
        language=_first(results, "language", None),
        page_qualities=_qualities(results),
    )


def _qualities(results: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many pages have which quality."""
    pages = (page for each in results for page in page_readings.of_slice(0, each))
    return dict(sorted(Counter(page.quality for page in pages).items()))


def _first(results: Iterable[Mapping[str, Any]], name: str, otherwise: Any) -> Any:
    return next((each[name] for each in results if each.get(name)), otherwise)


def _unread(results: Iterable[Mapping[str, Any]]) -> Sequence[Gap]:
    return gaps.grouped(
        (page, gap) for each in results for page, _, _, gap in each.get("readings", ()) if gap
    )


def _outline(results: Sequence[Mapping[str, Any]]) -> Sequence[Sequence[Any]]:
    """The bookmarks of the file or, where it has none, the headings in its text."""
    bookmarks: Sequence[Sequence[Any]] = _first(results, "bookmarks", ())
    headings = [entry for each in results for entry in each.get("headings", ())]
    return bookmarks or headings[:MOST_ENTRIES]
