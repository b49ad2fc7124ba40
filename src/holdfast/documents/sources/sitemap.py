"""A sitemap: the pages of a site, as its owner lists them (sitemaps.org), also in several files and levels.

The version of a page is its `lastmod`; a page without one is asked for with the validators of its last
version. A sitemap is foreign input: unless `other_hosts` is set it can name only pages of its own host, and
those cannot redirect elsewhere.
"""

import dataclasses
import gzip
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from holdfast.clock import boot_time
from holdfast.core.errors import WorkError
from holdfast.documents import fetch
from holdfast.documents.fetch import RequestDetails
from holdfast.documents.sources import xml_events
from holdfast.documents.sources.downloads import Downloader, file_name, same_host
from holdfast.documents.sources.options import SourceOptions
from holdfast.documents.sources.patterns import PathFilter
from holdfast.documents.sources.robots import Robots
from holdfast.documents.sources.source import (
    FETCHES_AT_ONCE,
    FetchedItem,
    Listing,
    SourceError,
    SourceItem,
    SourceLimits,
)
from holdfast.documents.sources.xml_events import ByteStream, LimitedText, local_name

# As sitemaps.org limits one file, unpacked.
MOST_BYTES = 50 * 1024 * 1024
# An index of indexes of sitemaps, and no more.
MOST_LEVELS = 3
MOST_FILES = 1000
MOST_URL = 2048
MOST_LASTMOD = 64
# The whole of a listing takes at most so many times the limit of one exchange.
LISTING_EXCHANGES = 10
_MOST_LINE = 8192
_Failures = list[SourceError]


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    """A page, or with `is_sitemap` another sitemap, and when it changed, in its owner's words."""

    url: str
    lastmod: str = ""
    is_sitemap: bool = False


class Sitemap:
    """See `Source`. The robots.txt of a host is read before its first item is fetched, unless ignored."""

    at_once = FETCHES_AT_ONCE

    def __init__(
        self,
        url: str,
        paths: PathFilter,
        limits: SourceLimits,
        *,
        other_hosts: bool,
        ignore_robots: bool = False,
    ) -> None:
        self._url = url
        self._paths = paths
        self._limits = limits
        self._downloader = Downloader(limits)
        self._robots = None if ignore_robots else Robots(self._downloader)
        self._is_ours: Callable[[str], bool] = (lambda _url: True) if other_hosts else same_host(url)
        self._details = RequestDetails(may_follow=self._is_ours)

    def list(self, state: str) -> Listing:  # noqa: ARG002 (an unchanged sitemap may list changed pages)
        """See `Source.list`. The items are read as they are asked for."""
        return Listing(self._items())

    def fetch(self, item: SourceItem, version: str) -> FetchedItem | None:
        """See `Source.fetch`. The version of a page with `lastmod` is that, as it is in the listing."""
        if self._robots is not None:
            self._robots.check(item.external_id)
        fetched = self._downloader.item(item.external_id, version, details=self._details)
        if fetched is None or not item.version:
            return fetched
        return dataclasses.replace(fetched, version=item.version)

    def _items(self) -> Iterator[SourceItem]:
        """Each page once. A sitemap that fails is reported at the end, after the pages of the others."""
        urls: set[str] = set()
        failures: _Failures = []
        for entry in self._pages(failures):
            if entry.url in urls or not self._is_ours(entry.url) or not self._paths.accepts_url(entry.url):
                continue
            if len(urls) >= self._limits.items:
                raise SourceError(
                    "too_many_items",
                    f"{self._url} lists more than {self._limits.items:,} pages; choose some with include",
                )
            urls.add(entry.url)
            yield SourceItem(entry.url, entry.lastmod, file_name(entry.url), entry.url)
        if failures:
            raise failures[0]

    def _pages(self, failures: _Failures) -> Iterator[SitemapEntry]:
        deadline = boot_time() + LISTING_EXCHANGES * self._limits.seconds
        waiting, visited = [(self._url, 1)], {self._url}
        while waiting:
            url, level = waiting.pop(0)
            try:
                for entry in self._entries(url, deadline):
                    if not entry.is_sitemap:
                        yield entry
                    elif entry.url not in visited and self._is_ours(entry.url):
                        self._check_levels(url, level, len(visited))
                        visited.add(entry.url)
                        waiting.append((entry.url, level + 1))
            except SourceError as error:
                failures.append(error)

    def _check_levels(self, url: str, level: int, files: int) -> None:
        if level >= MOST_LEVELS:
            raise SourceError("bad_source", f"{url} is an index nested more than {MOST_LEVELS - 1} deep")
        if files >= MOST_FILES:
            raise SourceError("too_many_items", f"{self._url} has more than {MOST_FILES:,} sitemaps")

    def _entries(self, url: str, deadline: float) -> Iterator[SitemapEntry]:
        left = deadline - boot_time()
        if left <= 0:
            raise SourceError("unreachable", f"the sitemaps of {self._url} took too long to read")
        download = self._downloader.get(url, details=self._details, most_bytes=MOST_BYTES, seconds=left)
        if download is None:
            return
        with download.content as content:
            for entry in entries(content, url):
                address = _checked(entry.url)
                if address is not None:
                    yield SitemapEntry(address, entry.lastmod, entry.is_sitemap)


def entries(content: BinaryIO, what: str) -> Iterator[SitemapEntry]:
    """What a sitemap lists: XML or text, plain or compressed; SourceError if it is neither."""
    head = content.read(2)
    content.seek(0)
    if head != b"\x1f\x8b":
        yield from _unpacked_entries(content, what)
        return
    try:
        with gzip.GzipFile(fileobj=content) as unpacked:
            yield from _unpacked_entries(_Bounded(unpacked, MOST_BYTES, what), what)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceError("bad_source", f"{what} is damaged: {error}") from error


def _unpacked_entries(content: ByteStream, what: str) -> Iterator[SitemapEntry]:
    head = content.read(4096)
    rest = _Rejoined(head, content)
    # UTF-16 has a zero in every other byte.
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<" or b"\0" in head[:4]:
        handler = _SitemapHandler(what)
        for _ in xml_events.read(rest, handler, what):
            yield from handler.take()
    else:
        yield from _lines(rest, what)


def _lines(content: "_Rejoined", what: str) -> Iterator[SitemapEntry]:
    """A URL in each line; what is no URL makes it something else than a sitemap."""
    rest = b""
    while part := content.read(_MOST_LINE):
        *lines, rest = (rest + part).split(b"\n")
        if len(rest) > _MOST_LINE:
            raise SourceError("bad_source", f"{what} is neither XML nor a list of URLs")
        yield from _entries_of(lines, what)
    yield from _entries_of([rest], what)


def _entries_of(lines: list[bytes], what: str) -> Iterator[SitemapEntry]:
    for line in lines:
        url = line.decode("utf-8-sig", "replace").strip()
        if url and not url.startswith(("http://", "https://")):
            raise SourceError("bad_source", f"{what} is neither XML nor a list of URLs")
        if url:
            yield SitemapEntry(url)


class _SitemapHandler:
    """Collects `url` and `sitemap` elements. Other vocabularies nest their `loc` deeper, as images do."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._entries: list[SitemapEntry] = []
        self._texts: dict[str, LimitedText] = {}
        self._current: LimitedText | None = None

    def take(self) -> list[SitemapEntry]:
        """The entries since the last call."""
        taken, self._entries = self._entries, []
        return taken

    def start(self, depth: int, name: str, _attributes: dict[str, str]) -> None:
        name = local_name(name)
        if depth == 1 and name not in {"urlset", "sitemapindex"}:
            hint = "; use a source of type feed" if name in {"rss", "feed", "RDF"} else ""
            raise SourceError("bad_source", f"{self._what} is no sitemap: it begins with <{name[:40]}>{hint}")
        if depth == 2:
            self._texts = {}
        self._current = None
        if depth == 3 and name in {"loc", "lastmod"}:
            self._current = self._texts[name] = LimitedText(MOST_URL + 1)

    def text(self, text: str) -> None:
        if self._current is not None:
            self._current.add(text)

    def end(self, depth: int, name: str) -> None:
        name, self._current = local_name(name), None
        if depth == 2 and name in {"url", "sitemap"}:
            url, lastmod = (str(self._texts.get(key, "")).strip() for key in ("loc", "lastmod"))
            is_version = len(lastmod) <= MOST_LASTMOD and lastmod.isprintable()
            if 0 < len(url) <= MOST_URL:
                entry = SitemapEntry(url, lastmod if is_version else "", name == "sitemap")
                self._entries.append(entry)


class _Rejoined:
    """A stream whose first bytes were looked at."""

    def __init__(self, head: bytes, rest: ByteStream) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most `size`."""
        if self._head:
            part, self._head = self._head[:size], self._head[size:]
            return part
        return self._rest.read(size)


class _Bounded:
    """A stream that is an error beyond a number of bytes."""

    def __init__(self, stream: gzip.GzipFile, most: int, what: str) -> None:
        self._stream = stream
        self._left = most
        self._what = what

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most `size`."""
        part = self._stream.read(size)
        self._left -= len(part)
        if self._left < 0:
            raise SourceError("bad_source", f"{self._what} is larger than {MOST_BYTES:,} bytes when unpacked")
        return part


def _checked(url: str) -> str | None:
    """The URL as it is fetched; None for one that cannot be."""
    try:
        return fetch.checked(url)
    except WorkError:
        return None


def from_options(options: SourceOptions, limits: SourceLimits) -> Sitemap:
    """The options: `url`; `include` and `exclude`, patterns of paths; `other_hosts`; `ignore_robots`."""
    url = options.url("url")
    paths = PathFilter(options.patterns("include"), options.patterns("exclude"))
    other_hosts, ignore_robots = options.flag("other_hosts"), options.flag("ignore_robots")
    options.check_unknown()
    return Sitemap(url, paths, limits, other_hosts=other_hosts, ignore_robots=ignore_robots)
