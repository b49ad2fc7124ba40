"""The task that this thread is working on, so that every line it logs can name it.

Kept in a context variable: threads that are started with a copy of the context, as those of a payment are,
inherit it.
"""

from contextvars import ContextVar

from holdfast.core.records import Claim

_work: ContextVar[Claim | None] = ContextVar("holdfast_work", default=None)


def enter(claim: Claim) -> None:
    """From now on this thread works on the task of `claim`."""
    _work.set(claim)


def leave() -> None:
    """This thread works on nothing."""
    _work.set(None)


def current() -> Claim | None:
    """The claim under which this thread works; None when it does not."""
    return _work.get()


def fields(claim: Claim) -> dict[str, object]:
    """What a log line says of the work it is about."""
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
