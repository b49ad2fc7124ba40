"""What the end of a run means for its message: Celery is told of an end that no delivery has seen."""

from holdfast.core.records import Head, RunRecord
from holdfast.core.states import GUARDED_LANE, Status
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

    def after_prune(self, tx: Tx, head: Head, run: RunRecord) -> None:
        """An ended call without a key is history, head included: nobody will name its subject again.

        Its generation fences nothing that is left: a claim names its task as well, by a token.
        """
        if run.lane == GUARDED_LANE and head.subject.startswith(messages.OF_ARGUMENTS):
            message = tx.one(messages.OF_RUN, {"run_id": run.id})
            if message is None or not message.options.get("once"):
                tx.execute(messages.FORGET, {"b_run": run.id})
