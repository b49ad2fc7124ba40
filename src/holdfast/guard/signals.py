"""What guarded code may see raised.

`FencedOut` and `MustWait` are no faults: they end the execution of a task that must not go on here. They
derive from BaseException, as an `except Exception` of the application, or of a client library that retries,
must not swallow them.
"""

from holdfast.core.errors import HoldfastError


class FencedOut(BaseException):
    """Another execution owns the work now, or it was cancelled: nothing that this one writes counts."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"this execution may not write any more: {reason}")
        self.reason = reason


class MustWait(BaseException):
    """The task cannot go on now; it is put back and starts again in `delay` seconds."""

    def __init__(self, message: str, *, reason: str, delay: float) -> None:
        super().__init__(message)
        self.reason = reason
        self.delay = delay


class Duplicate(HoldfastError):  # noqa: N818 - reads as what the request is
    """The same work is under way already; `run_id` names it."""

    code = "duplicate"

    def __init__(self, message: str, *, run_id: str | None) -> None:
        super().__init__(message)
        self.run_id = run_id


class InDoubt(HoldfastError):  # noqa: N818 - reads as the state of the call
    """A paid call was sent and what became of it is unknown; somebody has to decide about its order."""

    code = "in_doubt"


class EarlierFailure(HoldfastError):  # noqa: N818 - it is about an earlier execution
    """The run of this message has failed before; the message says how."""

    code = "failed_before"
