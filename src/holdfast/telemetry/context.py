"""The task this thread is working on, for its log lines.

A context variable: threads started with a copy of the context, such as those for payments, inherit it.
"""

from contextvars import ContextVar

from holdfast.core.records import Claim

_work: ContextVar[Claim | None] = ContextVar("holdfast_work", default=None)


def enter(claim: Claim) -> None:
    """This thread starts working on the task of `claim`."""
    _work.set(claim)


def leave() -> None:
    """This thread works on no task."""
    _work.set(None)


def current() -> Claim | None:
    """The claim this thread works on; None if idle."""
    return _work.get()


def fields(claim: Claim) -> dict[str, object]:
    """The fields of a log line about this claim."""
    return {
        "tenant": claim.tenant,
        "kind": claim.kind,
        "subject": claim.subject,
        "run": claim.run_id,
        "generation": claim.generation,
        "task": claim.task_id,
        "slice": claim.ordinal,
        "epoch": claim.epoch,
    }
