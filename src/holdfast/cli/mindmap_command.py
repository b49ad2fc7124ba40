"""`holdfast mindmap`: the topics of a collection or of a document, as text, Markdown, a picture or JSON."""

from holdfast.api.mind_maps import MindMapResponse
from holdfast.bootstrap import AppServices
from holdfast.cli import context, terminal
from holdfast.core.errors import NotFoundError
from holdfast.service import mind_map_forms
from holdfast.service.mind_maps import MindMap

DOCUMENT, COLLECTION = "document:", "collection:"


def mindmap(name: str, *, form: str, tenant: str) -> None:
    """The map is on standard output."""
    with context.services(None) as services:
        mind_map = _map(services, tenant, name)
    if form == "json":
        terminal.show_json(MindMapResponse.of(mind_map).model_dump(mode="json"))
        return
    console = terminal.console()
    if mind_map.generation is None and form == "text":
        console.print("no mind map; make one with: holdfast jobs mindmap")
        return
    written = {
        "text": mind_map_forms.outline,
        "markdown": mind_map_forms.markdown,
        "svg": mind_map_forms.svg,
    }[form](mind_map)
    console.print(written, markup=False, highlight=False, soft_wrap=True, end="")
    if form == "text":
        marks = [
            word for word, is_so in (("stale", mind_map.stale), ("stand-in", mind_map.stand_in)) if is_so
        ]
        if marks:
            console.print(", ".join(marks), style="quiet")


def _map(services: AppServices, tenant: str, name: str) -> MindMap:
    """The map of what is called so: a collection, or else a document."""
    if not name.startswith(DOCUMENT):
        try:
            collection = services.collections.get(tenant, name.removeprefix(COLLECTION))
            return services.mind_maps.of_collection(collection)
        except NotFoundError:
            if name.startswith(COLLECTION):
                raise
    return services.mind_maps.of_document(services.documents.get(tenant, name.removeprefix(DOCUMENT)))
