"""Requests to the gateway: how many, how many were free, the slowest and those that failed."""

from fastapi import Request
from fastapi.responses import Response

from holdfast.service import gateway_reports
from holdfast.web import rendering
from holdfast.web.page_access import Services

router = rendering.router()


@router.get("/gateway")
def gateway(request: Request, services: Services, who: rendering.Who, span: str = "day") -> Response:
    """Show what programs of the tenant asked of the gateway."""
    summary = services.gateway_reports.summary(who.tenant, span)
    return rendering.page(
        request,
        who,
        "gateway.html",
        "Gateway",
        summary=summary,
        report=summary.report,
        spans=list(gateway_reports.HOURS),
        mean=gateway_reports.mean_seconds,
        key_named=lambda about: summary.key_names.get(about, about) or "No key",
        model_named=lambda about: about or "No model",
        scope_named=lambda about: about or "No scope",
    )
