"""Fetches a document from a URL, within limits, and never from the worker's internal network.

`httpcore` and not `http.client`: it lets us supply the socket (`providers.sockets`), follows no redirect,
reads no proxy from the environment and decodes no content by itself, so that each is decided here: every
redirect is a new fetch with its own check, and the size of compressed content is counted as it expands.
"""

import re
import ssl
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit

import httpcore

from holdfast.clock import boot_time
from holdfast.core.errors import WorkError
from holdfast.documents import addresses
from holdfast.providers.sockets import ForbiddenAddressError, LateError, WithheldError

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_STEP = 64 * 1024
_SAFE = "!$%&'()*+,/:;=?@[]~-._"
# A host name or an IP address; only IPv6 contains a colon.
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f.:]+(%[A-Za-z0-9._-]+)?")
_ENDINGS = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/markdown": ".md",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "text/plain": ".txt",
}


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits of one fetch: bytes received and expanded, total seconds, redirects (0: each is a failure)."""

    bytes: int = 256 * 1024 * 1024
    seconds: float = 60.0
    redirects: int = 5
    allow_private: bool = False


@dataclass(frozen=True, slots=True)
class Validators:
    """The server's validators of a version, to be sent with the next request."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class RequestDetails:
    """What a request has beyond its URL.

    `headers` go only to the origin of the first URL: they may hold a key. With `body` it is a POST, which
    follows no redirect. `may_follow` decides about the URL of each redirect, besides the address rules.
    """

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes | None = None
    may_follow: Callable[[str], bool] | None = None


class StatusError(WorkError):
    """The server responded, and not with content; the status says why."""

    code = "url_failed"

    def __init__(self, url: str, status: int) -> None:
        super().__init__(f"{url} responded with status {status}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Fetched:
    """The content was written: its final URL, a name that hints at its format, its size."""

    url: str
    name: str
    content_type: str
    size: int
    validators: Validators


@dataclass(frozen=True, slots=True)
class NotModified:
    """The content has not changed; nothing was written."""

    validators: Validators


def fetch(
    url: str,
    into: BinaryIO,
    *,
    known: Validators | None = None,
    limits: FetchLimits | None = None,
    tls: ssl.SSLContext | None = None,
    details: RequestDetails | None = None,
) -> Fetched | NotModified:
    """Write the content of the URL to `into`, unless it is unchanged since `known`.

    Raises WorkError: `url_forbidden` for URLs that must not be fetched, `url_too_large`, `url_failed` for the
    rest (StatusError for a status). After an error `into` may hold a part; errors of `into` itself are passed
    on.
    """
    limits, details = limits or FetchLimits(), details or RequestDetails()
    deadline, origin = boot_time() + limits.seconds, _origin(checked(url))
    try:
        for _hop in range(limits.redirects + 1):
            left = deadline - boot_time()
            own = details if _origin(checked(url)) == origin else RequestDetails()
            with addresses.pool(left, tls, allow_private=limits.allow_private) as pool:
                outcome = _ask(pool, url, into, known or Validators(), limits, own)
            if not isinstance(outcome, str):
                return outcome
            url = _redirected(url, outcome, details)
    except ForbiddenAddressError as error:
        raise WorkError(f"the URL may not be fetched: {error}", code="url_forbidden") from error
    except (LateError, httpcore.TimeoutException) as error:
        raise WorkError(f"{url} took longer than {limits.seconds:g} s", code="url_failed") from error
    except (WithheldError, httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise WorkError(f"{url} cannot be fetched: {error}", code="url_failed") from error
    raise WorkError(
        f"the URL redirects more than {limits.redirects} times; use the final URL", code="url_failed"
    )


def _ask(
    pool: httpcore.ConnectionPool,
    url: str,
    into: BinaryIO,
    known: Validators,
    limits: FetchLimits,
    details: RequestDetails,
) -> Fetched | NotModified | str:
    """One request: the content, that it is unchanged, or the next URL."""
    address, body = checked(url), details.body
    method = "GET" if body is None else "POST"
    with pool.stream(method, address, headers=_headers(address, known, details), content=body) as response:
        headers = {
            name.lower().decode("latin-1"): value.decode("latin-1") for name, value in response.headers
        }
        if response.status in _REDIRECTS and "location" in headers and body is None and limits.redirects:
            return headers["location"]
        if response.status == 304 and known != Validators():
            return NotModified(known)
        if response.status != 200:
            raise StatusError(url, response.status)
        size = 0
        for part in _expanded(response.iter_stream(), headers.get("content-encoding", ""), limits):
            size += len(part)
            if size > limits.bytes:
                raise _too_large(limits)
            into.write(part)
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    validators = Validators(headers.get("etag"), headers.get("last-modified"))
    return Fetched(address, _name(address, kind), kind, size, validators)


def _redirected(url: str, location: str, details: RequestDetails) -> str:
    try:
        target = urljoin(url, location)
    except ValueError as error:
        raise WorkError(f"{url} redirects to an invalid URL", code="url_failed") from error
    if details.may_follow is not None and not details.may_follow(target):
        raise WorkError(f"{url} redirects to another host", code="url_forbidden")
    return target


def _origin(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    return parts.scheme, parts.netloc


def _headers(address: str, known: Validators, details: RequestDetails) -> list[tuple[bytes, bytes]]:
    headers = [
        ("Host", urlsplit(address).netloc),
        ("User-Agent", "holdfast"),
        ("Accept", "*/*"),
        ("Accept-Encoding", "gzip"),
        ("Connection", "close"),
    ]
    if known.etag:
        headers.append(("If-None-Match", known.etag))
    if known.last_modified:
        headers.append(("If-Modified-Since", known.last_modified))
    if details.body is not None:
        headers.append(("Content-Length", str(len(details.body))))
    extra = {name.lower() for name, _ in details.headers}
    headers = [*(pair for pair in headers if pair[0].lower() not in extra), *details.headers]
    # Unchanged: an ETag may contain any byte above the control characters.
    return [(name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in headers]


def checked(url: str) -> str:
    """The URL in ASCII and without its fragment; WorkError if it is invalid or must not be fetched."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
        if not host.isascii():
            host = host.encode("idna").decode("ascii")
    except ValueError as error:
        raise WorkError(f"{url!r:.200} is not a URL: {error}", code="url_forbidden") from error
    if parts.scheme not in {"http", "https"} or not _HOST.fullmatch(host):
        raise WorkError(f"{url!r:.200} is not an http or https URL", code="url_forbidden")
    if not url.strip().isprintable():  # urlsplit silently removes line breaks and tabs
        raise WorkError(f"{url!r:.200} contains control characters", code="url_forbidden")
    if parts.username is not None or parts.password is not None:
        raise WorkError("the URL contains a user name or password; remove it", code="url_forbidden")
    netloc = f"[{host}]" if ":" in host else host
    netloc = netloc if port is None else f"{netloc}:{port}"
    return urlunsplit((parts.scheme, netloc, quote(parts.path, _SAFE) or "/", quote(parts.query, _SAFE), ""))


def _expanded(stream: Iterator[bytes], encoding: str, limits: FetchLimits) -> Iterator[bytes]:
    """The decompressed content, in parts small enough to stop a decompression bomb in time."""
    encoding = encoding.strip().lower()
    if encoding in {"", "identity"}:
        yield from stream
        return
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise WorkError(f"the server sent an encoding that was not requested: {encoding}", code="url_failed")
    unpacker = zlib.decompressobj(47)  # gzip or zlib, by its head
    came = 0
    try:
        for part in stream:
            came += len(part)
            if came > limits.bytes:
                raise _too_large(limits)
            rest = part
            while rest and not unpacker.eof:
                yield unpacker.decompress(rest, _STEP)
                rest = unpacker.unconsumed_tail
    except zlib.error as error:
        raise WorkError(f"the compressed content is damaged: {error}", code="url_failed") from error
    if not unpacker.eof:
        raise WorkError("the compressed content is truncated", code="url_failed")


def _too_large(limits: FetchLimits) -> WorkError:
    return WorkError(f"the content is larger than the limit of {limits.bytes:,} bytes", code="url_too_large")


def _name(address: str, content_type: str) -> str:
    """The last part of the path, with the extension of the content type."""
    name = unquote(urlsplit(address).path.rpartition("/")[2])[-200:] or "index"
    ending = _ENDINGS.get(content_type, "")
    if name.lower().endswith(ending) or (content_type == "text/plain" and "." in name):
        return name
    return name + ending
