"""The sweep's duties, and the policies for leases, payments and abandoning work."""

from decimal import Decimal

from holdfast.core import decide
from holdfast.documents.blobs import Blobs
from holdfast.engine.engine import EngineDependencies
from holdfast.engine.sweep import Duty, SweepRules
from holdfast.leases.base import Leases, LeaseTerms
from holdfast.leases.sql import SqlLeases
from holdfast.ledger import prices
from holdfast.ledger.exchanges import Policy
from holdfast.service import maintenance
from holdfast.service.actions import Visits
from holdfast.settings import Settings
from holdfast.store.base.database import Database
from holdfast.store.follow_ups import actions
from holdfast.vectors import pgvector_sync

DAY = 86_400.0
DRIFT_EVERY = 60.0
SHELF_EVERY = 3600.0
VECTORS_EVERY = 15.0
VISITS_EVERY = 3.0
ROUNDS_EVERY = 3.0
LOOKS_EVERY = 5.0
KEEPS_EVERY = 3.0
# The holder considers a lease expired this share earlier than its keeper: 2 s of 12, 10 s of 120.
MARGINS = {"sql": 1 / 6, "redis": 1 / 12}


def duties(
    settings: Settings,
    db: Database,
    shelf: Blobs,
    parts: EngineDependencies,
    vectors: pgvector_sync.Filling | None,
) -> tuple[Duty, ...]:
    """The sweep's additional duties."""
    drift = maintenance.Drift(db, parts.host, parts.sender, patience_of(settings))
    duties = (
        Duty("drift", DRIFT_EVERY, drift),
        Duty("shelf", SHELF_EVERY, maintenance.Shelf(db, shelf)),
        Duty("visits", VISITS_EVERY, Visits(db), waiting=actions.HAS_VISITS),
    )
    return duties if vectors is None else (*duties, Duty("vectors", VECTORS_EVERY, vectors))


def filling_of(settings: Settings, db: Database) -> pgvector_sync.Filling | None:
    """What fills pgvector's tables; None if vectors are compared in memory."""
    if not db.postgresql or settings.vector_index == "exact":
        return None
    return pgvector_sync.Filling(db, large=pgvector_sync.LARGE if settings.vector_index == "auto" else 0)


def patience_of(settings: Settings) -> decide.SilenceLimits:
    """After how long a run counts as stuck."""
    return decide.SilenceLimits(queued=settings.queued_stuck_after, running=settings.running_stuck_after)


def rules(settings: Settings) -> SweepRules:
    """How often the sweep runs, and what it abandons and prunes."""
    days = settings.history_retention
    return SweepRules(
        interval=settings.sweep_interval,
        attempt_cap=settings.attempt_cap,
        loss_cap=settings.loss_cap,
        history_retention=None if days is None else days * DAY,
    )


def leases(settings: Settings, watch: Database) -> Leases:
    """The lease backend and its terms."""
    margin = settings.lease_ttl * MARGINS[settings.lease_backend]
    terms = LeaseTerms(settings.lease_ttl, settings.lease_renew_every, margin)
    if settings.redis_url is not None and settings.lease_backend == "redis":
        # The client takes a tenth of the start of a command, and few have their leases there.
        from holdfast.leases.redis import RedisLeases  # noqa: PLC0415

        return RedisLeases(settings.redis_url.get_secret_value(), terms)
    return SqlLeases(watch, terms)


def policy(settings: Settings) -> Policy:
    """How orders are paid, and how orders in doubt are handled."""
    return Policy(
        concurrency=settings.pay_concurrency,
        wait=settings.pay_wait,
        in_doubt=settings.in_doubt,
        park_above=_dollars(settings.park_above),
        max_run_cost=_dollars(settings.max_run_cost),
        cheap=prices.dollars(float(settings.resend_early_below)),
        relay_required=settings.relay == "require",
    )


def _dollars(amount: Decimal | None) -> int | None:
    return None if amount is None else prices.dollars(float(amount))
