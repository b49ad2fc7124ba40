"""`Settings` in, a wired `Runtime` out.

`open_runtime` says what to run when the database is not ready; it never migrates by itself, for two releases
may be side by side and only a person knows which one is to win.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.bootstrap import blob_stores, data_folder, duties, providers, relays, user_code
from holdfast.bootstrap import kinds as own_kinds
from holdfast.bootstrap.database import reached, sqlite_file
from holdfast.bootstrap.runtime import Runtime
from holdfast.bootstrap.services import AppServices
from holdfast.core.errors import SchemaError
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.pool import Parsers, Shares
from holdfast.documents.parse.records import MIB, ParseLimits
from holdfast.engine import events, wakeups
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.engine.event_tracing import EventTracer
from holdfast.engine.kinds import Kind
from holdfast.engine.sweep import Duty
from holdfast.ledger import watched_provider
from holdfast.settings import Settings
from holdfast.store.base import revisions
from holdfast.store.base.database import Database
from holdfast.store.features import open_database
from holdfast.store.follow_ups import keeps
from holdfast.store.library import bulk_updates, sources
from holdfast.telemetry import traces

# A worker holds two connections; its watchdog one of its own, so that no work delays a renewal.
WORKER_CONNECTIONS = 2
# A worker would rather wait out a restart of the database than hand its work back.
PATIENCE = 20.0
# Pictures are drawn one at a time for a tenant; places for those who wait are the API's (`web.patience`).
THUMBNAIL_SHARES = Shares(parsers=2, tenant=1, waiting=8)


def open_runtime(
    settings: Settings,
    kinds: Sequence[Kind] | None = None,
    *,
    sender: wakeups.Sender | None = None,
    owner: str = "",
    tell: events.Tell = events.nobody,
    connections: int = WORKER_CONNECTIONS,
    patience: float = PATIENCE,
    watched: bool = False,
    tell_orders: Callable[[float], None] | None = None,
) -> Runtime:
    """A runtime on a database that is at the revision this code knows, with these kinds or those of KINDS.

    `patience` is for how many seconds a database that is away is waited for; `watched` and `tell_orders` are
    those of `EngineDependencies`. Raises SchemaError, which says what to run, or StoreUnavailableError.
    """
    traces.begin(settings.otel_url)
    user_code.make_importable(settings)
    url = settings.database
    if (file := sqlite_file(url)) is not None and not file.exists():
        data_folder.refuse_to_leave_behind(settings, file)
        # Connecting would make an empty file; a look must leave nothing behind.
        raise SchemaError(f"there is no database at {file} yet; run: holdfast migrate")
    data_folder.tighten(settings, file)
    with contextlib.ExitStack() as undo:
        db = open_database(url, pool_size=connections, prepare=settings.database_prepare, patience=patience)
        undo.callback(db.close)
        reached(lambda: revisions.check(db.engine))
        wired = _wired(
            settings,
            db,
            url,
            kinds,
            EngineDependencies(
                sender=sender or wakeups.Nobody(),
                owner=owner,
                tell=EventTracer(db, tell),
                watched=watched,
                tell_orders=tell_orders,
            ),
        )
        undo.pop_all()
    return wired


def _wired(
    settings: Settings, db: Database, url: str, kinds: Sequence[Kind] | None, parts: EngineDependencies
) -> Runtime:
    supplies = providers.supplies_of(settings)
    shelf, vectors = blob_stores.blobs_of(settings), duties.filling_of(settings, db)
    parser, functions = Parser(_limits(settings), own=settings.parsers), own_kinds.step_functions(settings)
    if kinds is None:
        kinds = own_kinds.known_kinds(
            own_kinds.KindParts(
                settings,
                supplies,
                db,
                shelf,
                parser,
                functions,
                parts.host,
                searcher=lambda: AppServices(runtime).search,
                registry=lambda: runtime.engine.registry,
            )
        )
    # A renewal that is tried for longer than the pace of renewals delays those of every other task.
    watch = open_database(
        url, pool_size=1, prepare=settings.database_prepare, patience=settings.lease_renew_every
    )
    clients = providers.clients_of(
        settings,
        supplies,
        lambda client: watched_provider.watched(client, db),
        lambda digest: shelf.path(digest).open("rb"),
    )
    parts = replace(
        parts,
        kinds=kinds,
        providers=clients,
        prices=providers.prices_of(settings),
        leases=duties.leases(settings, watch),
        watch=watch,
        relays=relays.client_of(settings),
        policy=duties.policy(settings),
        patience=duties.patience_of(settings),
        rules=duties.rules(settings),
        duties=(
            *duties.duties(settings, db, shelf, parts, vectors),
            Duty(
                "rounds",
                duties.ROUNDS_EVERY,
                lambda: AppServices(runtime).collections.rounds(),  # noqa: PLW0108 - there is no runtime yet
                waiting=bulk_updates.HAS_DUE,
            ),
            Duty(
                "looks",
                duties.LOOKS_EVERY,
                lambda: AppServices(runtime).sources.start_due(),  # noqa: PLW0108 - there is no runtime yet
                waiting=sources.HAS_DUE,
            ),
            Duty(
                "keeps",
                duties.KEEPS_EVERY,
                lambda: AppServices(runtime).keeps.run_due(),  # noqa: PLW0108 - there is no runtime yet
                waiting=keeps.HAS_WORK,
            ),
        ),
    )
    count = settings.estimate_processes
    parsers = Parsers(_limits(settings), Shares(count, max(1, count // 2), count), settings.parsers)
    drawing = Parsers(_limits(settings), THUMBNAIL_SHARES)
    engine = Engine(db, parts)
    runtime = Runtime(
        settings, db, watch, engine, clients, supplies, shelf, parser, parsers, drawing, functions, vectors
    )
    # Also a process that holds no task, as an API does, is known to live while it waits for an answer.
    runtime.engine.carrier.on_first_order = runtime.engine.watchdog.start
    return runtime


def _limits(settings: Settings) -> ParseLimits:
    return ParseLimits(
        seconds=settings.parse_seconds, memory=settings.parse_memory * MIB, bytes=settings.most_bytes
    )
