"""Patterns that choose items by their path: `*` is any run of characters, also with slashes, `?` is one.

A pattern with a slash is compared with the whole path, one without with the last part alone, as for folders.
No regular expressions: paths are foreign text, and the time is at most their length times that of the
pattern, both of which are bounded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

MOST_PATH = 4096


@dataclass(frozen=True, slots=True)
class PathFilter:
    """Chooses paths: those that some pattern of `include` matches (all if there is none), minus `exclude`.

    With `below` only those in that folder, which ends in a slash.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    below: str = ""

    def accepts(self, path: str) -> bool:
        """True if the item at this path is wanted."""
        return self._accepts(path, "")

    def accepts_url(self, url: str) -> bool:
        """True if a page is wanted: by the path of its URL, or by all of it if a pattern has `://`."""
        return self._accepts(urlsplit(url).path, url)

    def _accepts(self, path: str, url: str) -> bool:
        def matched(patterns: Sequence[str]) -> bool:
            return any(
                _matches(url, pattern) if url and "://" in pattern else matches(path, pattern)
                for pattern in patterns
            )

        if len(path) > MOST_PATH or len(url) > MOST_PATH or not path.startswith(self.below):
            return False
        return (not self.include or matched(self.include)) and not matched(self.exclude)


def matches(path: str, pattern: str) -> bool:
    """True if the pattern matches the path, or its last part if the pattern has no slash."""
    if "/" not in pattern:
        return _matches(path.rpartition("/")[2], pattern)
    return _matches(path.lstrip("/"), pattern.removeprefix("./").lstrip("/"))


def _matches(text: str, pattern: str) -> bool:
    """Walk both; at a mismatch the last `*` takes one character more. Earlier stars never need to."""
    at = position = 0
    star, resume = -1, 0
    while at < len(text):
        if position < len(pattern) and pattern[position] == "*":
            star, resume = position, at
            position += 1
        elif position < len(pattern) and pattern[position] in {"?", text[at]}:
            at += 1
            position += 1
        elif star >= 0:
            resume += 1
            at, position = resume, star + 1
        else:
            return False
    return all(letter == "*" for letter in pattern[position:])
