"""Sends an event to a user's URL: one POST, to an allowed address, within a total time.

The connection is made as for a fetch: to the very address that was checked, never through a proxy, and no
redirect is followed, because it would carry the event to a URL that its owner did not choose.
"""

import contextlib
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpcore

from holdfast import faults
from holdfast.core.errors import WorkError
from holdfast.documents import addresses, fetch
from holdfast.providers.sockets import ForbiddenAddressError, LateError, WithheldError

MOST_ANSWER = 64 * 1024


@dataclass(frozen=True, slots=True)
class Posted:
    """The receiver's response: its status, and the seconds of its `Retry-After`, if any."""

    status: int
    retry_after: float | None = None


class PostError(Exception):
    """No response arrived; the receiver may have accepted the event anyway. The message is for people."""


def post(
    url: str,
    body: bytes,
    headers: Sequence[tuple[str, str]],
    *,
    seconds: float,
    allow_private: bool,
    tls: ssl.SSLContext | None = None,
) -> Posted:
    """The response. PostError if none came in time; WorkError `url_forbidden` for a forbidden URL."""
    address = fetch.checked(url)
    sent = [("Host", urlsplit(address).netloc), ("Connection", "close"), *headers]
    faults.point("post.first_byte")
    try:
        with (
            addresses.pool(seconds, tls, allow_private=allow_private) as pool,
            pool.stream("POST", address, headers=sent, content=_chunks(body)) as response,
        ):
            faults.point("post.answered")
            _read_some(response)
            return Posted(response.status, _retry_after(response))
    except ForbiddenAddressError as error:
        raise WorkError(f"the URL may not be posted to: {error}", code="url_forbidden") from error
    except (LateError, httpcore.TimeoutException) as error:
        raise PostError(f"it took longer than {seconds:g} s") from error
    except (WithheldError, httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise PostError(f"the connection failed: {error}") from error


def _chunks(body: bytes) -> Iterator[bytes]:
    """The body in one piece; the process may die after the headers are sent and before the body is."""
    faults.point("post.begun")
    yield body


def _read_some(response: httpcore.Response) -> None:
    """Read a little of the response body, which is not used, so that a correct server is not cut off."""
    read = 0
    with contextlib.suppress(httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
        for part in response.iter_stream():
            read += len(part)
            if read > MOST_ANSWER:
                return


def _retry_after(response: httpcore.Response) -> float | None:
    for name, value in response.headers:
        if name.lower() == b"retry-after" and value.isdigit() and len(value) < 10:
            return float(value)
    return None
