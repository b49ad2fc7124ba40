"""Changes by a key with a filter: each document must pass the filter before and after the change.

Otherwise such a key could reveal documents that it must not see, or remove labels, and its own uploads could
become invisible to it.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import asdict
from types import SimpleNamespace

from holdfast.core import filters
from holdfast.core.errors import KeyRestrictedError
from holdfast.service.requests import RequestContext
from holdfast.store.library.documents import DocumentDraft
from holdfast.store.library.quotas import QuotaExceededError


def _outside(what: str) -> KeyRestrictedError:
    message = f"{what} would not pass the filter of this key; set its metadata and labels so that it does"
    return KeyRestrictedError(message)


@contextlib.contextmanager
def without_totals(wish: RequestContext) -> Iterator[None]:
    """The totals of a tenant are not named to a key that may see some of its documents only."""
    try:
        yield
    except QuotaExceededError:
        if wish.only is None:
            raise
        message = "the quota of this tenant is reached; delete documents, or ask an operator to raise it"
        raise QuotaExceededError(message) from None


def check_draft(wish: RequestContext, draft: DocumentDraft) -> None:
    """Return if the new document will pass; its format and pages are not known yet."""
    if wish.only is None:
        return
    now = time.time()
    new = SimpleNamespace(
        **asdict(draft.source),
        id=draft.id,
        title=draft.title,
        metadata=draft.metadata or {},
        labels=draft.labels or (),
        properties={},
        format=None,
        language=None,
        pages=None,
        created_at=now,
        updated_at=now,
    )
    if not filters.matches(wish.only, new):
        raise _outside("the document")
