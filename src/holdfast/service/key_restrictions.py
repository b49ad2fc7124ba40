"""Changes by a key with a filter: each document passes the filter before and after.

Otherwise such a key could hand out documents that it must not see, or take labels off, and what it adds would
be gone for itself.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

from holdfast.core import filters
from holdfast.core.errors import BadRequestError
from holdfast.service.access import KeyRestrictedError
from holdfast.service.requests import RequestContext
from holdfast.store.library.documents import Document, DocumentDraft


def _outside(what: str) -> KeyRestrictedError:
    message = f"{what} would not pass the filter of this key; set its metadata and labels so that it does"
    return KeyRestrictedError(message)


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
        labels=draft.labels,
        format=None,
        pages=None,
        created_at=now,
        updated_at=now,
    )
    if not filters.matches(wish.only, new):
        raise _outside("the document")


def check_existing(wish: RequestContext, document: Document) -> None:
    """Return unless the content belongs to a document that does not exist for this key."""
    if wish.only is not None and not filters.matches(wish.only, document):
        raise BadRequestError("a document of this collection has the same content", code="same_content")


def check_change(
    wish: RequestContext,
    document: Document,
    *,
    title: str | None,
    metadata: Mapping[str, Any] | None,
    labels: Sequence[str] | None,
) -> None:
    """Return if the document will pass as changed."""
    if wish.only is None:
        return
    changed = replace(
        document,
        title=document.title if title is None else title,
        metadata=document.metadata if metadata is None else metadata,
        labels=document.labels if labels is None else tuple(labels),
    )
    if not filters.matches(wish.only, changed):
        raise _outside("the document as changed")
