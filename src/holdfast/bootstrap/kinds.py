"""The kinds that a process of Holdfast knows: its own, in one list, those that installed packages bring, and
those that the setting KINDS names.

Code of others is loaded from two places alone: packages that somebody installed, by their entry points in the
group `holdfast.kinds`, and modules that somebody named in a setting. A file in the current folder can do
neither (`settings.trust`).
"""

import functools
import importlib
import importlib.metadata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.bootstrap import user_code
from holdfast.bootstrap.providers import document_services, supplies_of
from holdfast.core.errors import BadRequestError
from holdfast.core.ports import Host
from holdfast.documents.blobs import Blobs
from holdfast.documents.parse.parser import Parser
from holdfast.documents.sources import source_types
from holdfast.documents.sources.source import SourceLimits
from holdfast.engine.kinds import Kind, Registry, Supplies
from holdfast.kinds import (
    actions,
    export,
    extract,
    graph,
    import_,
    index,
    look,
    mindmap,
    parameters,
    qa,
    raptor,
    webhook,
)
from holdfast.kinds.flows.function_process import MIB, FunctionLimits, FunctionProcesses
from holdfast.kinds.flows.functions import StepFunctions
from holdfast.kinds.flows.index_steps import FlowSetup
from holdfast.providers import local
from holdfast.service.search import Searching
from holdfast.settings import Settings
from holdfast.store.base.database import Database
from holdfast.store.library.quotas import Quota

GROUP = "holdfast.kinds"


@dataclass(frozen=True, slots=True)
class KindParts:
    """What our kinds are made of. Who searches and the registry are asked for when work begins."""

    settings: Settings
    supplies: Supplies
    db: Database
    blobs: Blobs
    parser: Parser
    functions: StepFunctions
    host: Host
    searcher: Callable[[], Searching]
    registry: Callable[[], Registry]


def _action(parts: KindParts) -> Kind:
    searching = functools.cache(parts.searcher)

    def search(tenant: str, collection: str, question: str, count: int) -> list[dict[str, object]]:
        answer = searching().search(tenant, collection, question, k=count)
        return [
            {"document": hit.document_id, "title": hit.title, "page": hit.page, "text": hit.text}
            for hit in answer.hits
        ]

    analysers = parts.settings.analysers
    return actions.ActionRunner(
        parts.db, parts.supplies, analysers=analysers, search=search, registry=parts.registry
    ).kind()


def _webhook(parts: KindParts) -> Kind:
    rules = webhook.DeliveryRules(
        seconds=parts.settings.webhook_seconds,
        give_up_after=parts.settings.webhook_give_up_after,
        allow_private=parts.settings.webhook_private,
    )
    return webhook.Webhook(parts.db, parts.host, rules, key=webhook_key(parts.settings)).kind()


def _import(parts: KindParts) -> Kind:
    settings = parts.settings
    chosen, limits = choices(settings, parts.supplies), bundle_limits(settings)
    return import_.Import(parts.db, parts.blobs, chosen, limits, quota(settings)).kind()


def _look(parts: KindParts) -> Kind:
    settings = parts.settings
    chosen = choices(settings, parts.supplies)
    limits = source_limits(settings)
    return look.Looks(parts.db, parts.blobs, chosen, limits, source_types.open_source, quota(settings)).kind()


def _index(parts: KindParts) -> Kind:
    settings = parts.settings
    setup = FlowSetup(parts.supplies, parts.functions, settings.parsers)
    services = document_services(settings)
    return index.Index(parts.db, parts.blobs, parts.parser, quota(settings), services, setup).kind()


BUILT_IN: tuple[Callable[[KindParts], Kind], ...] = (
    _index,
    _action,
    _webhook,
    lambda parts: qa.Qa(parts.db).kind(),
    lambda parts: extract.Extract(parts.db).kind(),
    lambda parts: raptor.Raptor(parts.db).kind(),
    lambda parts: graph.Graph(parts.db).kind(),
    lambda parts: mindmap.Mindmap(parts.db).kind(),
    lambda parts: export.Export(parts.db, parts.blobs).kind(),
    _import,
    _look,
)


def known_kinds(parts: KindParts) -> list[Kind]:
    """Every kind of ours and every kind of the user's, ready to run."""
    return [*(build(parts) for build in BUILT_IN), *load_kinds(parts.settings, parts.supplies)]


def described(settings: Settings) -> Registry:
    """Every kind that a process with these settings knows, to be looked at: none of them can run."""
    user_code.make_importable(settings)
    return Registry(known_kinds(_unopened(settings, supplies_of(settings))))


def _unopened(settings: Settings, supplies: Supplies) -> KindParts:
    """Parts that are enough to describe a kind."""
    nothing: Any = None
    return KindParts(
        settings, supplies, nothing, nothing, nothing, nothing, nothing, lambda: nothing, lambda: nothing
    )


def load_kinds(settings: Settings, supplies: Supplies) -> tuple[Kind, ...]:
    """The kinds of installed packages and of the setting KINDS; BadRequestError says which one is wrong."""
    kinds = [
        kind for name, load in _sources(settings) for kind in _loaded(name, _imported(name, load), supplies)
    ]
    for kind in kinds:
        _check(kind)
    return tuple(kinds)


def _sources(settings: Settings) -> Iterator[tuple[str, Callable[[], object]]]:
    """What names kinds, in words, and how it is loaded. What is named twice is loaded once."""
    named = dict.fromkeys(settings.kinds)
    if settings.installed_kinds:
        for entry in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda entry: entry.value):
            if entry.value.replace(" ", "") not in named:
                package = entry.dist.name if entry.dist is not None else "a package"
                yield f"the installed package {package} names {entry.value}", entry.load
    for path in named:
        yield f"HOLDFAST_KINDS names {path}", functools.partial(_at, path)


def _at(path: str) -> object:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _imported(name: str, load: Callable[[], object]) -> object:
    try:
        return load()
    except (ImportError, AttributeError, ValueError) as error:
        message = f"{name}, which cannot be imported ({error}); it should be like module:name"
        raise BadRequestError(message, code="bad_kind") from error


def _loaded(name: str, source: Any, supplies: Supplies) -> Sequence[Kind]:
    result = source(supplies) if callable(source) else source
    kinds = [result] if isinstance(result, Kind) else result
    if not isinstance(kinds, Sequence) or not all(isinstance(each, Kind) for each in kinds):
        message = f"{name}, which is no Kind, no list of them and no function that makes one"
        raise BadRequestError(message, code="bad_kind")
    return kinds


def _check(kind: Kind) -> None:
    """Return if the kind describes itself in a way that can be shown; otherwise BadRequestError."""
    job = kind.job
    forms = [each.parameters for each in kind.actions]
    for form in (*forms, *((job.parameters, job.result) if job is not None else ())):
        try:
            parameters.check_form(form)
        except BadRequestError as error:
            raise BadRequestError(f"kind {kind.name!r}: {error.message}", code="bad_kind") from error


def pipelines_of(settings: Settings) -> tuple[str, ...]:
    """Every pipeline that a worker with these settings can carry out, without opening anything."""
    return tuple(described(settings).pipelines)


def webhook_key(settings: Settings) -> str | None:
    """What the secrets of webhooks are made with, if they are."""
    return None if settings.webhook_key is None else settings.webhook_key.get_secret_value()


def choices(settings: Settings, supplies: Supplies) -> index.Choices:
    """How documents are indexed by these settings, where a collection does not say otherwise."""
    return index.Choices(
        chunk_size=settings.chunk_size,
        slice_pages=settings.slice_pages,
        slice_rows=settings.slice_rows,
        ocr=settings.ocr,
        ocr_languages=settings.ocr_languages,
        provider=supplies.embedding or local.NAME,
        model=supplies.embedding_model or local.MODEL,
        offers=supplies.embedding_offers,
        own_parsers=settings.parsers,
        llm=(supplies.llm, supplies.llm_model) if supplies.llm and supplies.llm_model else (),
    )


def step_functions(settings: Settings) -> StepFunctions:
    """The functions that flows may call by these settings, and their limits."""
    limits = FunctionLimits(settings.flow_function_seconds, settings.flow_function_memory * MIB)
    return StepFunctions(settings.flow_functions, FunctionProcesses(limits))


def quota(settings: Settings) -> Quota:
    """What a tenant may hold that has no limits of its own."""
    return Quota(settings.quota_documents or None, settings.quota_bytes or None)


def bundle_limits(settings: Settings) -> import_.ImportLimits:
    """How large a bundle may be, unpacked."""
    return import_.ImportLimits(settings.most_bytes, 4 * settings.most_import)


def source_limits(settings: Settings) -> SourceLimits:
    """What one look at a source may take and reach."""
    return SourceLimits(
        items=settings.source_items,
        bytes=settings.most_bytes,
        allow_private=settings.fetch_private,
        folders=settings.source_folders,
        buckets=settings.source_buckets,
    )
