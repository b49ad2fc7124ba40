"""The files of a Git repository, as its branch has them: each path is one document, its blob the version.

Git's protocol is spoken over `documents.fetch`: one request for the list of branches, one for a pack of the
newest commit without its history. A branch that has not moved is not fetched at all. The pack is held in a
file without a name and read in the limited child (`parse.repositories`).
"""

import base64
import contextlib
import dataclasses
import tempfile
import weakref
from pathlib import Path
from typing import BinaryIO, cast

from holdfast import extras
from holdfast.core.errors import WorkError
from holdfast.documents.fetch import RequestDetails
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.records import MIB, ParseLimits
from holdfast.documents.sources import git_protocol
from holdfast.documents.sources.downloads import Downloader
from holdfast.documents.sources.options import SourceOptions
from holdfast.documents.sources.patterns import PathFilter
from holdfast.documents.sources.source import FetchedItem, Listing, SourceError, SourceItem, SourceLimits

MOST_ADVERTISED = 64 * MIB
MOST_PACK = 512 * MIB
# Of the child that reads a pack: beside the pack, its index and a chain of deltas are in memory.
READING = ParseLimits(seconds=300.0, memory=MOST_PACK + 768 * MIB, bytes=MOST_PACK)
# An exchange of a pack may take so many times the limit of one exchange.
PACK_EXCHANGES = 10
_LFS = b"version https://git-lfs.github.com/spec/"
_SERVICE = "/info/refs?service=git-upload-pack"
_POST = (
    ("Content-Type", "application/x-git-upload-pack-request"),
    ("Accept", "application/x-git-upload-pack-result"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class _Checkout:
    """One commit: its pack, and its files by path."""

    head: str
    pack: BinaryIO
    blobs: dict[str, str]

    @property
    def path(self) -> Path:
        """A name of the open file, for this process."""
        return Path(f"/dev/fd/{self.pack.fileno()}")


class GitRepository:
    """See `Source`."""

    def __init__(
        self,
        url: str,
        branch: str,
        authorization: tuple[tuple[str, str], ...],
        paths: PathFilter,
        limits: SourceLimits,
    ) -> None:
        self._url = url.rstrip("/")
        self._branch = branch
        self._authorization = authorization
        self._paths = paths
        self._limits = limits
        slow = dataclasses.replace(limits, seconds=PACK_EXCHANGES * limits.seconds)
        self._downloader, self._slow_downloader = Downloader(limits), Downloader(slow)
        self._parser = Parser(READING, in_child=True)
        self._opened = contextlib.ExitStack()  # the pack
        weakref.finalize(self, self._opened.close)
        weakref.finalize(self, self._parser.close)
        self._checkout: _Checkout | None = None

    def list(self, state: str) -> Listing:
        """See `Source.list`. The state is the commit."""
        base, offer = self._advertised()
        head = self._head(offer)
        if head == state:
            return Listing((), state, unchanged=True)
        checkout = self._checked_out(base, head, offer.capabilities)
        return Listing(
            [SourceItem(path, blob, path.rpartition("/")[2]) for path, blob in checkout.blobs.items()], head
        )

    def fetch(self, item: SourceItem, version: str) -> FetchedItem | None:
        """See `Source.fetch`."""
        checkout = self._checkout
        if checkout is None:
            base, offer = self._advertised()
            checkout = self._checked_out(base, self._head(offer), offer.capabilities)
        blob = checkout.blobs.get(item.external_id)
        if blob is None:
            raise SourceError("bad_source", f"the repository no longer has the file {item.external_id}")
        if blob == version:
            return None
        with contextlib.ExitStack() as unless_returned:
            content = cast("BinaryIO", unless_returned.enter_context(tempfile.TemporaryFile()))
            try:
                self._parser.file(checkout.path, blob, content, self._limits.bytes)
            except WorkError as error:
                raise self._explained(error, item.external_id) from error
            content.seek(0)
            if content.read(len(_LFS)) == _LFS:
                raise SourceError(
                    "bad_source", f"{item.external_id} is stored in Git LFS, which is not supported"
                )
            content.seek(0)
            unless_returned.pop_all()
        return FetchedItem(content, blob, item.name)

    def _advertised(self) -> tuple[str, git_protocol.Advertisement]:
        """The URL of the repository after redirects, and what its server offers."""
        download = self._downloader.get(
            self._url + _SERVICE, details=RequestDetails(self._authorization), most_bytes=MOST_ADVERTISED
        )
        if download is None:
            raise SourceError("bad_source", f"{self._url} does not speak Git's protocol")
        with download.content as content:
            offer = git_protocol.advertisement(content, self._branch, self._url)
        return download.response.url.removesuffix(_SERVICE), offer

    def _head(self, offer: git_protocol.Advertisement) -> str:
        if offer.head is None:
            name = f"branch or tag {self._branch}" if self._branch else "commit"
            raise SourceError("bad_source", f"{self._url} has no {name}")
        if "object-format=sha256" in offer.capabilities:
            raise SourceError("bad_source", f"{self._url} uses SHA-256, which is not supported yet")
        return offer.head

    def _checked_out(self, base: str, head: str, capabilities: frozenset[str]) -> _Checkout:
        if self._checkout is not None and self._checkout.head == head:
            return self._checkout
        with contextlib.ExitStack() as unless_returned:
            pack = cast("BinaryIO", unless_returned.enter_context(tempfile.TemporaryFile()))
            self._receive(base, git_protocol.request(head, capabilities), pack)
            checkout = _Checkout(head, pack, {})
            try:
                listing = self._parser.files(checkout.path, head, self._paths, self._limits.items)
            except WorkError as error:
                raise self._explained(error, "a file") from error
            if listing.is_cut:
                raise SourceError(
                    "too_many_items",
                    f"{self._url} has over {self._limits.items:,} files; choose some by path or include",
                )
            checkout.blobs.update(listing.files)
            self._opened.close()
            self._opened.push(unless_returned.pop_all())
        self._checkout = checkout
        return checkout

    def _receive(self, base: str, body: bytes, pack: BinaryIO) -> None:
        """Write the pack to the file. The token goes only to the origin that it is for."""
        own = base == self._url or base.startswith(f"{_origin(self._url)}/")
        details = RequestDetails((*_POST, *(self._authorization if own else ())), body)
        download = self._slow_downloader.get(f"{base}/git-upload-pack", details=details, most_bytes=MOST_PACK)
        if download is None:
            raise SourceError("bad_source", f"{self._url} sent no files")
        with download.content as content:
            git_protocol.unpack(content, pack, self._url)
        pack.flush()
        pack.seek(0)

    def _explained(self, error: WorkError, name: str) -> SourceError:
        """What a failure of the child means for a repository."""
        if error.code in {"driver_missing", "parser_unfit"}:
            return SourceError("bad_source", error.message)
        if error.code == "too_large":
            return SourceError("bad_source", f"{name}: {error.message}")
        if error.code in {"parse_timeout", "parse_memory"}:
            return SourceError("bad_source", f"{self._url} is too large to be read; choose a smaller one")
        return SourceError("bad_source", f"{self._url} sent a damaged repository: {error.message}")


def _origin(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])


def from_options(options: SourceOptions, limits: SourceLimits) -> GitRepository:
    """The options: `url`, `branch`, `path`, `include`, `exclude`, `token`, `username`."""
    extras.require(("git",), "a source of type git")
    text = options.text("url")
    if text.startswith(("git@", "ssh://", "git://")):
        raise options.error("url", "should begin with https://; ssh and git:// are not supported")
    url = options.url("url")
    if "?" in url:
        raise options.error("url", "should have no question mark")
    branch, token = options.text("branch", ""), options.text("token", "")
    username = options.text("username", "x-access-token")
    below = options.text("path", "").strip("/")
    paths = PathFilter(options.patterns("include"), options.patterns("exclude"), f"{below}/" if below else "")
    options.check_unknown()
    return GitRepository(url, branch, _authorization(username, token), paths, limits)


def _authorization(username: str, token: str) -> tuple[tuple[str, str], ...]:
    if not token:
        return ()
    pair = base64.b64encode(f"{username}:{token}".encode()).decode("ascii")
    return (("Authorization", f"Basic {pair}"),)
