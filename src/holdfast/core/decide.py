"""Every decision of the protocol as a pure function: (records, event, now) → decision.

The store calls these on rows it has locked, in the transaction that carries the decision out. Nothing here
reads a clock or a database, so each rule can be tested as a table.
"""

from dataclasses import dataclass

from holdfast.core.records import Ask, Claim, FencedOut, Head, Landed, Outcome, Run, Task
from holdfast.core.states import LIVE, Disposition, Skip, Status, TaskState


@dataclass(frozen=True, slots=True)
class Patience:
    """How long work may be silent before a request may take it over."""

    queued: float = 600.0
    running: float = 2700.0


@dataclass(frozen=True, slots=True)
class Life:
    """Signs of life of a live run: any claim in its lane, a live lease, the last sign of its tasks.

    While one of its tasks stands in the queue, a claim in the lane is a sign of its tasks too.
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
    ask: Ask, head: Head | None, run: Run | None, life: Life, patience: Patience, now: float
) -> Verdict:
    """What becomes of `ask`, given the locked head, its latest run and that run's signs of life.

    Content and options are compared with what was last *requested*, not with what is published: a request
    for version B while A runs supersedes A; a second request for B is then a duplicate.
    """
    generation = head.generation if head is not None else 0
    if ask.expect_generation is not None and ask.expect_generation != generation:
        return Verdict(Disposition.REFUSED, "generation_mismatch")
    if head is None or run is None or head.deleted:
        return Verdict(Disposition.ACCEPTED, "never_done")
    if ask.fingerprint != head.fingerprint:
        return Verdict(Disposition.SUPERSEDING, "changed")
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


def silence(run: Run, life: Life, patience: Patience, now: float) -> str | None:
    """Why `run` counts as stuck, or None while it shows life.

    A queued run is stuck only if its whole lane has claimed nothing for that time: a saturated queue is
    alive. A running run is alive while a lease lives or one of its tasks has shown a sign.
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
        return FencedOut(f"run_{run_status}")
    if head.generation != claim.generation:
        return FencedOut("stale_generation")
    if task.epoch != claim.epoch or task.token != claim.token:
        return FencedOut("stale_epoch")
    if task.state is not TaskState.RUNNING:
        return FencedOut(f"task_{task.state}")
    return Landed()


@dataclass(frozen=True, slots=True)
class Expiry:
    """What an expired lease does to its task: the new attempt count, and whether the run fails."""

    attempts: int
    abandoned: bool


def expire(attempts: int, cap: int, *, advanced: bool) -> Expiry:
    """An expiry counts as an attempt only if nothing was settled or advanced since the claim."""
    counted = attempts if advanced else attempts + 1
    return Expiry(counted, abandoned=not advanced and counted >= cap)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message that names its task meets the task as it is."""

    task: Task | None
    run_status: Status
    current_generation: int
    lease_alive: bool
    attempt_cap: int


def deliver(delivery: Delivery, now: float) -> Skip | None:
    """Why a named delivery must not run, or None when it may claim its task."""
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
    """The head's status once its live run is cancelled: what is published stays, else nothing was done."""
    return Status.SUCCESS if head.visible else Status.IDLE


def completes(slices: int | None, open_tasks: int) -> bool:
    """True when a planned run has no open task left. Count only while holding the head's lock."""
    return slices is not None and open_tasks == 0
