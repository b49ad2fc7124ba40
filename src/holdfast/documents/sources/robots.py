"""What a site asks of programs that read it: its robots.txt (RFC 9309).

The file is foreign input. It is read line by line up to a limit, and a rule is compared in time that is
linear in the length of the URL: pieces between stars are looked for one after the other, and no choice is
taken back.
"""

import string
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from holdfast.documents.sources.downloads import Downloader
from holdfast.documents.sources.source import SourceError

AGENT = "holdfast"
MOST_BYTES = 512 * 1024
MOST_RULES = 5_000
MOST_RULE = 2_048


@dataclass(frozen=True, slots=True)
class RobotsRule:
    """A path that may be fetched, or not; `*` is any run of characters, `$` at the end the end of the URL."""

    path: str
    allows: bool

    def matches(self, path: str) -> bool:
        """True if the rule is about this path."""
        first, *rest = self.path.removesuffix("$").split("*")
        if not path.startswith(first):
            return False
        at, ends = len(first), self.path.endswith("$")
        last = rest.pop() if rest and ends else None
        for piece in rest:
            found_at = path.find(piece, at)
            if found_at < 0:
                return False
            at = found_at + len(piece)
        if last is not None:
            return path.endswith(last) and len(path) - len(last) >= at
        return not ends or at == len(path)


def rules_in(text: str, agent: str = AGENT) -> list[RobotsRule]:
    """The rules for the agent: of the groups that name it, or else of those for everybody."""
    named: list[RobotsRule] = []
    everybody: list[RobotsRule] = []
    agents: set[str] = set()
    is_named = in_rules = False
    for line in text.splitlines():
        name, separator, value = line.partition("#")[0].partition(":")
        name, value = name.strip().lower(), value.strip()
        if not separator:
            continue
        if name == "user-agent":
            agents = {value.lower()} if in_rules else agents | {value.lower()}
            in_rules = False
            is_named = is_named or agent in agents
        elif name in {"allow", "disallow"}:
            in_rules = True
            rules = named if agent in agents else everybody if "*" in agents else None
            if rules is not None and value and len(value) <= MOST_RULE and len(rules) < MOST_RULES:
                rules.append(RobotsRule(_quoted(value), name == "allow"))
    return named if is_named else everybody


def allows(rules: Sequence[RobotsRule], url: str) -> bool:
    """True if the URL may be fetched: the longest rule about it decides, of two equal ones the kinder."""
    parts = urlsplit(url)
    path = _quoted((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
    about = [(len(rule.path), rule.allows) for rule in rules if rule.matches(path)]
    return max(about)[1] if about else True


def _quoted(path: str) -> str:
    """Characters that a URL does not have are written as it writes them; everything else stays."""
    return quote(path, safe=string.punctuation)


class Robots:
    """The rules of every host that a look fetches from, each read once."""

    def __init__(self, downloader: Downloader) -> None:
        self._downloader = downloader
        self._rules: dict[str, list[RobotsRule]] = {}
        self._lock = threading.Lock()

    def check(self, url: str) -> None:
        """Return if the host lets programs fetch the URL; SourceError if not, or if it cannot be asked."""
        parts = urlsplit(url)
        host = f"{parts.scheme}://{parts.netloc}"
        with self._lock:
            if host not in self._rules:
                self._rules[host] = self._read(f"{host}/robots.txt")
        if not allows(self._rules[host], url):
            message = f"the robots.txt of {host} forbids {url} to programs; set ignore_robots to fetch it"
            raise SourceError("access_denied", message)

    def _read(self, url: str) -> list[RobotsRule]:
        """The rules at the URL; none if there is no such file. A server that fails forbids everything."""
        try:
            download = self._downloader.get(url, most_bytes=8 * MOST_BYTES)
        except SourceError as error:
            if error.code in {"bad_source", "access_denied"}:
                return []
            raise
        if download is None:
            return []
        with download.content as content:
            return rules_in(content.read(MOST_BYTES).decode("utf-8-sig", "replace"))
