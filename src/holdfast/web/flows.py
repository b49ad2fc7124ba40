"""A dry run of a flow on one document: the steps are edited here, and each shows what it makes."""

from fastapi import Request
from fastapi.responses import Response

from holdfast.core.errors import NotFoundError
from holdfast.web import rendering
from holdfast.web.documents import PathDocument
from holdfast.web.page_access import Services

router = rendering.router()

# What somebody who has no flow yet begins with: what is indexed without one, and a paid step.
STARTER = """flow: {name}
version: 1
steps:
  - split: {{size: 256}}
  - enrich: {{name: gist, max_tokens: 60, prompt: "In one sentence: what does this passage settle?"}}
  - embed: {{text: "{{gist}}\\n{{text}}"}}
  - publish: {{search: [text, gist], fields: [gist]}}
"""


@router.get("/documents/{name}/dry-run")
def dry_run(request: Request, services: Services, who: rendering.Who, document: PathDocument) -> Response:
    """Show the steps that would be tried: those of the collection's flow, or a beginning."""
    collection = services.collections.get(who.tenant, document.collection)
    chosen = str(collection.options.get("flow") or "")
    try:
        stored = services.flows.get(who.tenant, chosen) if chosen else None
    except NotFoundError:
        stored = None
    return rendering.page(
        request,
        who,
        "flow_dry_run.html",
        f"Dry run on {document.title}",
        collection=collection,
        document=document,
        chosen=chosen,
        source=STARTER.format(name=collection.id) if stored is None else stored.source,
        files={} if stored is None else dict(stored.files),
    )
