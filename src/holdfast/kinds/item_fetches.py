"""The contents of items, in the order of the list, a few of them fetched ahead by threads.

Only fetching is done side by side: what is written for an item is written by the look itself, one by one.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from holdfast.core.errors import WorkError
from holdfast.core.text import is_plain
from holdfast.documents.sources.source import FetchedItem, Source, SourceItem, fetches_at_once
from holdfast.store.library.source_items import ItemRecord, ItemState

# Bytes: an index over external ids takes rows of 2,704 at most on PostgreSQL, tenant and source included.
MOST_ID = 2000
Fetch = Callable[[SourceItem, ItemRecord | None], FetchedItem | None]


@dataclass(frozen=True, slots=True)
class ItemFetch:
    """An item, what is known of it, and `content`: waits for its content, or raises why there is none."""

    item: SourceItem
    before: ItemRecord | None
    content: Callable[[], FetchedItem | None]


def in_order(
    source: Source, items: Iterable[tuple[SourceItem, ItemRecord | None]], fetch: Fetch
) -> Generator[ItemFetch]:
    """Each item with its content, which is being fetched by then if the source can do several at once.

    Close it, also after an error: what was fetched ahead and nobody took is closed.
    """
    most = fetches_at_once(source)
    if most == 1:
        for item, before in items:
            yield ItemFetch(item, before, partial(fetch, item, before))
        return
    ahead: deque[tuple[SourceItem, ItemRecord | None, Future[FetchedItem | None]]] = deque()
    pool = ThreadPoolExecutor(most, thread_name_prefix="item-fetch")
    try:
        for item, before in items:
            ahead.append((item, before, pool.submit(fetch, item, before)))
            if len(ahead) >= most:
                yield _next(ahead)
        while ahead:
            yield _next(ahead)
    finally:
        for *_, future in ahead:
            future.add_done_callback(_close)
        pool.shutdown(wait=False, cancel_futures=True)


def _next(ahead: deque[tuple[SourceItem, ItemRecord | None, Future[FetchedItem | None]]]) -> ItemFetch:
    item, before, future = ahead.popleft()
    return ItemFetch(item, before, future.result)


def _close(future: Future[FetchedItem | None]) -> None:
    """What was fetched for nobody is closed, so that its file is gone."""
    if not future.cancelled() and future.exception() is None:
        fetched = future.result()
        if fetched is not None:
            fetched.content.close()


def fits(external_id: str) -> bool:
    """True if the id can be stored."""
    return is_plain(external_id) and 0 < len(external_id.encode()) <= MOST_ID


def fetched(source: Source, item: SourceItem, before: ItemRecord | None) -> FetchedItem | None:
    """The content of the item; None if it is the one that the document has. Several threads do this."""
    if not fits(item.external_id):
        raise WorkError(
            f"its id is longer than {MOST_ID:,} bytes, or has characters that cannot be stored",
            code="bad_external_id",
        )
    known = before is not None and before.document is not None and before.state is not ItemState.FAILED
    return source.fetch(item, before.version if before is not None and known else "")
