"""A feed: the newest pages of a site. What is no longer in it is not gone.

The document of an entry is what it links to, or with `content: entry` what the feed itself says. An
entry has changed when its `updated` has, or without one when anything that the feed says of it has.
"""

import hashlib
import html
import io
from collections.abc import Mapping
from urllib.parse import urljoin

from holdfast.core.errors import WorkError
from holdfast.documents import fetch
from holdfast.documents.sources import feed_entries, page_titles
from holdfast.documents.sources.downloads import Downloader, file_name, validators_in, version_of
from holdfast.documents.sources.feed_entries import FeedEntry
from holdfast.documents.sources.options import SourceOptions
from holdfast.documents.sources.patterns import PathFilter
from holdfast.documents.sources.source import (
    FETCHES_AT_ONCE,
    FetchedItem,
    Listing,
    SourceError,
    SourceItem,
    SourceLimits,
)

MOST_BYTES = 16 * 1024 * 1024
MOST_KEY = 500
MOST_VERSION = 64
_SEPARATORS = str.maketrans("/\\", "--")


class NewsFeed:
    """See `Source`."""

    at_once = FETCHES_AT_ONCE

    def __init__(self, url: str, paths: PathFilter, limits: SourceLimits, *, own_content: bool) -> None:
        self._url = url
        self._paths = paths
        self._limits = limits
        self._own_content = own_content
        self._downloader = Downloader(limits)
        self._contents: Mapping[str, bytes] | None = None

    def list(self, state: str) -> Listing:
        """See `Source.list`."""
        download = self._downloader.get(self._url, validators_in(state), most_bytes=MOST_BYTES)
        if download is None:
            return Listing((), state, unchanged=True, complete=False)
        items: dict[str, SourceItem] = {}
        contents: dict[str, bytes] = {}
        with download.content as content:
            for entry in feed_entries.read(content, self._url):
                item = self._item(entry, download.response.url)
                if item is None or item.external_id in items:
                    continue
                if len(items) >= self._limits.items:
                    raise SourceError(
                        "too_many_items", f"{self._url} has more than {self._limits.items:,} entries"
                    )
                items[item.external_id] = item
                if self._own_content:
                    contents[item.external_id] = _document(entry)
        self._contents = contents
        return Listing(tuple(items.values()), version_of(download.response.validators), complete=False)

    def fetch(self, item: SourceItem, version: str) -> FetchedItem | None:
        """See `Source.fetch`."""
        if self._own_content:
            return self._entry(item)
        fetched = self._downloader.item(item.url or item.external_id, version)
        if fetched is None:
            return None
        name = item.name if fetched.content_type in {"text/html", "application/xhtml+xml"} else fetched.name
        return FetchedItem(fetched.content, item.version, name, fetched.content_type)

    def _entry(self, item: SourceItem) -> FetchedItem:
        if self._contents is None:
            self.list("")
        content = (self._contents or {}).get(item.external_id)
        if content is None:
            raise SourceError("unreachable", f"{self._url} no longer has the entry {item.external_id[:200]}")
        return FetchedItem(io.BytesIO(content), item.version, item.name, "text/html")

    def _item(self, entry: FeedEntry, base: str) -> SourceItem | None:
        """The item of an entry; None for one that has no page, or no name of its own, or is not wanted."""
        link = _link(entry.link, base)
        key = entry.key if entry.key != entry.link else link or entry.key
        if not key or not (link or self._own_content) or not self._paths.accepts_url(link or self._url):
            return None
        if len(key) > MOST_KEY:
            key = f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"
        title = entry.title.translate(_SEPARATORS)[: page_titles.MOST_TITLE].strip()
        return SourceItem(key, _version(entry), f"{title or file_name(link or self._url)}.html", link)


def _link(link: str, base: str) -> str | None:
    """The link of an entry, as it is fetched; None if there is none that can be."""
    try:
        return fetch.checked(urljoin(base, link)) if link else None
    except (WorkError, ValueError):
        return None


def _version(entry: FeedEntry) -> str:
    if 0 < len(entry.updated) <= MOST_VERSION:
        return entry.updated
    digest = hashlib.sha256()
    for part in (entry.link, entry.title, entry.updated, entry.published, entry.content):
        digest.update(f"{len(part)}:{part}".encode())
    return f"sha256:{digest.hexdigest()}"


def _document(entry: FeedEntry) -> bytes:
    title = html.escape(entry.title)
    head = f'<!DOCTYPE html><meta charset="utf-8"><title>{title}</title>'
    return f"{head}<h1>{title}</h1><div>{entry.content}</div>".encode()


def from_options(options: SourceOptions, limits: SourceLimits) -> NewsFeed:
    """The options: `url`; `content`, `page` or `entry`; `include` and `exclude`, patterns of links."""
    url = options.url("url")
    own_content = options.choice("content", ("page", "entry")) == "entry"
    paths = PathFilter(options.patterns("include"), options.patterns("exclude"))
    options.check_unknown()
    return NewsFeed(url, paths, limits, own_content=own_content)
