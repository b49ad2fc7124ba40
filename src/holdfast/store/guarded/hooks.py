"""What the end of a run means for its message: Celery is told of an end that no delivery has seen."""

from holdfast.core.states import Status
from holdfast.store.base.database import Hook, Tx
from holdfast.store.guarded import messages

# Ends that come from outside the task. Every other end is the task's own, and its delivery tells Celery.
OUTSIDE = frozenset({"abandoned", "stranded", "cancelled", "superseded", "deleted", "expired"})


class MessageHook(Hook):
    """Messages are stored with their run and deleted with it; ends from outside are reported to Celery."""

    def after_end(self, tx: Tx, run_id: str, status: Status, code: str | None, message: str | None) -> int:  # noqa: ARG002
        """The message of a run that was ended from outside is delivered once more, to report the end."""
        if code in OUTSIDE:
            tx.execute(messages.REPORT, {"b_run": run_id})
        return 0
