"""`holdfast up --sample`: a dozen related documents, and what can be derived from them where that is free."""

from pathlib import Path

from holdfast.bootstrap import AppServices
from holdfast.cli import context, index_command, terminal
from holdfast.core.errors import HoldfastError
from holdfast.kinds import graph, mindmap, raptor
from holdfast.providers import local
from holdfast.service.jobs import JobRequest
from holdfast.service.records import JobQuery
from holdfast.service.requests import RequestContext

FOLDER = Path(__file__).parent / "sample"
COLLECTION = "sample"
TENANT = "default"
KINDS = (raptor.NAME, graph.NAME, mindmap.NAME)


def fill() -> int:
    """The sample is being indexed; its tree, graph and mind map are requested if no model is paid for them.

    With a language model in the settings they would cost something: that is for a person to decide.
    """
    code = index_command.index(
        [FOLDER],
        collection=COLLECTION,
        tenant=TENANT,
        watch=False,
        wait=False,
        prune=False,
        selection=index_command.selection(None, None),
        description=(None, ()),
        password=None,
        max_cost=None,
        external_id=None,
        as_json=False,
    )
    with context.services(None) as services:
        if services.settings.llm_provider == local.NAME == services.settings.embedding_provider:
            for kind in KINDS:
                _request(services, kind)
    return code


def _request(services: AppServices, kind: str) -> None:
    """The job is requested, unless there was one before, or nothing is there to read."""
    query = JobQuery(TENANT, kind=kind, collection=COLLECTION, limit=1)
    if services.jobs.page(query):
        return
    collection = services.collections.get(TENANT, COLLECTION)
    try:
        request = JobRequest(kind, {}, wait_for_ready=True)
        services.jobs.on_collection(RequestContext(TENANT, context.actor()), collection, request)
    except HoldfastError as error:
        message = f"the job {kind} of the sample was not requested: {error.message}"
        terminal.console().print(message, style="care", markup=False)
