"""The sweep: the duties that recover work left behind.

Every worker sweeps; each turn of a duty is won by compare-and-set, so there is no single scheduler to lose. A
round finds in one statement which duties are due and have work, and runs only those, so an idle installation
stays quiet.

Duties are independent: each has a time limit, which the database enforces, and its errors are recorded for
people to see (`holdfast status`) and delay no other duty. None waits long for a row: a session left in a
transaction may lock it for ever, and a sweeper waiting for it would never get to the duty that ends such
sessions (`store.base.stalled_sessions`).
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import ColumnElement

from holdfast.core import decide, isolation
from holdfast.core.errors import HoldfastError, StoreTimeoutError, StoreUnavailableError
from holdfast.core.ports import Host
from holdfast.core.states import LANE_RANK
from holdfast.engine import wakeups
from holdfast.engine.duty_threads import DutyThreads
from holdfast.leases.base import Leases
from holdfast.store.base import stalled_sessions, time_limits
from holdfast.store.base.database import Database
from holdfast.store.money import budgets, orders, relays
from holdfast.store.protocol import carriers, duties, duty_schedule, losses, prune
from holdfast.store.protocol.duty_schedule import Pulse, Turn

SESSIONS, RELAYS, ORDERS, LEASES, WAITS = "sessions", "relays", "orders", "leases", "waits"
DEATHS, CARRIERS = "deaths", "carriers"
WAKE_UPS, LOOK_AGAIN = "wake-ups", "look-again"
STRANDED, BUDGETS, GENERATIONS, HISTORY = "stranded", "budgets", "generations", "history"
PRUNE_BATCH = 2000
# Seconds that a duty waits for a row. Working transactions hold one for a fraction of a second.
ROW_WAIT = 3.0
# Seconds for one turn of a duty, of an urgent one, and for the check of what is due.
TIME_LIMIT, URGENT_LIMIT, PULSE_LIMIT = 30.0, 10.0, 10.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SweepRules:
    """Intervals and limits of the sweep."""

    interval: float = 2.0
    tidy_every: float = 30.0
    history_every: float = 3600.0
    attempt_cap: int = 3
    loss_cap: int = 20
    history_retention: float | None = None

    @property
    def caps(self) -> decide.Caps:
        """How often a task may lose its holder."""
        return decide.Caps(self.attempt_cap, self.loss_cap)


@dataclass(frozen=True, slots=True)
class Duty:
    """One thing that the sweep does, at an interval; `run` returns how much it repaired.

    A turn has `limit` seconds. `waiting`, if given, is the condition for having work: while it is false, a
    duty that is due gets no turn.
    """

    name: str
    every: float
    run: Callable[[], int]
    limit: float = TIME_LIMIT
    waiting: ColumnElement[bool] | None = None


@dataclass(frozen=True, slots=True)
class Swept:
    """What a round repaired; `failed` are duties that did not complete."""

    won: tuple[str, ...] = ()
    due: dict[str, int] = field(default_factory=dict)
    orders: int = 0
    mended: int = 0
    other: dict[str, int] = field(default_factory=dict)
    failed: tuple[str, ...] = ()


class Sweeper:
    """One sweeper of possibly many. With `apart`, slow duties run there, not in the round."""

    def __init__(
        self,
        db: Database,
        host: Host,
        leases: Leases,
        sender: wakeups.Sender,
        rules: SweepRules,
        duties_beside: Sequence[Duty] = (),
        judged: orders.OrderRules | None = None,
        *,
        goes_on: Callable[[str], bool],
    ) -> None:
        self._goes_on = goes_on
        self._judged = judged or orders.OrderRules(host.has_died, ttl=leases.terms.ttl)
        self._db = db
        self._host = host
        self._leases = leases
        self._sender = sender
        self._rules = rules
        self._expired_up_to = duties.ExpiryCursor()
        self._grace = False
        self._relays_grace = False
        self._due: Counter[str] = Counter()
        self._urgent = self._must_not_wait()
        self._others = (*self._tidying(), *duties_beside)
        self._pulse = duty_schedule.pulse_of(
            {duty.name: duty.waiting for duty in self.duties if duty.waiting is not None}
        )
        self._enrolled = False
        self.apart: DutyThreads | None = None

    @property
    def duties(self) -> tuple[Duty, ...]:
        """Every duty, in the order in which a round runs them."""
        return (*self._urgent, *self._others)

    def _must_not_wait(self) -> tuple[Duty, ...]:
        every, limit = self._rules.interval, URGENT_LIMIT
        lanes = list(LANE_RANK)
        return (
            Duty(SESSIONS, every, self._end_sessions, limit, stalled_sessions.waiting(self._db)),
            Duty(RELAYS, every, self._bury_relays, limit, relays.HAS_SILENT),
            Duty(
                ORDERS,
                every,
                lambda: orders.recover_forgotten(self._db, self._judged),
                limit,
                duties.HAS_FORGOTTEN_ORDERS,
            ),
            Duty(DEATHS, every, self._expire_dead, limit, duties.HAS_RUNNING),
            Duty(LEASES, every, self._expire, limit, duties.HAS_EXPIRED),
            Duty(WAITS, every, lambda: self._wake(duties.fall_due(self._db)), limit, duties.HAS_FALLEN_DUE),
            Duty(
                WAKE_UPS,
                every,
                lambda: self._wake(duties.forgotten(self._db, lanes, wakeups.MOST_AT_ONCE)),
                limit,
                duties.HAS_QUEUED,
            ),
            Duty(LOOK_AGAIN, every, self._look_again, limit, duties.HAS_TO_LOOK_AGAIN),
        )

    def _tidying(self) -> tuple[Duty, ...]:
        every, retention = self._rules.tidy_every, self._rules.history_retention
        tidying = (
            Duty(STRANDED, every, lambda: duties.mend_stranded(self._db, self._goes_on)),
            Duty(CARRIERS, every, lambda: carriers.forget(self._db) + relays.forget(self._db)),
            Duty(BUDGETS, every, lambda: budgets.recompute(self._db)),
            Duty(GENERATIONS, every, lambda: prune.prune_generations(self._db, PRUNE_BATCH)),
        )
        if retention is None:
            return tidying
        pruning = partial(prune.prune_history, self._db, retention, PRUNE_BATCH)
        return (*tidying, Duty(HISTORY, self._rules.history_every, pruning))

    def sweep(self) -> Swept:
        """One round: whatever was due, not won by another sweeper and not locked by others has been done.

        Duties that run apart have been started. StoreUnavailableError if the database does not respond.
        """
        if not self._enrolled:
            duty_schedule.enrol(self._db, {duty.name: duty.every for duty in self.duties})
            self._enrolled = True
        with time_limits.time_limit(PULSE_LIMIT):
            pulses = duty_schedule.pulse(self._db, self._pulse)
            if duty_schedule.was_set_back(pulses):
                log.warning("the clock of the database was set back; duties and leases were rescheduled")
                duty_schedule.time_anew(self._db, self._leases.terms.ttl)
                pulses = duty_schedule.pulse(self._db, self._pulse)
        self._due.clear()
        outcomes: dict[str, Outcome] = {}
        for duty in self.duties:
            pulse = pulses.get(duty.name)
            if pulse is None or not pulse.is_due or not pulse.has_work:
                continue
            if self.apart is not None and duty in self._others:
                self.apart.submit(duty.name, duty.limit, partial(self._take_turn, duty, pulse))
            elif (outcome := self._take_turn(duty, pulse)) is not None:
                outcomes[duty.name] = outcome
        self._note_rest(pulses)
        done = {name: outcome.done for name, outcome in outcomes.items()}
        return Swept(
            tuple(done),
            dict(self._due),
            done.get(ORDERS, 0),
            done.get(STRANDED, 0),
            {duty.name: done[duty.name] for duty in self._others if duty.name in done},
            tuple(name for name, outcome in outcomes.items() if outcome.error),
        )

    def _take_turn(self, duty: Duty, pulse: Pulse) -> "Outcome | None":
        """The outcome of the duty; None if another sweeper has its turn. Errors are recorded."""
        with time_limits.waiting_for_rows(ROW_WAIT):
            if (won := self._win(duty)) is None:
                return None
            self._grace = won.grace_until > won.now if duty.name == LEASES else self._grace
            if duty.name == RELAYS:
                self._relays_grace = won.grace_until > won.now
            outcome = self._tried(duty)
            # If the database does not respond, the round ends at its next statement.
            with suppress(StoreUnavailableError):
                if outcome.error:
                    duty_schedule.note_failure(self._db, duty.name, pulse.failures + 1, outcome.error)
                elif pulse.failures or pulse.silent > min(duty.every, duty_schedule.NOTE_EVERY):
                    duty_schedule.note_success(self._db, [duty.name])
        return outcome

    def _tried(self, duty: Duty) -> "Outcome":
        try:
            with time_limits.time_limit(duty.limit):
                return Outcome(duty.run())
        except isolation.SomeFailedError as error:
            log.warning("%s: %s", duty.name, error.message)
            return Outcome(error.done, error.message)
        except StoreTimeoutError as error:
            log.warning("%s took longer than its %g s: %s", duty.name, duty.limit, error.message)
            return Outcome(0, f"it took longer than {duty.limit:g} s")
        except HoldfastError as error:
            log.warning("%s is left for the next turn: %s", duty.name, error.message)
            return Outcome(0, error.message)
        except Exception as error:  # one failing duty never blocks the others; it is recorded
            log.exception("%s failed; it is retried at its next turn", duty.name)
            return Outcome(0, isolation.explain(error))

    def overran(self, name: str, seconds: float) -> None:
        """The duty, which runs apart, is recorded as overdue and still running."""
        pulses = duty_schedule.pulse(self._db, self._pulse)
        failures = pulses[name].failures + 1 if name in pulses else 1
        duty_schedule.note_failure(self._db, name, failures, f"it has not ended after {seconds:g} s")

    def _note_rest(self, pulses: Mapping[str, Pulse]) -> None:
        """Duties that are due and have no work have succeeded; this is recorded from time to time."""
        resting = [
            name
            for name, pulse in pulses.items()
            if pulse.is_due
            and not pulse.has_work
            and (pulse.failures or pulse.silent > duty_schedule.NOTE_EVERY)
        ]
        if resting:
            duty_schedule.note_success(self._db, resting)

    def _win(self, duty: Duty) -> Turn | None:
        terms = self._leases.terms
        return duty_schedule.win(
            self._db,
            duty.name,
            # Slightly less than the interval of the sweepers, so that a turn is not narrowly missed.
            every=duty.every * 0.9,
            grace_after=terms.renew_every,
            grace=terms.ttl,
            # Only an observed outage gives grace, and only to leases that it kept from being renewed: after a
            # night without workers, leases are simply dead.
            away=lambda gap: self._db.was_away(min(gap, terms.ttl)),
        )

    def _wake(self, counts: Mapping[str, int]) -> int:
        """As many wake-ups as tasks are due, except for those already sent in this round."""
        missing = Counter(counts) - self._due
        wakeups.wake_lanes(self._sender, missing)
        self._due += missing
        return missing.total()

    def _end_sessions(self) -> int:
        if ended := stalled_sessions.end(self._db):
            log.warning("%s database sessions left waiting in a transaction were ended", ended)
        return ended

    def _bury_relays(self) -> int:
        """What a buried relay carried is recovered at once: nobody else will end it."""
        grace = self._relays_grace or self._db.was_away(self._leases.terms.ttl)
        buried = relays.bury(self._db, self._host.lock_is_free, grace=grace)
        for relay_id in buried:
            log.warning("relay %s is gone; what it carried is in doubt", relay_id)
            for order_id in relays.carried_by(self._db, relay_id):
                orders.recover(self._db, order_id, self._judged)
        return len(buried)

    def _expire_dead(self) -> int:
        """No grace here: a dead process renews nothing, however long one waits."""
        return self._wake(losses.expire_dead(self._db, self._host.has_died, self._rules.caps))

    def _expire(self) -> int:
        if self._grace:
            return 0
        alive = None if self._leases.kept_in_database else self._leases.alive
        cap = self._rules.loss_cap
        return self._wake(duties.expire(self._db, cap=cap, alive=alive, cursor=self._expired_up_to))

    def _look_again(self) -> int:
        tasks = duties.look_again(self._db)
        wakeups.wake_tasks(self._sender, tasks)
        return len(tasks)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one turn of a duty; `error` says what went wrong, if anything did."""

    done: int
    error: str = ""
