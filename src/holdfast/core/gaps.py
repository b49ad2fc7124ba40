"""Gaps: pages of a published document whose text could not be read, and why."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# A document with scattered gaps names as many ranges of pages; `count` has them all.
MOST_RANGES = 200


@dataclass(frozen=True, slots=True)
class Gap:
    """Pages that could not be read for one reason: as ranges like "4-9, 12", and how many there are."""

    pages: str
    reason: str
    count: int

    def as_json(self) -> dict[str, Any]:
        """The gap as it is stored and shown."""
        return {"pages": self.pages, "reason": self.reason, "count": self.count}


def grouped(unread: Iterable[tuple[int, str]]) -> tuple[Gap, ...]:
    """The gaps of these pages, each with its reason, in the order of their first pages."""
    by_reason: dict[str, list[int]] = {}
    for page, reason in sorted(set(unread)):
        by_reason.setdefault(reason, []).append(page)
    return tuple(Gap(ranges(pages), reason, len(pages)) for reason, pages in by_reason.items())


def ranges(pages: Iterable[int]) -> str:
    """Ascending page numbers as ranges; beyond `MOST_RANGES` of them an ellipsis."""
    spans: list[tuple[int, int]] = []
    for page in pages:
        if spans and page == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], page)
        else:
            spans.append((page, page))
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in spans[:MOST_RANGES]]
    return ", ".join(texts + ["…"] * (len(spans) > MOST_RANGES))


def from_json(stored: Iterable[Mapping[str, Any]] | None) -> tuple[Gap, ...]:
    """The gaps of a stored list."""
    return tuple(Gap(str(each["pages"]), str(each["reason"]), int(each["count"])) for each in stored or ())
