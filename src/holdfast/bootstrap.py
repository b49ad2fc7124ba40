"""The composition root: `Settings` in, a wired `Runtime` out. Nothing below here reads settings.

`open_runtime` says what to run when the database is not ready; it never migrates by itself, for two releases
may be side by side and only a person knows which one is to win.
"""

import contextlib
import functools
import gc
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import urlsplit

from sqlalchemy import exc

from holdfast.core import decide
from holdfast.core.errors import BadRequestError, SchemaError, StoreUnavailableError
from holdfast.core.ports import Host
from holdfast.documents import blobs_s3
from holdfast.documents.blobs import Blobs, LocalBlobs
from holdfast.documents.fetch import FetchLimits
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.records import MIB, Limits
from holdfast.engine import happenings, wake
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.kinds import Kind, Registry, Supplies
from holdfast.engine.sweep import Duty, Rules
from holdfast.engine.telling import Telling
from holdfast.kinds import actions, export, extract, import_, index, qa, webhook
from holdfast.leases.base import Leases, Terms
from holdfast.leases.redis import RedisLeases
from holdfast.leases.sql import SqlLeases
from holdfast.ledger import prices
from holdfast.ledger.pay import Policy
from holdfast.ledger.traced import TracedProvider
from holdfast.providers import local, local_llm, openai
from holdfast.providers.base import Provider
from holdfast.service import upkeep
from holdfast.service.actions import Visits
from holdfast.service.bundles import Bundles
from holdfast.service.estimating import Estimating, Outlook
from holdfast.service.jobs import Jobs, model_of
from holdfast.service.library import Library
from holdfast.service.searching import Searching
from holdfast.settings import Settings
from holdfast.store import deliveries, dialect, migrate
from holdfast.store.database import Database
from holdfast.telemetry import traces
from holdfast.vectors import filling
from holdfast.vectors.exact import ExactIndex
from holdfast.vectors.pgvector import PgvectorIndex

T = TypeVar("T")

OPENAI_ADDRESS = "https://api.openai.com/v1"
DEFAULT_MODELS = {"local": local.MODEL, "openai": "text-embedding-3-small"}
DEFAULT_LLM_MODELS = {"local": local_llm.MODEL, "openai": "gpt-4o-mini"}
DAY = 86_400.0
# New objects before a look for garbage in cycles, and how many looks before older ones are included.
GARBAGE = (10_000, 20, 20)
DRIFT_EVERY = 60.0
SHELF_EVERY = 3600.0
VECTORS_EVERY = 15.0
VISITS_EVERY = 3.0
ROUNDS_EVERY = 3.0
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
# A worker holds two connections; its watchdog one of its own, so that no work delays a renewal.
WORKER_CONNECTIONS = 2
# A worker would rather wait out a restart of the database than hand its work back.
PATIENCE = 20.0
# How much sooner than the keeper its holder stops believing in a lease: 2 s of 12, 10 s of 120.
MARGINS = {"sql": 1 / 6, "redis": 1 / 12}


@dataclass(frozen=True, slots=True)
class Runtime:
    """Everything that a process of Holdfast is made of."""

    settings: Settings
    db: Database
    watch: Database
    engine: Engine
    providers: Mapping[str, Provider]
    supplies: Supplies
    shelf: Blobs
    parser: Parser
    vectors: filling.Filling | None = None

    def close(self) -> None:
        """Every connection of this runtime is closed; the engine has stopped renewing leases."""
        self.engine.watchdog.stop()
        if self.vectors is not None:
            self.vectors.close()
        self.parser.close()
        self.shelf.close()
        for provider in self.providers.values():
            provider.close()
        self.watch.close()
        self.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_runtime(
    settings: Settings,
    kinds: Sequence[Kind] | None = None,
    *,
    sender: wake.Sender | None = None,
    owner: str = "",
    tell: happenings.Tell = happenings.nobody,
    connections: int = WORKER_CONNECTIONS,
    patience: float = PATIENCE,
) -> Runtime:
    """A runtime on a database that is at the revision this code knows, with these kinds or those of KINDS.

    `patience` is for how many seconds a database that is away is waited for. Raises SchemaError, which says
    what to run, or StoreUnavailableError.
    """
    traces.begin(settings.otel_url)
    url = settings.database_url.get_secret_value()
    if (file := sqlite_file(url)) is not None and not file.exists():
        # Connecting would make an empty file; a look must leave nothing behind.
        raise SchemaError(f"there is no database at {file} yet; run: holdfast migrate")
    with contextlib.ExitStack() as undo:
        db = Database(url, pool_size=connections, prepare=settings.database_prepare, patience=patience)
        undo.callback(db.close)
        reached(lambda: migrate.check(db.engine))
        wired = _wired(
            settings,
            db,
            url,
            kinds,
            Parts(sender=sender or wake.Nobody(), owner=owner, tell=Telling(db, tell)),
        )
        undo.pop_all()
    return wired


def settle_down() -> None:
    """What this process has made is not looked through for garbage again; what is new, less often than usual.

    A look through everything stops every thread meanwhile: 170 ms, every ten seconds in an API under load. In
    a worker the looks were a twelfth of the processor time of a small document (one run). What was there
    before a fork also stays shared with the parent.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE)


def migrated(settings: Settings, revision: str = "head") -> str:
    """The database of these settings is at `revision`; answers it. The embedded one is made if need be."""
    url = settings.database_url.get_secret_value()
    if (file := sqlite_file(url)) is not None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"the folder of the database cannot be made ({error}); set DATA_DIR to one that can"
            raise StoreUnavailableError(message) from error
    return reached(lambda: migrate.upgrade(url, revision))


def reached(ask: Callable[[], T]) -> T:
    """The answer of `ask`; what the database driver raises instead is told in one line."""
    try:
        return ask()
    except exc.DBAPIError as error:
        said = str(error.orig).strip().splitlines() or [type(error.orig).__name__]
        message = (
            f"the database gave no answer ({said[0]}); check that it runs and that DATABASE_URL is right"
        )
        raise StoreUnavailableError(message) from error


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite address; None for any other database."""
    parsed = dialect.parse(url)
    return Path(parsed.database) if parsed.drivername == "sqlite" and parsed.database else None


def load_kinds(settings: Settings, supplies: Supplies) -> tuple[Kind, ...]:
    """The kinds that the setting KINDS names; BadRequestError says which part of it is wrong."""
    found: list[Kind] = []
    for path in settings.kinds:
        module, _, name = path.partition(":")
        try:
            named = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            message = f"KINDS names {path}, which cannot be imported ({error}); it should be like module:name"
            raise BadRequestError(message, code="bad_kind") from error
        made = named(supplies) if callable(named) else named
        kinds = [made] if isinstance(made, Kind) else made
        if not isinstance(kinds, Sequence) or not all(isinstance(each, Kind) for each in kinds):
            message = f"KINDS names {path}, which is no Kind, no list of them and no function that makes one"
            raise BadRequestError(message, code="bad_kind")
        found += kinds
    return tuple(found)


def supplies_of(settings: Settings) -> Supplies:
    """What these settings offer to kinds, without opening anything."""
    return Supplies(
        embedding=_provider_name(settings, "embedding"),
        embedding_model=settings.embedding_model or DEFAULT_MODELS.get(settings.embedding_provider),
        llm=_provider_name(settings, "llm"),
        llm_model=settings.llm_model or DEFAULT_LLM_MODELS.get(settings.llm_provider),
    )


def _wired(settings: Settings, db: Database, url: str, kinds: Sequence[Kind] | None, parts: Parts) -> Runtime:
    supplies = supplies_of(settings)
    shelf, vectors = _shelf(settings), _filling(settings, db)
    parser = Parser(_limits(settings))
    own = index.Index(db, shelf, parser).kind()
    following = _following(settings, db, supplies, parts.host, lambda: searching(runtime))
    asked = [qa.Qa(db).kind(), extract.Extract(db).kind()]
    brought = import_.Import(db, shelf, _choices(settings, supplies), _bundle_limits(settings)).kind()
    asked += [export.Export(db, shelf).kind(), brought]
    known = [own, *following, *asked, *load_kinds(settings, supplies)] if kinds is None else kinds
    # A renewal that is tried for longer than the pace of renewals delays those of every other task.
    watch = Database(url, pool_size=1, prepare=settings.database_prepare, patience=settings.lease_renew_every)
    providers: dict[str, Provider] = {}
    for part, name in (("embedding", supplies.embedding), ("llm", supplies.llm)):
        if name is not None and name not in providers:
            made = _provider(settings, part, name)
            # What is on board is asked directly, and sends nothing.
            providers[name] = TracedProvider(made) if traces.are_on() and name != local.NAME else made
    parts = replace(
        parts,
        kinds=known,
        providers=providers,
        leases=_leases(settings, watch),
        policy=_policy(settings),
        patience=_patience(settings),
        rules=_rules(settings),
        duties=(
            *_duties(settings, db, shelf, parts, vectors),
            Duty("rounds", ROUNDS_EVERY, lambda: library(runtime).rounds()),
        ),
    )
    runtime = Runtime(settings, db, watch, Engine(db, parts), providers, supplies, shelf, parser, vectors)
    return runtime


def _following(
    settings: Settings, db: Database, supplies: Supplies, host: Host, searcher: Callable[[], Searching]
) -> list[Kind]:
    """The kinds of what follows when a document is ready. Whoever searches is made at the first question."""
    rules = webhook.Rules(
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

    follow_up = actions.Action(db, supplies, analysers=settings.analysers, search=search)
    return [follow_up.kind(), webhook.Webhook(db, host, rules, key=webhook_key(settings)).kind()]


def webhook_key(settings: Settings) -> str | None:
    """What the secrets of webhooks are made with, if they are."""
    return None if settings.webhook_key is None else settings.webhook_key.get_secret_value()


def _shelf(settings: Settings) -> Blobs:
    if settings.blobs_url is None:
        return LocalBlobs(settings.data_dir / "blobs")
    keys = settings.blobs_access_key, settings.blobs_secret_key
    given = [None if key is None else key.get_secret_value() for key in keys]
    where = blobs_s3.place(settings.blobs_url, *given)
    return blobs_s3.S3Blobs(where, settings.data_dir / "blob-cache", settings.blobs_cache * MIB)


def _duties(
    settings: Settings, db: Database, shelf: Blobs, parts: Parts, vectors: filling.Filling | None
) -> tuple[Duty, ...]:
    drift = upkeep.Drift(db, parts.host, parts.sender, _patience(settings))
    duties = (
        Duty("drift", DRIFT_EVERY, drift),
        Duty("shelf", SHELF_EVERY, upkeep.Shelf(db, shelf)),
        Duty("visits", VISITS_EVERY, Visits(db)),
    )
    return duties if vectors is None else (*duties, Duty("vectors", VECTORS_EVERY, vectors))


def _filling(settings: Settings, db: Database) -> filling.Filling | None:
    if not db.postgresql or settings.vector_index == "exact":
        return None
    return filling.Filling(db, large=filling.LARGE if settings.vector_index == "auto" else 0)


def _patience(settings: Settings) -> decide.Patience:
    return decide.Patience(queued=settings.queued_stuck_after, running=settings.running_stuck_after)


def _limits(settings: Settings) -> Limits:
    return Limits(
        seconds=settings.parse_seconds, memory=settings.parse_memory * MIB, bytes=settings.most_bytes
    )


def pipelines_of(settings: Settings) -> tuple[str, ...]:
    """Every pipeline that a worker with these settings can carry out, without opening anything."""
    own = [Kind(name, run=lambda _work: None, version=version) for name, version in OWN_KINDS]
    return tuple(Registry([*own, *load_kinds(settings, supplies_of(settings))]).pipelines)


def searching(runtime: Runtime) -> Searching:
    """Search over the documents of this installation."""
    inside = runtime.db.postgresql and runtime.settings.vector_index != "exact"
    vectors = PgvectorIndex(ExactIndex()) if inside else ExactIndex()
    return Searching(runtime.engine, library(runtime), vectors)


def jobs(runtime: Runtime) -> Jobs:
    """The jobs of this installation. The runtime must know their kinds."""
    return Jobs(runtime.engine, model_of(runtime.supplies))


def bundles(runtime: Runtime) -> Bundles:
    """Exports and imports of this installation. The runtime must know their kinds."""
    limits = _bundle_limits(runtime.settings)
    return Bundles(runtime.engine, runtime.shelf, library(runtime), limits)


def _bundle_limits(settings: Settings) -> import_.Limits:
    return import_.Limits(settings.most_bytes, 4 * settings.most_import)


def library(runtime: Runtime) -> Library:
    """The documents of this installation. The runtime must know the kind `index`."""
    most, private = runtime.settings.most_bytes, runtime.settings.fetch_private
    fetching = FetchLimits(bytes=most, allow_private=private)
    chosen = _choices(runtime.settings, runtime.supplies)
    return Library(runtime.engine, runtime.shelf, chosen, fetching=fetching, most_bytes=most)


def estimating(runtime: Runtime) -> Estimating:
    """Estimates of what work would cost. The runtime must know the kind `index`."""
    return Estimating(
        runtime.engine,
        library(runtime),
        _choices(runtime.settings, runtime.supplies),
        runtime.shelf,
        runtime.parser,
        OUTLOOKS,
        model_of(runtime.supplies),
    )


def _choices(settings: Settings, supplies: Supplies) -> index.Choices:
    """How documents are indexed by these settings, where a collection does not say otherwise."""
    return index.Choices(
        chunk_size=settings.chunk_size,
        slice_pages=settings.slice_pages,
        slice_rows=settings.slice_rows,
        provider=supplies.embedding or local.NAME,
        model=supplies.embedding_model or local.MODEL,
    )


def _leases(settings: Settings, watch: Database) -> Leases:
    margin = settings.lease_ttl * MARGINS[settings.lease_backend]
    terms = Terms(settings.lease_ttl, settings.lease_renew_every, margin)
    if settings.redis_url is not None and settings.lease_backend == "redis":
        return RedisLeases(settings.redis_url.get_secret_value(), terms)
    return SqlLeases(watch, terms)


def _policy(settings: Settings) -> Policy:
    park_above = None if settings.park_above is None else prices.dollars(float(settings.park_above))
    return Policy(
        concurrency=settings.pay_concurrency,
        wait=settings.pay_wait,
        in_doubt=settings.in_doubt,
        park_above=park_above,
    )


def _rules(settings: Settings) -> Rules:
    kept = settings.history_retention
    return Rules(
        interval=settings.sweep_interval,
        attempt_cap=settings.attempt_cap,
        history_retention=None if kept is None else kept * DAY,
    )


def _provider_name(settings: Settings, part: str) -> str | None:
    """The name of the provider for `part` (`embedding`, `llm`); None if it is not set up.

    A server other than the provider's own is named with its host: the name is part of the content key, and
    the answers of two servers must not be taken for each other's.
    """
    provider: str | None = getattr(settings, f"{part}_provider")
    if (part, provider) == ("llm", "local"):
        return local_llm.NAME  # of its own: both parts are `local` by default, and are two providers
    if provider != "openai":
        return provider
    address = getattr(settings, f"{part}_base_url")
    return "openai" if address is None else f"openai@{urlsplit(address).netloc}"


def _made_provider(part: str, path: str) -> Provider:
    """A provider made by the user's own function, which is given the name that it must have."""
    module, _, name = path.partition(":")
    try:
        made: Provider = getattr(importlib.import_module(module), name)(path)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        message = f"the {part} provider {path} cannot be made ({error}); it should be a function of one name"
        raise BadRequestError(message, code="bad_provider") from error
    if made.name != path:
        raise BadRequestError(f"the {part} provider {path} calls itself {made.name!r}", code="bad_provider")
    return made


def _provider(settings: Settings, part: str, name: str) -> Provider:
    if name == local.NAME:
        return local.LocalProvider()
    if name == local_llm.NAME:
        return local_llm.LocalLanguageProvider()
    if ":" in getattr(settings, f"{part}_provider"):
        return _made_provider(part, name)
    address = getattr(settings, f"{part}_base_url")
    key = getattr(settings, f"{part}_api_key")
    retention = getattr(settings, f"{part}_key_retention")
    profile = replace(
        openai.OPENAI,
        name=name,
        honours_keys=retention > 0,
        key_retention=retention,
        deadline=settings.order_deadline,
    )
    secret = key.get_secret_value() if key is not None else ""
    try:
        return openai.OpenAIProvider(address or OPENAI_ADDRESS, secret, profile)
    except ValueError as error:
        message = f"the {part} provider cannot be set up: {error}"
        raise BadRequestError(message, code="bad_provider") from error
