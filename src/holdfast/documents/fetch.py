"""A document from a URL, within limits, and never from inside the network that the worker stands in.

`httpcore` and not `http.client`: it lets us give it the socket (`providers.sockets`), follows no redirect,
reads no proxy from the environment and decodes no content by itself, so that each is decided here: every
redirect is a new fetch with its own check, and what a compressed answer expands to is counted as it expands.
"""

import re
import ssl
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
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
# A name, or an address of either sort; a colon is in none but IPv6.
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
    """What one fetch may cost: bytes as they come and as they expand, seconds in all, redirects."""

    bytes: int = 256 * 1024 * 1024
    seconds: float = 60.0
    redirects: int = 5
    allow_private: bool = False


@dataclass(frozen=True, slots=True)
class Validators:
    """What the server said about the version it gave, to be shown to it the next time."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """The content was written: where it came from in the end, a name that hints at its format, its size."""

    url: str
    name: str
    content_type: str
    size: int
    validators: Validators


@dataclass(frozen=True, slots=True)
class NotModified:
    """The server says that the version shown to it is still the one; nothing was written."""

    validators: Validators


def fetch(
    url: str,
    into: BinaryIO,
    *,
    known: Validators | None = None,
    limits: FetchLimits | None = None,
    tls: ssl.SSLContext | None = None,
) -> Fetched | NotModified:
    """The content behind the URL is in `into`, or it is unchanged since `known`.

    Raises WorkError: `url_forbidden` for what must not be asked, `url_too_large`, `url_failed` for the rest.
    After an error `into` may hold a part; what `into` itself raises is passed on.
    """
    limits = limits or FetchLimits()
    deadline = boot_time() + limits.seconds
    try:
        for _hop in range(limits.redirects + 1):
            left = deadline - boot_time()
            with addresses.pool(left, tls, allow_private=limits.allow_private) as pool:
                found = _ask(pool, url, into, known or Validators(), limits)
            if not isinstance(found, str):
                return found
            url = _redirected(url, found)
    except ForbiddenAddressError as error:
        raise WorkError(f"the URL may not be fetched: {error}", code="url_forbidden") from error
    except (LateError, httpcore.TimeoutException) as error:
        raise WorkError(f"{url} took longer than {limits.seconds:g} s", code="url_failed") from error
    except (WithheldError, httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise WorkError(f"{url} cannot be fetched: {error}", code="url_failed") from error
    raise WorkError(f"the URL redirects more than {limits.redirects} times", code="url_failed")


def _ask(
    pool: httpcore.ConnectionPool, url: str, into: BinaryIO, known: Validators, limits: FetchLimits
) -> Fetched | NotModified | str:
    """One request: the content, the word that it is unchanged, or where to go next."""
    address = checked(url)
    with pool.stream("GET", address, headers=_headers(address, known)) as response:
        headers = {
            name.lower().decode("latin-1"): value.decode("latin-1") for name, value in response.headers
        }
        if response.status in _REDIRECTS and "location" in headers:
            return headers["location"]
        if response.status == 304 and known != Validators():
            return NotModified(known)
        if response.status != 200:
            raise WorkError(f"{url} answered with status {response.status}", code="url_failed")
        size = 0
        for part in _expanded(response.iter_stream(), headers.get("content-encoding", ""), limits):
            size += len(part)
            if size > limits.bytes:
                raise _too_large(limits)
            into.write(part)
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    validators = Validators(headers.get("etag"), headers.get("last-modified"))
    return Fetched(address, _name(address, kind), kind, size, validators)


def _redirected(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError as error:
        raise WorkError(f"{url} redirects to what is not a URL", code="url_failed") from error


def _headers(address: str, known: Validators) -> list[tuple[bytes, bytes]]:
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
    # As they came: an ETag may have any byte above the control characters in it.
    return [(name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in headers]


def checked(url: str) -> str:
    """The URL in ASCII and without its fragment; WorkError for what is none or must not be asked."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
        if not host.isascii():
            host = host.encode("idna").decode("ascii")
    except ValueError as error:
        raise WorkError(f"{url!r:.200} is not a URL: {error}", code="url_forbidden") from error
    if parts.scheme not in {"http", "https"} or not _HOST.fullmatch(host):
        raise WorkError(f"{url!r:.200} is not a URL of http or https", code="url_forbidden")
    if not url.strip().isprintable():  # urlsplit takes line breaks and tabs out of the middle without a word
        raise WorkError(f"{url!r:.200} has control characters in it", code="url_forbidden")
    if parts.username is not None or parts.password is not None:
        raise WorkError("a URL with a user name or password in it is not fetched", code="url_forbidden")
    netloc = f"[{host}]" if ":" in host else host
    netloc = netloc if port is None else f"{netloc}:{port}"
    return urlunsplit((parts.scheme, netloc, quote(parts.path, _SAFE) or "/", quote(parts.query, _SAFE), ""))


def _expanded(stream: Iterator[bytes], encoding: str, limits: FetchLimits) -> Iterator[bytes]:
    """The content as it was before it was compressed, in parts so small that no bomb goes off unseen."""
    encoding = encoding.strip().lower()
    if encoding in {"", "identity"}:
        yield from stream
        return
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise WorkError(f"the content comes in an encoding not asked for: {encoding}", code="url_failed")
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
        raise WorkError("the compressed content ends too soon", code="url_failed")


def _too_large(limits: FetchLimits) -> WorkError:
    return WorkError(f"the content is larger than the limit of {limits.bytes:,} bytes", code="url_too_large")


def _name(address: str, content_type: str) -> str:
    """The last part of the path, with the ending that the content type calls for."""
    name = unquote(urlsplit(address).path.rpartition("/")[2])[-200:] or "index"
    ending = _ENDINGS.get(content_type, "")
    if name.lower().endswith(ending) or (content_type == "text/plain" and "." in name):
        return name
    return name + ending
