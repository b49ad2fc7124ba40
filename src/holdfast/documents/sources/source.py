"""What every type of source offers: a list of its items, and the content of one item.

A source is a place outside of the installation that holds documents: a folder, a bucket, a list of URLs, a
feed, a repository. A look asks for the list first, and fetches only what is new or changed since
the last look. A look never writes to the source.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal, Protocol

SourceErrorCode = Literal["unreachable", "access_denied", "bad_source", "too_many_items", "address_refused"]

# The largest `state` that a source may hand back, in bytes.
MOST_STATE = 4096
# Options that are secret in every type of source: kept apart, and shown to nobody. All of them are strings.
SECRET_OPTIONS = frozenset({"password", "secret_access_key", "session_token", "token"})


class SourceError(Exception):
    """The source, or one item of it, could not be read. The message says what happened and what to do."""

    def __init__(self, code: SourceErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class SourceItem:
    """One thing that a source holds, and from which one document is made."""

    # Stable for ever: the URL, s3://bucket/key, the path in the repository, the path below the folder.
    external_id: str
    # ETag, time and size, blob id; empty if the source cannot tell without fetching.
    version: str
    # The file name, from which the format is recognised and which people see.
    name: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """What a source holds now.

    `items` may be lazy: iterating raises SourceError if the source fails half-way or holds more than the
    limit (`too_many_items`); the caller then knows only a part, and concludes from no absence.
    """

    items: Iterable[SourceItem]
    # Opaque, at most MOST_STATE bytes, handed back at the next look: a feed's ETag, a commit. Empty: none.
    state: str = ""
    # The source says that nothing changed since `state`: there are no items, and nothing is gone.
    unchanged: bool = False
    # False if the source shows only its newest items: an absent one is not gone.
    complete: bool = True


@dataclass(frozen=True, slots=True)
class FetchedItem:
    """The content of one item. The caller reads and closes the file."""

    content: BinaryIO
    # The version as fetched, which may be newer than the one that was listed.
    version: str
    name: str
    content_type: str = ""
    # What people call it, if that says more than the name in the list; empty otherwise.
    title: str = ""


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """Which source: its type and its options, the secret ones included; so it is never printed or logged."""

    type: str
    options: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SourceLimits:
    """What one look may take: items, bytes of one item, seconds of one exchange; and what it may reach."""

    items: int = 50_000
    bytes: int = 256 * 1024 * 1024
    seconds: float = 60.0
    redirects: int = 5
    allow_private: bool = False
    # The folders of the server that sources of the type `folder` may be in or below; none unless set.
    folders: tuple[str, ...] = ()
    # The buckets that sources of the type `s3` may read with the installation's own keys; none unless set.
    # `bucket@URL` is one at that endpoint, and a name alone one of Amazon.
    buckets: tuple[str, ...] = ()


# Exchanges with one server at the same time: as many as a browser is used to.
FETCHES_AT_ONCE = 4


class Source(Protocol):
    """A source that can be looked at. Every method may raise SourceError."""

    def list(self, state: str) -> Listing:
        """What the source holds now; `state` is that of the last look that ended well, empty at the first."""

    def fetch(self, item: SourceItem, version: str) -> FetchedItem | None:
        """The content of an item; None if it is unchanged since `version` (empty: fetch in any case)."""


def fetches_at_once(source: Source) -> int:
    """How many items of the source may be fetched side by side; 1 unless its `at_once` says otherwise."""
    return int(getattr(source, "at_once", 1))
