"""The job behind a tree, a graph or a mind map: how far it is, how it failed, or that there was none yet."""

from dataclasses import dataclass
from urllib.parse import urlencode

from holdfast.bootstrap import AppServices
from holdfast.core.states import LIVE, Status
from holdfast.service.jobs import JobView
from holdfast.service.records import JobQuery

# Jobs on documents of the collection may be among those that are listed.
LOOKED_AT = 50


@dataclass(frozen=True, slots=True)
class DerivedJob:
    """The newest job of a kind on a collection, and where a new one is started."""

    kind: str
    start: str
    view: JobView | None
    stand_in: bool

    @property
    def is_live(self) -> bool:
        """True if it waits or runs."""
        return self.view is not None and self.view.job.run.status in LIVE

    @property
    def has_failed(self) -> bool:
        """True if it is over, and nothing came of it."""
        return self.view is not None and self.view.job.run.status is Status.FAILED


def of_collection(services: AppServices, tenant: str, collection: str, kind: str) -> DerivedJob:
    """What became of the last request for this kind."""
    listed = services.jobs.page(JobQuery(tenant, kind=kind, collection=collection, limit=LOOKED_AT))
    own = (view for view in listed if view.job.run.subject == f"collection:{collection}")
    model = services.jobs.model
    return DerivedJob(
        kind,
        f"/jobs?{urlencode({'start': kind, 'collection': collection})}",
        next(own, None),
        model is not None and model.stand_in,
    )
