"""The life of one task: claim → run → stage → finish → publish, or release.

`Executor.run_next` claims the best due task, runs it and ends the claim in exactly one way:

* finished: the slice landed (and perhaps the run was published, or its next phase is to be planned);
* planned: the slices of the run were queued;
* failed: the run ended with a code;
* put back: it must wait, and is due later;
* released: the worker is stopping, or lost trust in its lease;
* overran: past its hard time limit; the task is due again, and that counts as an attempt;
* fenced out: another worker owns it now, and nothing was written.

No other outcome exists; if the process dies instead, the lease expires and the sweep makes the task due.
"""

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from holdfast.core import decide, keys
from holdfast.core.errors import (
    BadRequestError,
    FencedOutError,
    HoldfastError,
    MustWaitError,
    ResultTooLargeError,
    StoreUnavailableError,
    WorkError,
    WorkStopped,
)
from holdfast.core.records import Claim, Fenced, Landed, Outcome, Skipped, Slice
from holdfast.core.states import Lane
from holdfast.core.text import plain
from holdfast.engine import events, wakeups
from holdfast.engine.events import Done, Ending
from holdfast.engine.kinds import Finish, Kind, Registry
from holdfast.engine.watchdog import Watchdog
from holdfast.engine.work import Tools, Work
from holdfast.leases.base import LeaseBackendError, Leases
from holdfast.store.base.database import Tx
from holdfast.store.protocol import claims, losses, tasks

MOST_RESULT = 1024 * 1024
MOST_SLICES = 100_000
# A kind that always plans one more phase would never publish.
MOST_PHASES = 100
MOST_WEIGHT = 1_000_000
# More would make the transaction that finishes a slice long, and it holds the head.
MOST_CHUNKS_AT_END = 200

log = logging.getLogger(__name__)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Taker:
    """Who claims a task, and for how long at first."""

    owner: str
    token: str
    ttl: float
    carrier: str


class Executor:
    """Runs claimed tasks in this process."""

    def __init__(
        self,
        tools: Tools,
        registry: Registry,
        leases: Leases,
        watchdog: Watchdog,
        sender: wakeups.Sender,
        owner: str,
        tell: events.Tell = events.nobody,
        *,
        caps: decide.Caps | None = None,
    ) -> None:
        self._tell = tell
        self._caps = caps or decide.Caps()
        self._tools = tools
        self._registry = registry
        self._leases = leases
        self._watchdog = watchdog
        self._sender = sender
        self._owner = owner

    def run_next(self, lanes: Sequence[str]) -> Done | None:
        """The best due task of `lanes` was run; None if nothing is due or the worker is stopping."""
        if self._tools.draining.is_set():
            return None
        carrier = self._tools.ledger.carrier.known()
        sent_at = self._tools.host.clock()
        claim = claims.claim_best(
            self._tools.db,
            lanes=lanes,
            pipelines=self._registry.pipelines,
            owner=self._owner,
            token=self._tools.host.token(),
            ttl=self._leases.terms.ttl,
            carrier=carrier,
        )
        return None if claim is None else self._carry_out(claim, sent_at)

    def run_named(self, name: int | str, rules: claims.LockHeld) -> Done | Skipped:
        """The task with this id, or the only one of the run with it, was run; or skipped, with the reason."""

        def take(taker: Taker) -> Claim | Skipped:
            return claims.claim_named(
                self._tools.db,
                name,
                pipelines=self._registry.pipelines,
                owner=taker.owner,
                token=taker.token,
                ttl=taker.ttl,
                rules=rules,
                alive=None if self._leases.kept_in_database else self._leases.alive,
                carrier=taker.carrier,
            )

        return self.run_taken(take)

    def run_taken(self, take: Callable[[Taker], Claim | T]) -> Done | T:
        """The task that `take` claims for this process was run; what else it answers is passed on."""
        carrier = self._tools.ledger.carrier.known()
        sent_at = self._tools.host.clock()
        claim = take(Taker(self._owner, self._tools.host.token(), self._leases.terms.ttl, carrier))
        return self._carry_out(claim, sent_at) if isinstance(claim, Claim) else claim

    def _carry_out(self, claim: Claim, sent_at: float) -> Done:
        kind = self._registry.get(claim.kind)
        if kind is None:  # the pipelines of a claim come from the registry
            raise AssertionError(f"claimed a task of the unknown kind {claim.kind}")
        try:
            opened = self._leases.open(claim)
        except LeaseBackendError as error:
            # It waits for the backend: a task queued again at once would be claimed again at once.
            return self._put_back(claim, "leases", self._leases.terms.renew_every, error.message)
        if not opened:
            return self._let_go(claim, "lease_held")
        work = Work(self._tools, claim, kind, sent_at)
        self._watchdog.watch(work)
        self._tell(events.Claimed(claim, work.hard_at))
        try:
            done = self._attempt(work, kind)
        finally:
            self._watchdog.unwatch(work)
            self._close(claim)
        self._tell(done)
        return done

    def _close(self, claim: Claim) -> None:
        try:
            self._leases.close(claim)
        except LeaseBackendError as error:
            log.warning("the lease of task %s stays until it expires: %s", claim.task_id, error.message)

    def _attempt(self, work: Work, kind: Kind) -> Done:
        try:
            return self._plan_or_run(work, kind)
        except HoldfastError as error:
            work.is_ending = True
            return self._ended(work, error)
        except Exception as error:  # outermost loop: whatever a kind raises ends its run
            work.is_ending = True
            claim = work.claim
            log.exception("task %s of %s raised", claim.task_id, claim.subject)
            return self._fail(work, "work_raised", f"{type(error).__name__}: {error}")

    def _ended(self, work: Work, error: HoldfastError) -> Done:
        claim = work.claim
        match error:
            case FencedOutError():
                return Done(claim, Ending.FENCED_OUT, error.message)
            case WorkStopped() if work.overran:
                return self._overran(claim, error.message)
            case WorkStopped():
                return self._let_go(claim, error.code)
            case MustWaitError():
                self._say(work, f"waiting for {error.reason}, {error.delay:.0f} s: {error.message}")
                return self._put_back(claim, error.reason, error.delay, error.message)
            case StoreUnavailableError():
                # The database is unreachable: nothing can be written now. The lease expires or is released.
                log.warning("task %s: %s", claim.task_id, error.message)
                return self._let_go(claim, error.code)
        return self._fail(work, error.code, error.message)

    def _plan_or_run(self, work: Work, kind: Kind) -> Done:
        if work.claim.plans and (kind.plan is not None or work.claim.phase > 0):
            slices = _checked_slices(_plan(work, kind), work.claim.phase)
            work.check()
            if not slices:
                return self._finish(work, kind, Finish(), goes_on=False)
            if len(slices) > 1:
                work.note(f"planned {len(slices)} slices")
                work.is_ending = True
                landed = tasks.plan(self._tools.db, work.claim, slices, work.spent, work.take_lines())
                done = self._done(work.claim, landed, Ending.PLANNED)
                if done.ending is Ending.PLANNED:
                    wakeups.wake_lanes(self._sender, {work.claim.lane: len(slices)})
                return done
            work.payload = slices[0].payload
        finish = _checked_finish(kind.run(work))
        # The lease is not checked here: a lease says who should work, the fence says who may write.
        goes_on = kind.plan_next is not None
        try:
            return self._finish(work, kind, finish, goes_on=goes_on)
        except tasks.CopyGoneError:
            work.may_copy = work.is_ending = False
            return self._finish(work, kind, _checked_finish(kind.run(work)), goes_on=goes_on)

    def _finish(self, work: Work, kind: Kind, finish: Finish, *, goes_on: bool) -> Done:
        claim, hook = work.claim, kind.publish
        if work.has_ended:
            return Done(claim, Ending.PUBLISHED)

        def publish(tx: Tx) -> Callable[[Tx], None] | None:
            return hook(tx, claim) if hook is not None else None

        batch = work.checked(finish.chunks)
        work.is_ending = True
        landed = tasks.finish(
            self._tools.db,
            claim,
            spent=work.spent,
            staged=work.staged + len(batch) + (finish.copy.chunks if finish.copy is not None else 0),
            result=finish.result,
            publish=publish,
            batch=batch,
            copy=finish.copy,
            also=finish.also,
            said=work.take_lines(),
            goes_on=goes_on,
        )
        if isinstance(landed, Fenced):
            return Done(claim, Ending.FENCED_OUT, landed.reason)
        if landed.goes_on:
            wakeups.wake_lanes(self._sender, {claim.lane: 1})
        if landed.follow_ups and claim.lane != Lane.FOLLOW_UP:
            wakeups.wake_lanes(self._sender, {Lane.FOLLOW_UP: landed.follow_ups})
        return Done(claim, Ending.PUBLISHED if landed.published else Ending.FINISHED)

    def _fail(self, work: Work, code: str, message: str) -> Done:
        claim = work.claim
        work.note(f"failed: {message} [{code}]")
        try:
            landed = tasks.fail(
                self._tools.db,
                claim,
                code=code,
                message=plain(message),
                spent=work.spent,
                said=work.take_lines(),
            )
        except StoreUnavailableError as error:
            log.warning("task %s failed (%s), but not recorded: %s", claim.task_id, code, error.message)
            return Done(claim, Ending.RELEASED, error.code)
        if isinstance(landed, Landed):
            wakeups.wake_lanes(self._sender, {Lane.FOLLOW_UP: landed.follow_ups})
        return self._done(claim, landed, Ending.FAILED, code)

    def _say(self, work: Work, line: str) -> None:
        """The line is in the run's log, if it can be written: nothing depends on it."""
        work.note(line)
        try:
            tasks.say(self._tools.db, work.claim, work.take_lines())
        except StoreUnavailableError as error:
            log.warning("task %s waits, but that was not recorded: %s", work.claim.task_id, error.message)

    def _put_back(self, claim: Claim, reason: str, delay: float, message: str) -> Done:
        try:
            landed = claims.put_back(self._tools.db, claim, reason=reason, delay=delay)
        except StoreUnavailableError as error:
            return Done(claim, Ending.RELEASED, error.code)
        return self._done(claim, landed, Ending.PUT_BACK, message)

    def _overran(self, claim: Claim, message: str) -> Done:
        with contextlib.suppress(StoreUnavailableError):  # then its lease expires
            wakeups.wake_lanes(self._sender, losses.overran(self._tools.db, claim, self._caps))
        return Done(claim, Ending.OVERRAN, message)

    def _let_go(self, claim: Claim, reason: str) -> Done:
        try:
            landed = claims.release(self._tools.db, claim, reason)
        except StoreUnavailableError as error:
            return Done(claim, Ending.RELEASED, error.code)
        done = self._done(claim, landed, Ending.RELEASED, reason)
        if done.ending is Ending.RELEASED:
            wakeups.wake_lanes(self._sender, {claim.lane: 1})
        return done

    @staticmethod
    def _done(claim: Claim, outcome: Outcome, ending: Ending, reason: str = "") -> Done:
        if isinstance(outcome, Fenced):
            return Done(claim, Ending.FENCED_OUT, outcome.reason)
        return Done(claim, ending, reason)


def _plan(work: Work, kind: Kind) -> object:
    """The slices that the kind plans for the phase of this task."""
    plan = kind.plan_next if work.claim.phase > 0 else kind.plan
    return () if plan is None else plan(work)


def _checked_slices(slices: object, phase: int) -> Sequence[Slice]:
    if not isinstance(slices, Sequence) or not all(isinstance(piece, Slice) for piece in slices):
        raise WorkError("plan must answer a list of Slice", code="bad_plan")
    if phase >= MOST_PHASES and slices:
        message = f"plan_next has planned {MOST_PHASES} phases; it must answer an empty list at the end"
        raise WorkError(message, code="bad_plan")
    if not slices and phase == 0:
        raise WorkError("plan found nothing to do; raise a WorkError that says why", code="empty_plan")
    if len(slices) > MOST_SLICES:
        raise WorkError(
            f"plan made {len(slices)} slices, more than {MOST_SLICES}; make them larger", code="bad_plan"
        )
    for piece in slices:
        if type(piece.weight) is not int or not 0 < piece.weight <= MOST_WEIGHT:
            message = f"a slice's weight must be 1 to {MOST_WEIGHT}, not {piece.weight!r}"
            raise WorkError(message, code="bad_plan")
        if not isinstance(piece.payload, Mapping):
            raise WorkError("a slice's payload must be a mapping", code="bad_plan")
        _json(dict(piece.payload), "a slice's payload", "bad_plan")
    return slices


def _checked_finish(answer: object) -> Finish:
    finish = answer if isinstance(answer, Finish) else Finish(_checked_result(answer))
    if len(finish.chunks) > MOST_CHUNKS_AT_END:
        message = (
            f"{len(finish.chunks)} chunks at the end of a slice; stage more than {MOST_CHUNKS_AT_END} before"
        )
        raise WorkError(message, code="bad_result")
    _checked_result(finish.result)
    return finish


def _checked_result(result: object) -> Mapping[str, Any] | None:
    if result is None:
        return None
    if not isinstance(result, Mapping):
        message = f"run must answer a mapping or None, not {type(result).__name__}"
        raise WorkError(message, code="bad_result")
    size = len(_json(dict(result), "the result", "bad_result").encode("utf-8", "surrogatepass"))
    if size > MOST_RESULT:
        message = f"the result is {size} bytes, more than {MOST_RESULT}; stage large output as chunks"
        raise ResultTooLargeError(message)
    return result


def _json(value: object, what: str, code: str) -> str:
    try:
        return keys.canonical(value)
    except BadRequestError as error:
        raise WorkError(f"{what}: {error.message}", code=code) from error
