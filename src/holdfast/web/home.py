"""The home page: collections, and work in progress."""

from dataclasses import dataclass

from fastapi import Request
from fastapi.responses import Response

from holdfast.core.states import Status
from holdfast.service.records import Collection, Counts
from holdfast.web import dashboard, rendering, warnings
from holdfast.web.page_access import Services


@dataclass(frozen=True, slots=True)
class CollectionCard:
    """A collection with how many documents of each status it has."""

    collection: Collection
    counts: Counts

    @property
    def share(self) -> list[tuple[str, float, float]]:
        """For a bar of 100: status, where its stretch begins and how long it is."""
        stretches, at = [], 0.0
        whole = max(1, self.counts.documents)
        for status in (Status.SUCCESS, Status.RUNNING, Status.QUEUED, Status.FAILED, Status.IDLE):
            length = 100 * self.counts.of(status) / whole
            if length:
                stretches.append((status.value, round(at, 3), round(length, 3)))
            at += length
        return stretches


router = rendering.router()


@router.get("/")
def home(request: Request, services: Services, who: rendering.Who) -> Response:
    """Show the collections, what is under way, and what that costs and saves."""
    counts = services.views.counts(who.tenant)
    known = dashboard.crew(services)
    needed = warnings.all_of(services, who, known)
    return rendering.page(
        request,
        who,
        "home.html",
        "Home",
        cards=[
            CollectionCard(each, counts.get(each.id, Counts({})))
            for each in services.collections.all(who.tenant)
        ],
        strip=dashboard.strip(services, who, sum(each.of(Status.FAILED) for each in counts.values())),
        health=dashboard.health(services, known, len(needed)),
        concerns=needed,
        refusals=dashboard.refusals(services, who, 6),
    )
