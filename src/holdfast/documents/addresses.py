"""Which addresses a document may be fetched from, and connections to those only.

The name is resolved here, each address is judged, and the connection is made to the very address that passed:
a name server that answers differently the second time is not asked a second time. `httpcore` takes its
sockets from such a backend, and goes on to use the name for `Host`, for SNI and for the certificate.
"""

from __future__ import annotations

import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterable
from typing import Any

import httpcore

_SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# All that is routed of IPv6; fec0::/10 and every other old or local range is outside.
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
# What `ipaddress` of some versions takes for public: documentation, relays of 6to4, IETF assignments.
_NOT_PUBLIC_V6 = (ipaddress.IPv6Network("3fff::/20"), ipaddress.IPv6Network("2001::/23"))
_NOT_PUBLIC_V4 = (ipaddress.IPv4Network("192.88.99.0/24"), ipaddress.IPv4Network("192.0.0.0/24"))
# The middle of an ISATAP address, whose last 32 bits are an IPv4 address; with and without the universal bit.
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})


class ForbiddenAddressError(Exception):
    """Every address of the name is one that must not be fetched from."""


class LateError(Exception):
    """The time for the whole fetch is over."""


def is_public(text: str) -> bool:
    """True for an address of the public internet.

    Of IPv6 addresses that lead to an IPv4 one, those of NAT64 are as public as that is, and those of 6to4 and
    ISATAP only if that is, too. Teredo is refused, and so is a mapped one, for nobody has reason to write it.
    """
    try:
        address: _Address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return _is_public(address) and not any(address in each for each in _NOT_PUBLIC_V4)
    if address in _NAT64:
        return is_public(str(_last_bits(address)))
    if address not in _GLOBAL_UNICAST or any(address in each for each in _NOT_PUBLIC_V6):
        return False
    inner = address.sixtofour
    if inner is None and (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        inner = _last_bits(address)
    return _is_public(address) and (inner is None or is_public(str(inner)))


def _last_bits(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def _is_public(address: _Address) -> bool:
    return address.is_global and not (
        address.is_multicast
        or address.is_private
        or address.is_reserved
        or address.is_loopback
        or address.is_link_local
        or address.is_unspecified
    )


def is_forbidden(host: str, seconds: float = 2.0) -> bool:
    """True when every address of the name is known, and none is of the public internet.

    False also when that cannot be told within the time: whoever connects judges again. The resolver cannot be
    interrupted, so that a slow one is left behind in a thread.
    """
    answers: queue.SimpleQueue[list[str]] = queue.SimpleQueue()

    def resolve() -> None:
        try:
            entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            entries = []
        answers.put([str(entry[4][0]) for entry in entries])

    threading.Thread(target=resolve, name="resolve", daemon=True).start()
    try:
        addresses = answers.get(timeout=seconds)
    except queue.Empty:
        return False
    return bool(addresses) and not any(is_public(address) for address in addresses)


class Clock:
    """What is left of the time for a fetch."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """The seconds left, always more than none; LateError when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise LateError
        return left


class Backend(httpcore.NetworkBackend):
    """Opens connections to allowed addresses, within the time that is left."""

    def __init__(self, clock: Clock, *, allow_private: bool) -> None:
        self._clock = clock
        self._allow_private = allow_private
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 (the clock knows)
        local_address: str | None = None,
        socket_options: Iterable[_SocketOption] | None = None,
    ) -> httpcore.NetworkStream:
        """A connection to the first allowed address that accepts one.

        getaddrinfo cannot be interrupted; a slow resolver is noticed after it.
        """
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"the name {host} has no address ({error})") from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        allowed = [address for address in addresses if self._allow_private or is_public(address)]
        if not allowed:
            # Which address it is stays here: the answers of a name server inside are nobody else's business.
            raise ForbiddenAddressError(f"{host} is not on the public internet")
        for tried, address in enumerate(allowed):
            limit = self._clock.left() / (len(allowed) - tried)
            try:
                stream = self._plain.connect_tcp(address, port, limit, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem: Exception = error
            else:
                return Stream(stream, self._clock)
        raise problem


class Stream(httpcore.NetworkStream):
    """A connection whose every operation ends with the time of the whole fetch, however slowly bytes drip."""

    def __init__(self, inner: httpcore.NetworkStream, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 (the clock knows)
        """What has come."""
        return self._inner.read(max_bytes, self._clock.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 (the clock knows)
        """All of the buffer has been written."""
        self._inner.write(buffer, self._clock.left())

    def close(self) -> None:
        """The connection is closed."""
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 (the clock knows)
    ) -> httpcore.NetworkStream:
        """This connection, encrypted and its server's name verified."""
        return Stream(self._inner.start_tls(ssl_context, server_hostname, self._clock.left()), self._clock)

    def get_extra_info(self, info: str) -> Any:
        """What `httpcore` asks of a stream."""
        return self._inner.get_extra_info(info)
