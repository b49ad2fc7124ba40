"""One table for every error: its HTTP status, the exit code of a command, and the title of its page.

An error has the row of its code, or else that of the first class that it belongs to. The table at the end of
`docs/reference/errors.md` is the same, and a test compares them.
"""

from enum import IntEnum
from typing import NamedTuple

from holdfast.core.errors import (
    BadRequestError,
    ConflictError,
    HoldfastError,
    NotFoundError,
    NotReadyError,
    SchemaError,
    StoreUnavailableError,
    WorkError,
)


class Exit(IntEnum):
    """The exit codes of every command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    NOT_READY = 4
    NOT_FOUND = 5
    INTERRUPTED = 130


class ErrorRow(NamedTuple):
    """How an error is reported: over HTTP, by a command, in the web UI."""

    status: int
    exit: Exit
    title: str = "Request failed"


BAD_REQUEST = ErrorRow(400, Exit.USAGE)
UNUSABLE = ErrorRow(400, Exit.FAILED)
NOT_ALLOWED = ErrorRow(403, Exit.REFUSED, "Not allowed")
NOT_FOUND = ErrorRow(404, Exit.NOT_FOUND, "Page not found")
CONFLICT = ErrorRow(409, Exit.REFUSED)
TOO_LARGE = ErrorRow(413, Exit.FAILED)
BAD_GATEWAY = ErrorRow(502, Exit.FAILED, "The model did not answer")
UNAVAILABLE = ErrorRow(503, Exit.NOT_READY, "Service unavailable")
OTHER = ErrorRow(500, Exit.FAILED)

BY_CODE = {
    "key_needed": ErrorRow(401, Exit.REFUSED, "Not allowed"),
    "over_budget": ErrorRow(402, Exit.REFUSED),
    "unpriced": ErrorRow(402, Exit.REFUSED),
    "scope_missing": NOT_ALLOWED,
    "key_restricted": NOT_ALLOWED,
    "foreign_origin": NOT_ALLOWED,
    "quota_exceeded": NOT_ALLOWED,
    "unknown_order": NOT_FOUND,
    "blob_missing": NOT_FOUND,
    "collection_emptying": CONFLICT,
    "duplicate": CONFLICT,
    "no_content": CONFLICT,
    "nothing_ready": CONFLICT,
    "options_conflict": CONFLICT,
    "same_content": CONFLICT,
    "same_external_id": CONFLICT,
    "generation_moved": ErrorRow(412, Exit.REFUSED),
    "too_large": TOO_LARGE,
    "url_too_large": TOO_LARGE,
    "old_office": ErrorRow(415, Exit.FAILED),
    "unknown_format": ErrorRow(415, Exit.FAILED),
    "bad_range": ErrorRow(416, Exit.USAGE),
    "estimate_timeout": ErrorRow(422, Exit.FAILED),
    "rate_limited": ErrorRow(429, Exit.REFUSED),
    "estimate_busy": UNAVAILABLE,
    "answer_in_doubt": CONFLICT,
    "answer_unavailable": UNAVAILABLE,
    "bad_answer": BAD_GATEWAY,
    "content_filtered": BAD_GATEWAY,
    "provider_unavailable": BAD_GATEWAY,
    "provider_auth": BAD_GATEWAY,
    "provider_parameter": BAD_GATEWAY,
    "provider_quota": BAD_GATEWAY,
    "provider_rejected": BAD_GATEWAY,
}
BY_CLASS: tuple[tuple[type[HoldfastError], ErrorRow], ...] = (
    (NotFoundError, NOT_FOUND),
    (ConflictError, CONFLICT),
    (BadRequestError, BAD_REQUEST),
    (StoreUnavailableError, UNAVAILABLE),
    (SchemaError, UNAVAILABLE),
    (NotReadyError, UNAVAILABLE),
    (WorkError, UNUSABLE),
    (HoldfastError, OTHER),
)


def row_of(error: HoldfastError) -> ErrorRow:
    """How the error is reported; as an internal error if it should never get this far."""
    return BY_CODE.get(error.code) or next(row for kind, row in BY_CLASS if isinstance(error, kind))
