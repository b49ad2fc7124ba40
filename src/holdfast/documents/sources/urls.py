"""A list of URLs: each is one document, asked for with the validators of its last version."""

from holdfast.documents.sources.downloads import Downloader, file_name
from holdfast.documents.sources.options import SourceOptions
from holdfast.documents.sources.source import (
    FETCHES_AT_ONCE,
    FetchedItem,
    Listing,
    SourceError,
    SourceItem,
    SourceLimits,
)

MOST_URLS = 10_000


class UrlList:
    """See `Source`. Whether a URL has changed is known only when it is fetched."""

    at_once = FETCHES_AT_ONCE

    def __init__(self, urls: tuple[str, ...], limits: SourceLimits) -> None:
        self._urls = urls
        self._limits = limits
        self._downloader = Downloader(limits)

    def list(self, state: str) -> Listing:  # noqa: ARG002 (a list has none)
        """See `Source.list`."""
        if len(self._urls) > self._limits.items:
            raise SourceError(
                "too_many_items",
                f"the list has {len(self._urls):,} URLs; the limit is {self._limits.items:,}; split it",
            )
        return Listing([SourceItem(url, "", file_name(url), url) for url in self._urls])

    def fetch(self, item: SourceItem, version: str) -> FetchedItem | None:
        """See `Source.fetch`."""
        return self._downloader.item(item.external_id, version)


def from_options(options: SourceOptions, limits: SourceLimits) -> UrlList:
    """The option: `urls`, a list."""
    lines = options.texts("urls", MOST_URLS)
    options.check_unknown()
    if not lines:
        raise options.error("urls", "should have at least one URL")
    urls = dict.fromkeys(options.checked_url("urls", line) for line in lines)
    return UrlList(tuple(urls), limits)
