"""Guards a request by an earlier estimate: it is refused if it would do something else than was estimated."""

from typing import Any

from holdfast.core.errors import ConflictError
from holdfast.service import estimates


def check(fingerprint: str | None, collection: str, **what: Any) -> None:
    """Return if no estimate was named, or the one of this very request; otherwise ConflictError."""
    if fingerprint is not None and fingerprint != estimates.fingerprint(collection, **what):
        message = "this differs from what was estimated; estimate again"
        raise ConflictError(message, code="other_estimate")
