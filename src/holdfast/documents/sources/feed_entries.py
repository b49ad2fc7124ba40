"""The entries of a feed: RSS 2.0, RSS 1.0 (RDF) and Atom, read as a stream of events."""

import html
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.core.text import plain
from holdfast.documents.sources import xml_events
from holdfast.documents.sources.source import SourceError
from holdfast.documents.sources.xml_events import ByteStream, LimitedText, local_name

MOST_FIELD = 4096
MOST_CONTENT = 2 * 1024 * 1024
_ROOTS = frozenset({"rss", "RDF", "feed"})
_ENTRIES = frozenset({"item", "entry"})
_RDF_ABOUT = "http://www.w3.org/1999/02/22-rdf-syntax-ns# about"
# Vocabularies that feeds of any kind borrow from; others (media, itunes) have a title of something else.
_MODULES = {
    "http://purl.org/rss/1.0/modules/content/": "content:",
    "http://purl.org/dc/elements/1.1/": "dc:",
    "http://www.w3.org/2005/Atom": "atom:",
}
_CONTENTS = ("content:encoded", "content", "description", "summary")
_FIELDS = frozenset({"id", "guid", "link", "title", "updated", "pubDate", "published", "dc:date", *_CONTENTS})


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One entry. `key` is what its feed calls it; `link` is as it is written there; `content` is HTML."""

    key: str
    link: str
    title: str
    updated: str
    published: str
    content: str


def read(content: ByteStream, what: str) -> Iterator[FeedEntry]:
    """The entries in their order; SourceError `bad_source` if it is no feed."""
    handler = _FeedHandler(what)
    for _ in xml_events.read(content, handler, what):
        yield from handler.take()


class _FeedHandler:
    """Collects the fields of each entry; of nested elements only those inside of XHTML content."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._entries: list[FeedEntry] = []
        self._entry_depth = 0
        self._namespace = ""
        self._fields: dict[str, LimitedText] = {}
        self._is_text: set[str] = set()
        self._link = ""
        self._about = ""
        self._is_permalink = True
        self._field = ""

    def take(self) -> list[FeedEntry]:
        """The entries since the last call."""
        taken, self._entries = self._entries, []
        return taken

    def start(self, depth: int, name: str, attributes: dict[str, str]) -> None:
        local = local_name(name)
        if depth == 1 and local not in _ROOTS:
            hint = "; use a source of type sitemap" if local in {"urlset", "sitemapindex"} else ""
            raise SourceError("bad_source", f"{self._what} is no feed: it begins with <{local[:40]}>{hint}")
        if not self._entry_depth:
            if local in _ENTRIES and depth in {2, 3}:
                self._begin(depth, name, attributes)
        elif depth == self._entry_depth + 1:
            self._begin_field(name, attributes)
        elif self._field in _CONTENTS and local.isalnum():
            self._fields[self._field].add(f"<{local}>")

    def text(self, text: str) -> None:
        if self._field:
            self._fields[self._field].add(html.escape(text) if self._field in self._is_text else text)

    def end(self, depth: int, name: str) -> None:
        if not self._entry_depth:
            return
        if depth == self._entry_depth:
            self._entries.append(self._entry())
            self._entry_depth = 0
        elif depth == self._entry_depth + 1:
            self._field = ""
        elif self._field in _CONTENTS and local_name(name).isalnum():
            self._fields[self._field].add(f"</{local_name(name)}>")

    def _begin(self, depth: int, name: str, attributes: dict[str, str]) -> None:
        self._entry_depth, self._namespace = depth, name.rpartition(" ")[0]
        self._fields, self._is_text, self._link, self._is_permalink = {}, set(), "", True
        self._about = attributes.get(_RDF_ABOUT, "")[:MOST_FIELD]

    def _begin_field(self, name: str, attributes: dict[str, str]) -> None:
        namespace, _, local = name.rpartition(" ")
        field = local if namespace == self._namespace else _MODULES.get(namespace, "other:") + local
        if field in {"link", "atom:link"} and "href" in attributes:
            if attributes.get("rel", "alternate") == "alternate" and not self._link:
                self._link = attributes["href"][:MOST_FIELD]
            return
        if field == "guid":
            self._is_permalink = attributes.get("isPermaLink", "true").strip().lower() != "false"
        if field in _FIELDS and field not in self._fields:
            self._field = field
            self._fields[field] = LimitedText(MOST_CONTENT if field in _CONTENTS else MOST_FIELD)
            # Of Atom, plain text and XHTML; what is escaped HTML arrives as HTML.
            if field in {"content", "summary"} and attributes.get("type", "text") in {"text", "xhtml"}:
                self._is_text.add(field)

    def _entry(self) -> FeedEntry:
        guid = self._value("guid")
        link = self._link or self._value("link")
        if not link and self._is_permalink and guid.startswith(("http://", "https://")):
            link = guid
        return FeedEntry(
            guid or self._value("id") or self._about or link,
            link,
            " ".join(html.unescape(self._value("title")).split()),
            self._value("updated"),
            self._value("pubDate") or self._value("published") or self._value("dc:date"),
            next((text for name in _CONTENTS if (text := self._value(name))), ""),
        )

    def _value(self, name: str) -> str:
        return plain(str(self._fields.get(name, ""))).strip()
