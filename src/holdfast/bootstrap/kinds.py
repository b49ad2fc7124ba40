"""The kinds that a process of Holdfast knows: its own, in one list, and those of the user."""

import functools
import importlib
from collections.abc import Callable, Sequence

from holdfast.bootstrap import user_code
from holdfast.bootstrap.providers import supplies_of
from holdfast.core.errors import BadRequestError
from holdfast.core.ports import Host
from holdfast.documents.blobs import Blobs
from holdfast.documents.parse.parser import Parser
from holdfast.engine.kinds import Kind, Registry, Supplies
from holdfast.kinds import actions, export, extract, import_, index, qa, webhook
from holdfast.providers import local
from holdfast.service.estimates import Outlook
from holdfast.service.search import Searching
from holdfast.settings import Settings
from holdfast.store.base.database import Database
from holdfast.store.follow_ups import deliveries
from holdfast.store.library.quotas import Quota

OWN_KINDS = (
    (index.NAME, index.VERSION),
    (actions.NAME, actions.VERSION),
    (deliveries.KIND, deliveries.VERSION),
    (qa.NAME, qa.VERSION),
    (extract.NAME, extract.VERSION),
    (export.NAME, export.VERSION),
    (import_.NAME, import_.VERSION),
)
# What can be told of a kind of job before it runs.
OUTLOOKS = {
    qa.NAME: Outlook(qa.checked, qa.foreseen, qa.most_calls),
    extract.NAME: Outlook(extract.checked, extract.foreseen, lambda _params: None),
}


def known_kinds(
    settings: Settings,
    db: Database,
    blobs: Blobs,
    parser: Parser,
    supplies: Supplies,
    host: Host,
    searcher: Callable[[], Searching],
) -> list[Kind]:
    """Every kind of ours and every kind of the user's, ready to run."""
    return [
        index.Index(db, blobs, parser).kind(),
        *_following(settings, db, supplies, host, searcher),
        qa.Qa(db).kind(),
        extract.Extract(db).kind(),
        export.Export(db, blobs).kind(),
        import_.Import(
            db, blobs, choices(settings, supplies), bundle_limits(settings), quota(settings)
        ).kind(),
        *load_kinds(settings, supplies),
    ]


def load_kinds(settings: Settings, supplies: Supplies) -> tuple[Kind, ...]:
    """The kinds that the setting KINDS names; BadRequestError says which part of it is wrong."""
    found: list[Kind] = []
    for path in settings.kinds:
        module, _, name = path.partition(":")
        try:
            named = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            message = (
                f"HOLDFAST_KINDS names {path}, which cannot be imported ({error}); it should be "
                "like module:name"
            )
            raise BadRequestError(message, code="bad_kind") from error
        made = named(supplies) if callable(named) else named
        kinds = [made] if isinstance(made, Kind) else made
        if not isinstance(kinds, Sequence) or not all(isinstance(each, Kind) for each in kinds):
            message = (
                f"HOLDFAST_KINDS names {path}, which is no Kind, no list of them and no function "
                "that makes one"
            )
            raise BadRequestError(message, code="bad_kind")
        found += kinds
    return tuple(found)


def pipelines_of(settings: Settings) -> tuple[str, ...]:
    """Every pipeline that a worker with these settings can carry out, without opening anything."""
    user_code.make_importable(settings)
    own = [Kind(name, run=lambda _work: None, version=version) for name, version in OWN_KINDS]
    return tuple(Registry([*own, *load_kinds(settings, supplies_of(settings))]).pipelines)


def _following(
    settings: Settings, db: Database, supplies: Supplies, host: Host, searcher: Callable[[], Searching]
) -> list[Kind]:
    """The kinds of what follows when a document is ready. Whoever searches is made at the first question."""
    rules = webhook.DeliveryRules(
        seconds=settings.webhook_seconds,
        give_up_after=settings.webhook_give_up_after,
        allow_private=settings.webhook_private,
    )
    once = functools.cache(searcher)

    def search(tenant: str, collection: str, question: str, count: int) -> list[dict[str, object]]:
        found = once().search(tenant, collection, question, k=count)
        return [
            {"document": hit.document_id, "title": hit.title, "page": hit.page, "text": hit.text}
            for hit in found.hits
        ]

    follow_up = actions.ActionRunner(db, supplies, analysers=settings.analysers, search=search)
    return [follow_up.kind(), webhook.Webhook(db, host, rules, key=webhook_key(settings)).kind()]


def webhook_key(settings: Settings) -> str | None:
    """What the secrets of webhooks are made with, if they are."""
    return None if settings.webhook_key is None else settings.webhook_key.get_secret_value()


def choices(settings: Settings, supplies: Supplies) -> index.Choices:
    """How documents are indexed by these settings, where a collection does not say otherwise."""
    return index.Choices(
        chunk_size=settings.chunk_size,
        slice_pages=settings.slice_pages,
        slice_rows=settings.slice_rows,
        provider=supplies.embedding or local.NAME,
        model=supplies.embedding_model or local.MODEL,
        offers=supplies.embedding_offers,
    )


def quota(settings: Settings) -> Quota:
    """What a tenant may hold that has no limits of its own."""
    return Quota(settings.quota_documents or None, settings.quota_bytes or None)


def bundle_limits(settings: Settings) -> import_.ImportLimits:
    """How large a bundle may be, unpacked."""
    return import_.ImportLimits(settings.most_bytes, 4 * settings.most_import)
