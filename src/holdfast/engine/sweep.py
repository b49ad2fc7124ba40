"""The sweep: the duty that finds what was forgotten and puts it right.

Every worker sweeps; each turn is won by compare-and-set, so there is no single scheduler to lose. A round
first glances with one statement and then does only what is needed, so an idle installation stays quiet.

No duty waits long for a row: a session that was left in a transaction may keep it for ever, and whoever
waited for it would not come to the duty that ends such sessions (`store.stalled`).
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from holdfast.core.errors import StoreLockedError
from holdfast.core.ports import Host
from holdfast.core.states import LANE_RANK
from holdfast.engine import wake
from holdfast.leases.base import LeaseBackendError, Leases
from holdfast.store import budgets, dialect, duties, orders, prune, stalled
from holdfast.store.database import Database

URGENT = "urgent"
TIDY = "tidy"
HISTORY = "history"
PRUNE_BATCH = 2000
# Seconds that a duty waits for a row. Who works keeps one for a fraction of a second.
ROW_WAIT = 3.0

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rules:
    """How often, and how patient."""

    interval: float = 2.0
    tidy_every: float = 30.0
    history_every: float = 3600.0
    attempt_cap: int = 3
    history_retention: float | None = None


@dataclass(frozen=True, slots=True)
class Duty:
    """One more thing that the sweep does, every so many seconds; `run` answers how much it put right."""

    name: str
    every: float
    run: Callable[[], int]


@dataclass(frozen=True, slots=True)
class Swept:
    """What a round found and put right."""

    won: tuple[str, ...] = ()
    due: dict[str, int] = field(default_factory=dict)
    orders: int = 0
    mended: int = 0
    other: dict[str, int] = field(default_factory=dict)


class Sweeper:
    """One sweeper of possibly many."""

    def __init__(
        self,
        db: Database,
        host: Host,
        leases: Leases,
        sender: wake.Sender,
        rules: Rules,
        duties_beside: Sequence[Duty] = (),
    ) -> None:
        self._beside = tuple(duties_beside)
        self._names = [URGENT, TIDY, HISTORY, *(duty.name for duty in self._beside)]
        self._db = db
        self._host = host
        self._leases = leases
        self._sender = sender
        self._rules = rules
        self._enrolled = False
        self._expired_up_to = duties.ExpiryCursor()

    def sweep(self) -> Swept:
        """One round: whatever was due, not won by another sweeper and not kept by others has been done."""
        with dialect.waiting_for_rows(ROW_WAIT):
            return self._round()

    def _round(self) -> Swept:
        if not self._enrolled:
            duties.enrol(self._db, self._names)
            self._enrolled = True
        won = []
        due: dict[str, int] = {}
        recovered = mended = 0
        waiting = duties.due(self._db, self._names)
        if URGENT in waiting and (turn := self._win(URGENT, self._rules.interval)) is not None:
            won.append(URGENT)
            due, recovered = self._urgent(turn)
        if TIDY in waiting and self._win(TIDY, self._rules.tidy_every) is not None:
            won.append(TIDY)
            mended = self._tidy()
        if HISTORY in waiting and self._win(HISTORY, self._rules.history_every) is not None:
            won.append(HISTORY)
            if (retention := self._rules.history_retention) is not None:
                _unless_kept(HISTORY, lambda: prune.prune_history(self._db, retention, PRUNE_BATCH), 0)
        other = {}
        for duty in self._beside:
            if duty.name in waiting and self._win(duty.name, duty.every) is not None:
                won.append(duty.name)
                other[duty.name] = _unless_kept(duty.name, duty.run, 0)
        return Swept(tuple(won), due, recovered, mended, other)

    def _win(self, name: str, every: float) -> duties.Turn | None:
        terms = self._leases.terms
        # Only an outage that was seen gives grace: after a night without workers, leases are plainly dead.
        rules = {"grace_after": terms.renew_every, "grace": terms.ttl}
        # Slightly less than the pace of the sweepers, so that a turn is not missed by a hair.
        return duties.win(self._db, name, every=every * 0.9, away=self._db.was_away, **rules)

    def _urgent(self, turn: duties.Turn) -> tuple[dict[str, int], int]:
        if ended := stalled.end(self._db):
            log.warning("%s sessions of the database, left waiting in a transaction, were ended", ended)
        glance = duties.glance(self._db, wake.MOST_AT_ONCE)
        recovered = 0
        if glance.orders:
            recovered = _unless_kept("orders", lambda: orders.recover_forgotten(self._db), 0)
        if glance.expired and turn.grace_until <= turn.now:
            _unless_kept("leases", self._expire, None)
        if glance.fallen_due:
            _unless_kept("waits", lambda: len(duties.fall_due(self._db)), 0)
        changed = glance.expired or glance.fallen_due
        due = duties.forgotten(self._db, list(LANE_RANK), wake.MOST_AT_ONCE) if changed else glance.queued
        wake.wake_lanes(self._sender, due)
        if glance.look_again:
            wake.wake_tasks(self._sender, duties.look_again(self._db))
        return due, recovered

    def _expire(self) -> None:
        alive = None if self._leases.kept_in_database else self._leases.alive
        try:
            duties.expire(self._db, cap=self._rules.attempt_cap, alive=alive, cursor=self._expired_up_to)
        except LeaseBackendError as error:
            # Who is alive cannot be told, so nobody is called dead; the other duties go on.
            log.warning("no lease was looked at: %s", error.message)

    def _tidy(self) -> int:
        mended = _unless_kept("stranded", lambda: duties.mend_stranded(self._db), 0)
        _unless_kept("budgets", lambda: budgets.recompute(self._db), 0)
        _unless_kept("generations", lambda: prune.prune_generations(self._db, PRUNE_BATCH), 0)
        return mended


def _unless_kept(what: str, do: Callable[[], T], otherwise: T) -> T:
    """What came of it; `otherwise`, when somebody keeps a row that it needs: the next turn tries again."""
    try:
        return do()
    except StoreLockedError as error:
        log.warning("%s are left for the next turn: %s", what, error.message)
        return otherwise
