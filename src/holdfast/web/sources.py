"""The sources of a collection: when each was looked at, what came of it, and what failed."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Request
from fastapi.responses import Response

from holdfast.documents.sources.source_types import TYPES
from holdfast.service import formatting
from holdfast.service.sources import ItemRecord, SourceRecord
from holdfast.web import rendering
from holdfast.web.collections import PathCollection
from holdfast.web.page_access import Services

FAILED_ITEMS = 10
# What people call a type, the type, and what its first field asks for.
TITLES = {
    "urls": "List of URLs",
    "sitemap": "Website (sitemap)",
    "feed": "Feed (RSS, Atom)",
    "git": "Git repository",
    "s3": "Bucket (S3)",
    "folder": "Folder of the server",
}
INTERVALS = {
    "": "Only when requested",
    "900": "Every 15 minutes",
    "3600": "Every hour",
    "21600": "Every 6 hours",
    "86400": "Every day",
    "604800": "Every week",
}
STATES = {"never": "waiting", "looking": "running", "ok": "done", "failed": "failed"}
router = rendering.router()


@dataclass(frozen=True, slots=True)
class SourceCard:
    """A source with the items that failed at its last look."""

    source: SourceRecord
    failed: Sequence[ItemRecord]

    @property
    def title(self) -> str:
        """What the type is called."""
        return TITLES.get(self.source.type, self.source.type)

    @property
    def counts(self) -> list[tuple[str, int]]:
        """What the last look counted, without what is zero."""
        return [(word, number) for word, number in self.source.counts.items() if number]

    @property
    def every(self) -> str:
        """How often it is looked at."""
        seconds = self.source.refresh_every
        if seconds is None:
            return "only when requested"
        return INTERVALS.get(f"{seconds:g}", f"every {formatting.span(seconds)}").lower()

    @property
    def next_in(self) -> float | None:
        """Seconds until the next look; None if there is none to wait for."""
        at = self.source.next_at
        return None if at is None or self.source.is_looked_at else max(0.0, at - time.time())

    @property
    def chip(self) -> str:
        """Its state, in a word that has a colour."""
        return STATES[self.source.status]


@router.get("/collections/{name}/sources")
def sources(request: Request, services: Services, who: rendering.Who, collection: PathCollection) -> Response:
    """Show the sources of a collection and their looks."""
    listed = services.sources.all(who.tenant, collection.id)
    cards = [
        SourceCard(
            each,
            services.sources.items(each, state="failed", limit=FAILED_ITEMS)
            if each.counts.get("failed")
            else (),
        )
        for each in listed
    ]
    offered = [(name, TITLES.get(name, name)) for name in TITLES if name in TYPES]
    if not services.settings.source_folders:
        offered = [each for each in offered if each[0] != "folder"]
    return rendering.page(
        request,
        who,
        "sources.html",
        f"Sources of {collection.title}",
        collection=collection,
        tab="sources",
        cards=cards,
        types=offered,
        intervals=INTERVALS,
    )
