"""One tree of errors. Each has a stable code; each message says what happened and what to do next."""


class HoldfastError(Exception):
    """Something a caller can act on; `code` is stable and documented."""

    code = "error"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        """Keep the message for people and the code for programs."""
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class BadRequestError(HoldfastError):
    """The request can never be accepted as it is."""

    code = "bad_request"


class NotFoundError(HoldfastError):
    """It does not exist, or the caller may not see it."""

    code = "not_found"


class KeyRestrictedError(HoldfastError):
    """The caller's key is limited to some documents, and this is about more than those."""

    code = "key_restricted"


class ConflictError(HoldfastError):
    """The request is at odds with what is there."""

    code = "conflict"


class GenerationMovedError(HoldfastError):
    """The document is at another generation than the caller expected; nothing was changed."""

    code = "generation_moved"


class NoContentError(HoldfastError):
    """There is no content to work on; nothing was asked for."""

    code = "no_content"


class StoreUnavailableError(HoldfastError):
    """The database did not respond in time. Whether anything changed is unknown."""

    code = "database_unavailable"


class StoreLockedError(StoreUnavailableError):
    """A row is locked for longer than this caller waits; nothing happened."""


class StoreTimeoutError(StoreUnavailableError):
    """The database took longer than the caller allows; nothing happened."""


class SchemaError(HoldfastError):
    """The database is not at the revision that this code needs."""

    code = "schema_mismatch"


class NotReadyError(HoldfastError):
    """Something that this process needs is unavailable: a broker, a port, a folder."""

    code = "not_ready"


class WorkStopped(HoldfastError):  # noqa: N818 - a signal to unwind, not a fault of the work
    """The work must stop now without writing anything more; another worker owns it, or will."""

    code = "stopped"


class LeaseLostError(WorkStopped):
    """The lease is no longer trusted: no new orders, no further writes."""

    code = "lease_lost"


class FencedOutError(WorkStopped):
    """A write was refused because the run, the generation or the epoch is no longer current."""

    code = "fenced_out"


class DrainingError(WorkStopped):
    """The worker is stopping: settle what is in flight, start nothing, hand the task back."""

    code = "draining"


class TimeLimitError(HoldfastError):
    """The task exceeded its time limit."""

    code = "time_limit"


class MustWaitError(HoldfastError):
    """The task cannot continue now and is put back with a due time; this is not a failure."""

    code = "must_wait"

    def __init__(self, message: str, *, reason: str, delay: float) -> None:
        """Say why (`budget`, `rate`, `intent`, `parked`) and for how long to wait."""
        super().__init__(message)
        self.reason = reason
        self.delay = delay


class WorkError(HoldfastError):
    """The work itself failed for good; the run ends as failed with this code."""

    code = "work_failed"


class ProviderRefusedError(WorkError):
    """The provider rejected the input for good (it was not charged)."""

    code = "provider_rejected"


class ResultTooLargeError(WorkError):
    """A result is larger than the limit for its kind."""

    code = "result_too_large"
