"""Frozen records that cross the boundaries between packages. Times are database seconds since 1970."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.core import keys
from holdfast.core.errors import BadRequestError, GenerationMovedError
from holdfast.core.states import (
    GUARDED_LANE,
    LANE_RANK,
    CallState,
    Disposition,
    Lane,
    Skip,
    Status,
    TaskState,
)

KIND = re.compile(r"[a-z][a-z0-9_-]{0,39}")
# The kind of a guarded Celery task is its name, like shop.tasks.build; the dot tells it from other kinds.
TASK_NAME = re.compile(r"(?=.{1,200}\Z)[A-Za-z_][A-Za-z0-9_-]*\.[A-Za-z0-9_.-]+")
SUBJECT = re.compile(r"[a-z][a-z0-9_-]{0,39}:[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")
TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MOST_OPTIONS = 64 * 1024
PRIORITIES = range(10)


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for one generation of a (kind, subject)."""

    kind: str
    subject: str
    content: str = ""
    options: Mapping[str, object] = field(default_factory=dict)
    tenant: str = "default"
    collection: str | None = None
    lane: str = Lane.BULK
    priority: int = 5
    pipeline: str = ""
    force: bool = False
    expect_generation: int | None = None
    actor: str = ""
    # The callback for the end of the run: {url, secret}. Not part of the work.
    callback: Mapping[str, str] | None = None
    # The trace of the request, in W3C format; not part of the work.
    trace: str | None = None
    # What the run may spend at most, in nano-dollars; not part of the work.
    max_cost: int | None = None
    # The model has no known price: refused under a hard budget.
    unpriced: bool = False
    # What has changed since the last request, if anything has; the reason in the journal.
    change: str = "changed"
    # False for work that never pays: an exhausted budget does not block it.
    pays: bool = True

    def checked(self) -> "Ask":
        """This request, if it is well formed; otherwise BadRequestError with a code for the invalid part."""
        guarded = self.lane == GUARDED_LANE
        if guarded:
            _match(TASK_NAME, self.kind, "kind", "the name of a task, like shop.tasks.build")
        else:
            _match(KIND, self.kind, "kind", "lower-case letters, digits, - and _, like index")
        _match(SUBJECT, self.subject, "subject", "a type, a colon and an id, like document:42")
        _match(TENANT, self.tenant, "tenant", "letters, digits, dot, - and _, at most 64")
        if self.lane not in LANE_RANK and not guarded:
            message = f"lane {self.lane!r} does not exist; use one of {', '.join(LANE_RANK)}"
            raise BadRequestError(message, code="bad_lane")
        if type(self.priority) is not int or self.priority not in PRIORITIES:
            message = f"priority {self.priority!r} is out of range; use 0 (first) to {PRIORITIES[-1]}"
            raise BadRequestError(message, code="bad_priority")
        if len(keys.canonical(dict(self.options)).encode("utf-8", "surrogatepass")) > MOST_OPTIONS:
            message = f"options are larger than {MOST_OPTIONS} bytes; put large input into the content"
            raise BadRequestError(message, code="options_too_large")
        return self

    @property
    def fingerprint(self) -> str:
        """Digest of the work: content, options and pipeline."""
        return keys.digest(self.content, keys.canonical(dict(self.options)), self.pipeline)


def expect(generation: int, expected: int | None) -> None:
    """Return if the generation is the expected one, or any is; otherwise GenerationMovedError."""
    if expected is not None and expected != generation:
        message = f"the document is at generation {generation}, not {expected}; look at it again"
        raise GenerationMovedError(message)


def _match(pattern: re.Pattern[str], value: object, name: str, form: str) -> None:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        message = f"{name} {value!r} has the wrong form; it must be {form}"
        raise BadRequestError(message, code=f"bad_{name}")


@dataclass(frozen=True, slots=True)
class Head:
    """The one row that says which generation of a (kind, subject) is current."""

    id: int
    tenant: str
    kind: str
    subject: str
    collection: str | None
    generation: int
    status: Status
    run_id: str | None
    fingerprint: str
    published_generation: int
    visible: bool
    deleted: bool


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One generation being carried out."""

    id: str
    head_id: int
    tenant: str
    kind: str
    subject: str
    generation: int
    status: Status
    disposition: Disposition
    lane: str
    priority: int
    pipeline: str
    slices: int | None
    queued_at: float
    started_at: float | None
    finished_at: float | None
    error_code: str | None
    error_message: str | None
    phase: int = 0


@dataclass(frozen=True, slots=True)
class Task:
    """One slice of a run."""

    id: int
    run_id: str
    head_id: int
    generation: int
    ordinal: int
    state: TaskState
    epoch: int
    token: str | None
    owner: str | None
    lease_until: float
    attempts: int
    due_at: float
    waiting_for: str | None
    phase: int = 0


# The task of a payment that belongs to none.
NO_TASK = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on a task, and the proof to show at every write: epoch and token.

    `lease_until` is by the database clock and informative; the holder's own stop time is the lease's
    trust window, counted from before the claim was sent. `plans`: the task is the first of its phase.
    """

    task_id: int
    run_id: str
    head_id: int
    tenant: str
    kind: str
    subject: str
    collection: str | None
    generation: int
    ordinal: int
    epoch: int
    token: str
    owner: str
    lane: str
    priority: int
    pipeline: str
    content: str
    options: Mapping[str, object]
    payload: Mapping[str, object]
    attempts: int
    lease_until: float
    phase: int = 0
    plans: bool = False
    # Of a request to the gateway: the API key in whose name it pays, and the scope in which it is reused.
    key_id: str | None = None
    reuse_scope: str | None = None


@dataclass(frozen=True, slots=True)
class RequestResult:
    """The result of a request, and the run it concerns (the active one for a duplicate).

    `follow_ups`: how many tasks became due in the lane of follow-ups: the callbacks of a superseded run.
    """

    disposition: Disposition
    reason: str
    head_id: int | None
    run_id: str | None
    generation: int
    status: Status | None
    follow_ups: int = 0

    @property
    def created(self) -> bool:
        """True if the request created a new generation."""
        return self.disposition in {Disposition.ACCEPTED, Disposition.SUPERSEDING, Disposition.TAKEOVER}


@dataclass(frozen=True, slots=True)
class Landed:
    """The transition took effect (now, or at an earlier try whose response was lost).

    `follow_ups`: how many tasks became due in the lane of follow-ups. `goes_on`: the next phase is to be
    planned, which is one more task in the lane of the run.
    """

    published: bool = False
    follow_ups: int = 0
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Fenced:
    """The transition had no effect; the holder must stop."""

    reason: str


Outcome = Landed | Fenced


@dataclass(frozen=True, slots=True)
class Skipped:
    """A delivery that named its task and must not run."""

    reason: Skip
    retry_in: float | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """A piece of work that a worker can do alone."""

    payload: Mapping[str, object] = field(default_factory=dict)
    weight: int = 1


@dataclass(frozen=True, slots=True)
class EarlierSlice:
    """A finished slice of an earlier phase of the same run: its number, its payload and its result."""

    phase: int
    number: int
    payload: Mapping[str, object]
    result: Mapping[str, object]
    chunks: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """One row staged by a slice; visible when its generation is published."""

    position: int
    text: str = ""
    page: int | None = None
    call_key: str | None = None
    data: Mapping[str, object] = field(default_factory=dict)
    words: str | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """All chunks of a slice of an earlier generation of the same head, to be reused."""

    generation: int
    slice: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Spent:
    """What one task cost and saved; set absolutely when it finishes."""

    paid_calls: int = 0
    reused_calls: int = 0
    tokens: int = 0
    paid: int = 0
    saved: int = 0
    # Paid calls without a known price; they are not included in `paid`.
    unpriced_calls: int = 0

    @property
    def unpriced(self) -> bool:
        """True if something was paid for, but at no known price."""
        return self.unpriced_calls > 0 and not self.paid

    def __add__(self, other: "Spent") -> "Spent":
        """The sum, field by field."""
        return Spent(
            self.paid_calls + other.paid_calls,
            self.reused_calls + other.reused_calls,
            self.tokens + other.tokens,
            self.paid + other.paid,
            self.saved + other.saved,
            self.unpriced_calls + other.unpriced_calls,
        )


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A call as the ledger has it. `cost` and `estimate` are in nano-dollars."""

    key: str
    state: CallState
    order_id: str | None
    run_id: str | None
    result: bytes | None
    tokens: int
    cost: int


@dataclass(frozen=True, slots=True)
class Order:
    """One HTTP exchange, frozen when it was intended. Recovery resends exactly `body`."""

    id: str
    tenant: str
    provider: str
    endpoint: str
    model: str
    state: CallState
    call_keys: tuple[str, ...]
    weights: tuple[int, ...]
    body: bytes
    idempotency_key: str
    holder: str
    task_id: int | None
    run_id: str | None
    keyed: bool
    deadline: float
    created_at: float
    first_sent_at: float | None
    sent_at: float | None
    deadline_at: float
    sends: int
    estimate: int
    unpriced: bool = False
