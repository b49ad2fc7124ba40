"""The log of a run, line by line, the latest at the bottom."""

from fastapi import Request
from fastapi.responses import Response

from holdfast.core.errors import NotFoundError
from holdfast.core.records import TENANT
from holdfast.core.states import LIVE, shown
from holdfast.web import rendering
from holdfast.web.page_access import Services

LINES = 500

router = rendering.router()


@router.get("/runs/{name}")
def run(request: Request, services: Services, who: rendering.Who, name: str) -> Response:
    """Show the log of a run, which follows it while it is live."""
    if not TENANT.fullmatch(name):
        raise NotFoundError("there is no such run", code="unknown_run")
    progress = services.views.run(who.tenant, name, lines=LINES)
    subject = progress.run.subject.partition("#")[0]
    subject_type, _, about = subject.partition(":")
    return rendering.page(
        request,
        who,
        "run.html",
        f"Run log: {progress.run.kind}",
        found=progress,
        word=shown(progress.run.kind, progress.run.status),
        is_live=progress.run.status in LIVE,
        document=about if subject_type == "document" else None,
        most=LINES,
    )
