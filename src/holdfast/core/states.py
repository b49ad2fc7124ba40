"""The states of everything that has one, and the single table of allowed transitions.

Two enums answer two questions: `Status` is the state of the work, `Disposition` is the result of a request. A
transition that is not in `TRANSITIONS` must not happen: the simulator compares every state change, commit by
commit, with the table.
"""

from enum import StrEnum


class Status(StrEnum):
    """State of a head (kind, subject) and of each of its runs."""

    IDLE = "idle"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"


class TaskState(StrEnum):
    """State of one slice of a run."""

    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CLOSED = "closed"


class CallState(StrEnum):
    """State of a paid call and of the order that carries it."""

    INTENT = "intent"
    SENT = "sent"
    SETTLED = "settled"
    VOID = "void"
    IN_DOUBT = "in_doubt"
    PARKED = "parked"


class RelayState(StrEnum):
    """State of a relay. `gone` is final: it marks nothing more, whatever it may still settle."""

    UP = "up"
    DRAINING = "draining"
    GONE = "gone"


class GoneBy(StrEnum):
    """How it is known that a relay is gone."""

    ITSELF = "itself"
    LOCK = "lock"
    LEASE = "lease"


class Disposition(StrEnum):
    """The result of a request."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    UNCHANGED = "unchanged"
    SUPERSEDING = "superseding"
    TAKEOVER = "takeover"
    REFUSED = "refused"


class Skip(StrEnum):
    """Why a delivery that names its task must not run."""

    STALE_GENERATION = "stale_generation"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    LOCK_HELD = "lock_held"
    EXHAUSTED = "exhausted"
    UNKNOWN = "unknown"
    NOT_DUE = "not_due"
    UNSUPPORTED = "unsupported"


class Loss(StrEnum):
    """How a task lost its holder; the reason of an `expire` in the journal."""

    LEASE_EXPIRED = "lease_expired"
    WORKER_DIED = "worker_died"
    PROCESS_DIED = "process_died"
    OVERRAN = "overran"


class Lane(StrEnum):
    """A class of urgency. Lanes are served in the order of the members."""

    INTERACTIVE = "interactive"
    BULK = "bulk"
    FOLLOW_UP = "follow-up"


LANE_RANK: dict[str, int] = {lane.value: rank for rank, lane in enumerate(Lane)}
# The lane of guarded Celery tasks. It has no queue of its own: their messages name the run and go to the
# queues of the application, and no worker of Holdfast claims from it.
GUARDED_LANE = "guarded"


class Verb(StrEnum):
    """The transitions, by name. The same word is the function, the journal event and the metric."""

    REQUEST = "request"
    PLAN = "plan"
    CLAIM = "claim"
    SKIP = "skip"
    RENEW = "renew"
    RELEASE = "release"
    PUT_BACK = "put_back"
    EXPIRE = "expire"
    FALL_DUE = "fall_due"
    STAGE = "stage"
    ADVANCE = "advance"
    FINISH = "finish"
    PUBLISH = "publish"
    FAIL = "fail"
    CANCEL = "cancel"
    SUPERSEDE = "supersede"
    DELETE = "delete"
    CLOSE = "close"
    INTEND = "intend"
    SEND = "send"
    SETTLE = "settle"
    VOID = "void"
    DOUBT = "doubt"
    RESEND = "resend"
    PARK = "park"
    RESOLVE = "resolve"
    SWEEP = "sweep"
    IMPORT = "import"
    MOVE = "move"
    PRUNE = "prune"
    REPAIR = "repair"
    ADD_ACTION = "add_action"
    REMOVE_ACTION = "remove_action"
    ADD_SOURCE = "add_source"
    CHANGE_SOURCE = "change_source"
    REMOVE_SOURCE = "remove_source"
    SET_BUDGET = "set_budget"
    DESCRIBE = "describe"
    EDIT = "edit"
    WARN = "warn"


LIVE = frozenset({Status.QUEUED, Status.RUNNING})
"""A run in one of these may still publish; at most one run of a head is live (G1)."""

ENDED = frozenset({Status.SUCCESS, Status.FAILED, Status.CANCELLED, Status.SUPERSEDED})

OPEN = frozenset({TaskState.WAITING, TaskState.QUEUED, TaskState.RUNNING})
"""A task in one of these still has work to do."""

PRESENT = frozenset({RelayState.UP, RelayState.DRAINING})
"""A relay in one of these may mark orders and is waited for."""

UNSETTLED = frozenset({CallState.INTENT, CallState.SENT, CallState.IN_DOUBT, CallState.PARKED})
"""A call in one of these holds a reservation of money."""

HEAD: dict[tuple[Status, Verb], frozenset[Status]] = {
    **{
        (status, Verb.REQUEST): frozenset({Status.QUEUED})
        for status in (Status.IDLE, Status.QUEUED, Status.RUNNING, Status.SUCCESS, Status.FAILED)
    },
    (Status.QUEUED, Verb.CLAIM): frozenset({Status.RUNNING}),
    (Status.RUNNING, Verb.CLAIM): frozenset({Status.RUNNING}),
    (Status.RUNNING, Verb.PUBLISH): frozenset({Status.SUCCESS}),
    (Status.QUEUED, Verb.FAIL): frozenset({Status.FAILED}),
    (Status.RUNNING, Verb.FAIL): frozenset({Status.FAILED}),
    (Status.QUEUED, Verb.CANCEL): frozenset({Status.SUCCESS, Status.IDLE}),
    (Status.RUNNING, Verb.CANCEL): frozenset({Status.SUCCESS, Status.IDLE}),
    **{
        (status, Verb.DELETE): frozenset({Status.IDLE})
        for status in (Status.IDLE, Status.QUEUED, Status.RUNNING, Status.SUCCESS, Status.FAILED)
    },
}

RUN: dict[tuple[Status, Verb], frozenset[Status]] = {
    (Status.QUEUED, Verb.CLAIM): frozenset({Status.RUNNING}),
    (Status.RUNNING, Verb.CLAIM): frozenset({Status.RUNNING}),
    (Status.RUNNING, Verb.PUBLISH): frozenset({Status.SUCCESS}),
    **{(status, Verb.FAIL): frozenset({Status.FAILED}) for status in LIVE},
    **{(status, Verb.CANCEL): frozenset({Status.CANCELLED}) for status in LIVE},
    **{(status, Verb.SUPERSEDE): frozenset({Status.SUPERSEDED}) for status in LIVE},
    **{(status, Verb.DELETE): frozenset({Status.SUPERSEDED}) for status in LIVE},
}

TASK: dict[tuple[TaskState, Verb], frozenset[TaskState]] = {
    (TaskState.QUEUED, Verb.CLAIM): frozenset({TaskState.RUNNING}),
    (TaskState.WAITING, Verb.CLAIM): frozenset({TaskState.RUNNING}),
    (TaskState.RUNNING, Verb.CLAIM): frozenset({TaskState.RUNNING}),
    (TaskState.RUNNING, Verb.RENEW): frozenset({TaskState.RUNNING}),
    (TaskState.RUNNING, Verb.RELEASE): frozenset({TaskState.QUEUED}),
    (TaskState.RUNNING, Verb.PUT_BACK): frozenset({TaskState.WAITING}),
    (TaskState.RUNNING, Verb.EXPIRE): frozenset({TaskState.QUEUED, TaskState.WAITING}),
    (TaskState.WAITING, Verb.FALL_DUE): frozenset({TaskState.QUEUED}),
    (TaskState.RUNNING, Verb.PLAN): frozenset({TaskState.DONE}),
    (TaskState.RUNNING, Verb.FINISH): frozenset({TaskState.DONE}),
    (TaskState.RUNNING, Verb.FAIL): frozenset({TaskState.FAILED}),
    **{(state, Verb.CLOSE): frozenset({TaskState.CLOSED}) for state in OPEN},
}

CALL: dict[tuple[CallState, Verb], frozenset[CallState]] = {
    (CallState.VOID, Verb.INTEND): frozenset({CallState.INTENT}),
    (CallState.INTENT, Verb.SEND): frozenset({CallState.SENT}),
    (CallState.INTENT, Verb.VOID): frozenset({CallState.VOID}),
    (CallState.SENT, Verb.SETTLE): frozenset({CallState.SETTLED}),
    (CallState.IN_DOUBT, Verb.SETTLE): frozenset({CallState.SETTLED}),
    (CallState.PARKED, Verb.SETTLE): frozenset({CallState.SETTLED}),
    (CallState.VOID, Verb.SETTLE): frozenset({CallState.SETTLED}),
    (CallState.SENT, Verb.VOID): frozenset({CallState.VOID}),
    (CallState.SENT, Verb.DOUBT): frozenset({CallState.IN_DOUBT}),
    (CallState.IN_DOUBT, Verb.RESEND): frozenset({CallState.SENT}),
    (CallState.IN_DOUBT, Verb.PARK): frozenset({CallState.PARKED}),
    (CallState.IN_DOUBT, Verb.VOID): frozenset({CallState.VOID}),
    (CallState.PARKED, Verb.RESOLVE): frozenset({CallState.IN_DOUBT, CallState.VOID}),
    (CallState.IN_DOUBT, Verb.RESOLVE): frozenset({CallState.IN_DOUBT, CallState.VOID}),
}

TRANSITIONS: dict[str, dict[tuple[StrEnum, Verb], frozenset[StrEnum]]] = {
    "head": {key: frozenset(value) for key, value in HEAD.items()},
    "run": {key: frozenset(value) for key, value in RUN.items()},
    "task": {key: frozenset(value) for key, value in TASK.items()},
    "call": {key: frozenset(value) for key, value in CALL.items()},
}


def may(what: str, state: StrEnum, verb: Verb) -> bool:
    """True if the table allows `verb` in `state`."""
    return (state, verb) in TRANSITIONS[what]


def sources(what: str, verb: Verb) -> tuple[str, ...]:
    """The states in which `verb` is allowed, sorted: the guard of its statement."""
    return tuple(sorted(state.value for state, known in TRANSITIONS[what] if known is verb))


WORDS: dict[str, dict[Status, str]] = {
    "index": {Status.IDLE: "not_indexed", Status.RUNNING: "indexing"},
}


def shown(kind: str, status: Status) -> str:
    """The word shown to people for `status` of work of `kind`."""
    return WORDS.get(kind, {}).get(status, status.value)
