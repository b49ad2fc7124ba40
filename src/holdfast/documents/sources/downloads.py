"""Fetches what a source names by URL, within the limits and the address rules of `documents.fetch`.

What is fetched goes to a file that has no name (`TemporaryFile`): it vanishes when it is closed and when its
process dies, however it dies.
"""

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, cast
from urllib.parse import unquote, urlsplit

from holdfast.core.errors import WorkError
from holdfast.documents import fetch
from holdfast.documents.fetch import Fetched, FetchLimits, RequestDetails, StatusError, Validators
from holdfast.documents.sources import page_titles
from holdfast.documents.sources.source import FetchedItem, SourceError, SourceErrorCode, SourceLimits

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_DENIED = frozenset({401, 403, 407})
# The server is there, and says that there is no such thing.
_WRONG_URL = frozenset({400, 404, 405, 406, 410, 414, 451})
MOST_NAME = 200
# A validator that is longer than this is not kept: the content is compared instead.
_MOST_VALIDATOR = 500
_STEP = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Download:
    """A response in a file, which is at its beginning; the caller closes it."""

    content: BinaryIO
    response: Fetched


class Downloader:
    """Fetches URLs within the limits of a source; errors are SourceErrors with a sentence for people."""

    def __init__(self, limits: SourceLimits, details: RequestDetails | None = None) -> None:
        self._limits = limits
        self._details = details or RequestDetails()

    def get(
        self,
        url: str,
        known: Validators | None = None,
        *,
        details: RequestDetails | None = None,
        most_bytes: int | None = None,
        seconds: float | None = None,
    ) -> Download | None:
        """The content of the URL; None if it is unchanged since `known`."""
        limits = FetchLimits(
            self._limits.bytes if most_bytes is None else most_bytes,
            self._limits.seconds if seconds is None else min(seconds, self._limits.seconds),
            self._limits.redirects,
            self._limits.allow_private,
        )
        with contextlib.ExitStack() as unless_returned:
            content = cast("BinaryIO", unless_returned.enter_context(tempfile.TemporaryFile()))
            try:
                response = fetch.fetch(
                    url, content, known=known, limits=limits, details=details or self._details
                )
            except WorkError as error:
                raise translated(error) from error
            if not isinstance(response, Fetched):
                return None
            content.seek(0)
            unless_returned.pop_all()
        return Download(content, response)

    def item(self, url: str, version: str, *, details: RequestDetails | None = None) -> FetchedItem | None:
        """A page or file at a URL, with what its server needs to say "unchanged"; None if it is."""
        download = self.get(url, validators_in(version), details=details)
        if download is None:
            return None
        response, digest = download.response, _digest(download.content)
        if digest == _digest_in(version):
            download.content.close()
            return None
        title = _title(download)
        name = f"{title or file_name(url)}.html" if title is not None else response.name
        version = version_of(response.validators, digest)
        return FetchedItem(download.content, version, name, response.content_type, title or "")


def translated(error: WorkError) -> SourceError:
    """The error of a fetch as one of a source."""
    code: SourceErrorCode = "unreachable"
    if isinstance(error, StatusError) and error.status in _DENIED:
        code = "access_denied"
    elif isinstance(error, StatusError) and error.status in _WRONG_URL:
        code = "bad_source"
    elif error.code == "url_forbidden":
        code = "address_refused"
    elif error.code == "url_too_large":
        code = "bad_source"
    return SourceError(code, error.message)


def file_name(url: str) -> str:
    """The last part of the URL's path, or its host: the name of a page that was not fetched yet."""
    parts = urlsplit(url)
    return unquote(parts.path.rstrip("/").rpartition("/")[2])[-MOST_NAME:] or parts.hostname or "index"


def same_host(*urls: str) -> Callable[[str], bool]:
    """True for URLs of the same hosts as these; a leading `www.` makes no difference."""
    hosts = {_host(url) for url in urls}
    return lambda url: _host(url) in hosts


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removeprefix("www."), parts.port
    except ValueError:
        return ""
    default = {"http": 80, "https": 443}.get(parts.scheme)
    return host if port in {None, default} else f"{host}:{port}"


def _title(download: Download) -> str | None:
    """The title of an HTML page whose URL has no file name, empty if it has none; None for all else."""
    response = download.response
    if response.content_type not in _HTML or urlsplit(response.url).path.rpartition("/")[2]:
        return None
    title = page_titles.title_of(download.content.read(page_titles.MOST_HEAD))
    download.content.seek(0)
    return title or ""


def _digest(content: BinaryIO) -> str:
    digest = hashlib.sha256()
    while part := content.read(_STEP):
        digest.update(part)
    content.seek(0)
    return digest.hexdigest()


def version_of(validators: Validators, digest: str = "") -> str:
    """A version as text: what its server calls it, and the digest of its bytes."""
    values = {"etag": validators.etag, "last_modified": validators.last_modified, "sha256": digest}
    short = {name: value for name, value in values.items() if value and len(value) <= _MOST_VALIDATOR}
    return json.dumps(short, separators=(",", ":")) if short else ""


def _known(version: str) -> dict[str, str]:
    try:
        values = json.loads(version) if version.startswith("{") else {}
    except ValueError:
        return {}
    return {name: value for name, value in values.items() if isinstance(value, str)}


def validators_in(version: str) -> Validators:
    """The validators of a version; none if it has none."""
    known = _known(version)
    return Validators(known.get("etag"), known.get("last_modified"))


def _digest_in(version: str) -> str | None:
    return _known(version).get("sha256")
