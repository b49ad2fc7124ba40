"""Every decision of the protocol as a pure function: (records, event, now) → decision.

The store calls these on rows it has locked, in the transaction that carries the decision out. Nothing here
reads a clock or a database, so each rule can be tested as a table.
"""

from dataclasses import dataclass
from enum import StrEnum

from holdfast.core.records import Ask, Claim, Fenced, Head, Landed, Outcome, RunRecord, Task
from holdfast.core.states import (
    LIVE,
    CallState,
    Disposition,
    GoneBy,
    Loss,
    RelayState,
    Skip,
    Status,
    TaskState,
)

# Losses of a whole worker in a row after which a task waits before it is retried, and its longest wait.
PATIENT_LOSSES = 3
MOST_DELAY = 60.0


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    """How long work may be silent before a request may take it over."""

    queued: float = 600.0
    running: float = 2700.0


@dataclass(frozen=True, slots=True)
class Life:
    """Signs of life of a live run: any claim in its lane, a live lease, the last sign of its tasks.

    While one of its tasks is queued, a claim in the lane counts as a sign of its tasks too.
    """

    lane_claimed_at: float
    live_lease: bool
    last_sign_at: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do with a request, and why."""

    disposition: Disposition
    reason: str


def request(
    ask: Ask, head: Head | None, run: RunRecord | None, life: Life, patience: SilenceLimits, now: float
) -> Verdict:
    """The result of `ask`, given the locked head, its latest run and that run's signs of life.

    Content and options are compared with what was last *requested*, not with what is published: a request for
    version B while A runs supersedes A; a second request for B is then a duplicate.
    """
    generation = head.generation if head is not None else 0
    if ask.expect_generation is not None and ask.expect_generation != generation:
        return Verdict(Disposition.REFUSED, "generation_mismatch")
    if head is None or run is None or head.deleted:
        return Verdict(Disposition.ACCEPTED, "never_done")
    if ask.fingerprint != head.fingerprint:
        return Verdict(Disposition.SUPERSEDING, ask.change)
    if run.status in LIVE:
        stuck = silence(run, life, patience, now)
        if stuck is not None:
            return Verdict(Disposition.TAKEOVER, stuck)
        return Verdict(Disposition.DUPLICATE, "in_progress")
    if run.status is Status.SUCCESS:
        if ask.force:
            return Verdict(Disposition.ACCEPTED, "forced")
        return Verdict(Disposition.UNCHANGED, "same_content_and_options")
    return Verdict(Disposition.ACCEPTED, f"after_{run.status}")


def silence(run: RunRecord, life: Life, patience: SilenceLimits, now: float) -> str | None:
    """Why `run` counts as stuck, or None while it shows signs of life.

    A queued run is stuck only if its whole lane has claimed nothing for that time: a saturated queue is
    alive. A running run is alive while it has a live lease or one of its tasks has shown a sign.
    """
    if run.status is Status.QUEUED:
        quiet_since = max(run.queued_at, life.lane_claimed_at, life.last_sign_at)
        return "stuck_queued" if now - quiet_since > patience.queued else None
    if life.live_lease:
        return None
    quiet_since = max(run.started_at or run.queued_at, life.last_sign_at)
    return "stuck_running" if now - quiet_since > patience.running else None


def fence(claim: Claim, head: Head, run_status: Status, task: Task) -> Outcome:
    """Landed while `claim` may write: run live, generation current, epoch mine, task running (G2)."""
    if run_status not in LIVE:
        return Fenced(f"run_{run_status}")
    if head.generation != claim.generation:
        return Fenced("stale_generation")
    if task.epoch != claim.epoch or task.token != claim.token:
        return Fenced("stale_epoch")
    if task.state is not TaskState.RUNNING:
        return Fenced(f"task_{task.state}")
    return Landed()


@dataclass(frozen=True, slots=True)
class Caps:
    """How often a task may lose its holder without progress before its run is abandoned."""

    attempts: int = 3
    losses: int = 20


@dataclass(frozen=True, slots=True)
class Lost:
    """A task that has lost its holder: how, how often before, and what that holder had done."""

    loss: Loss
    attempts: int
    losses: int
    advanced: bool
    only_waited: bool = False


@dataclass(frozen=True, slots=True)
class Expiry:
    """What the loss of its holder means for a task: the new counts, its wait, and whether the run fails."""

    attempts: int
    losses: int
    delay: float = 0.0
    abandoned: bool = False


def expire(lost: Lost, caps: Caps) -> Expiry:
    """What the loss says about the task.

    The death of the one process that ran it says much, and so does a time limit: an attempt. The
    disappearance of its whole worker says little: a loss, with a wait that grows from the fourth in a row on.
    A holder that settled or advanced something shows that the task is sound; one that only waited for
    another's order has shown nothing.
    """
    if lost.advanced:
        return Expiry(lost.attempts, 0)
    if lost.only_waited:
        return Expiry(lost.attempts, lost.losses)
    if lost.loss in {Loss.PROCESS_DIED, Loss.OVERRAN}:
        attempts = lost.attempts + 1
        return Expiry(attempts, lost.losses, abandoned=attempts >= caps.attempts)
    losses = lost.losses + 1
    delay = 0.0 if losses <= PATIENT_LOSSES else min(MOST_DELAY, 2.0 ** (losses - PATIENT_LOSSES))
    return Expiry(lost.attempts, losses, delay, abandoned=losses >= caps.losses)


class CarryingRelay(StrEnum):
    """What is known of the relay that carries an order. `LOST` is gone by its lease: it may still settle."""

    PRESENT = "present"
    DEAD = "dead"
    LOST = "lost"


def relay_of(state: RelayState, gone_by: GoneBy | None) -> CarryingRelay:
    """What the state of a relay means for what it carries.

    One that left by itself had nothing left to settle, and one whose lock is free has died.
    """
    if state is not RelayState.GONE:
        return CarryingRelay.PRESENT
    return CarryingRelay.LOST if gone_by is GoneBy.LEASE else CarryingRelay.DEAD


@dataclass(frozen=True, slots=True)
class Carriage:
    """An order that has not ended, and what is known about its holder and carrier.

    `held`: its holder may still send it. `overdue`: seconds since its deadline, negative before. `silence`:
    seconds since the lease of its carrier expired, negative before; None if no carrier is known, as with
    orders of an older release. `died`: its carrier has provably died. `grace`: the database was unreachable.
    `relay`: a relay carries it; then its own worker says nothing about it.
    """

    state: CallState
    keyed: bool
    cheap: bool
    held: bool
    overdue: float
    silence: float | None
    died: bool = False
    grace: bool = False
    relay: CarryingRelay | None = None


@dataclass(frozen=True, slots=True)
class RivalWaits:
    """How many seconds a rival leaves an order alone.

    `settle`: after its deadline while its carrier lives, as a response that came at the last moment may still
    be being stored. `silent`: after the lease of its carrier has expired, if it is cheap. `relayed`: after
    its deadline while its relay is present, which ends every order that it carries.
    """

    settle: float = 30.0
    silent: float = 2.0
    relayed: float = 60.0


@dataclass(frozen=True, slots=True)
class Recovery:
    """What happens to an order whose holder will not end it."""

    state: CallState
    reason: str


_UNSENT = Recovery(CallState.VOID, "unsent")


def recover(order: Carriage, waits: RivalWaits) -> Recovery | None:
    """What happens to an order that a rival waits for; None to leave it alone.

    A live carrier ends its orders itself. One that has provably died cannot send or settle any more. One that
    is only silent may be frozen, or cut off from the database with the response in hand: an order without a
    key is then left alone until its deadline, unless it is cheap.
    """
    if order.state is CallState.INTENT:
        return _UNSENT if order.died or order.overdue > 0 or not order.held else None
    if order.state is not CallState.SENT:
        return None
    if order.relay is not None:
        return _recover_carried(order, order.relay, waits)
    if order.died:
        return Recovery(CallState.IN_DOUBT, "its process has died")
    if order.grace:
        return None
    if order.overdue > waits.settle:
        return Recovery(CallState.IN_DOUBT, "nothing heard before its deadline")
    if order.silence is None:
        return Recovery(CallState.IN_DOUBT, "its holder is gone") if order.keyed and not order.held else None
    if order.silence <= 0:
        return None
    if order.keyed or (order.cheap and order.silence > waits.silent):
        return Recovery(CallState.IN_DOUBT, "nothing heard of its process")
    return Recovery(CallState.IN_DOUBT, "nothing heard before its deadline") if order.overdue > 0 else None


def _recover_carried(order: Carriage, relay: CarryingRelay, waits: RivalWaits) -> Recovery | None:
    """The same for a sent order that a relay carries, whatever has become of its worker."""
    if relay is CarryingRelay.DEAD:
        return Recovery(CallState.IN_DOUBT, "its relay has died")
    if order.grace:
        return None
    if relay is CarryingRelay.PRESENT:
        late = order.overdue > waits.relayed
        return Recovery(CallState.IN_DOUBT, "its relay is present but did not end it") if late else None
    if order.keyed or order.cheap or order.overdue > 0:
        return Recovery(CallState.IN_DOUBT, "nothing heard of its relay")
    return None


class Burial(StrEnum):
    """What the sweep does about a relay that may be gone."""

    LEAVE = "leave"
    SUSPECT = "suspect"
    BURY = "bury"


def bury(*, silence: float, suspected: float | None, proven: bool, grace: bool, wait: float) -> Burial:
    """What to do about a relay whose lease ended `silence` seconds ago (negative: it has not).

    `suspected` is for how many seconds it has been a suspect, None if it is none. It takes two looks, at
    least `wait` seconds apart: a renewal that was on its way at the first one clears the suspicion. Proof of
    its death needs no lease, and no grace.
    """
    if proven:
        return Burial.BURY
    if silence <= 0 or grace:
        return Burial.LEAVE
    if suspected is None:
        return Burial.SUSPECT
    return Burial.BURY if suspected >= wait else Burial.LEAVE


@dataclass(frozen=True, slots=True)
class NamedDelivery:
    """The state of a task when a message that names it arrives."""

    task: Task | None
    run_status: Status
    current_generation: int
    lease_alive: bool
    attempt_cap: int


def deliver(delivery: NamedDelivery, now: float) -> Skip | None:
    """Why a named delivery must not run, or None if it may claim its task."""
    task = delivery.task
    if task is None:
        return Skip.UNKNOWN
    if delivery.run_status is Status.CANCELLED:
        return Skip.CANCELLED
    if task.generation != delivery.current_generation or delivery.run_status is Status.SUPERSEDED:
        return Skip.STALE_GENERATION
    if delivery.run_status not in LIVE or task.state in {TaskState.DONE, TaskState.FAILED, TaskState.CLOSED}:
        return Skip.FINISHED
    if task.state is TaskState.RUNNING and delivery.lease_alive:
        return Skip.LOCK_HELD
    if task.state is TaskState.RUNNING and task.attempts >= delivery.attempt_cap:
        return Skip.EXHAUSTED
    if task.state is TaskState.WAITING and task.due_at > now:
        return Skip.NOT_DUE
    return None


def after_cancel(head: Head) -> Status:
    """The head's status once its live run is cancelled: success if something is published, else idle."""
    return Status.SUCCESS if head.visible else Status.IDLE


class Continuation(StrEnum):
    """What happens to a run when one of its tasks is done."""

    WAIT = "wait"
    NEXT_PHASE = "next_phase"
    PUBLISH = "publish"


def after_task(*, others_open: bool, goes_on: bool) -> Continuation:
    """What the end of a task means for its run. Check for open tasks only while holding the head's lock.

    `goes_on`: its kind may plan a further phase, which it has not done yet.
    """
    if others_open:
        return Continuation.WAIT
    return Continuation.NEXT_PHASE if goes_on else Continuation.PUBLISH
