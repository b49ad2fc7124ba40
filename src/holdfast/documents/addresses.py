"""Which addresses a document may be fetched from, and connections to those only (see `providers.sockets`)."""

from __future__ import annotations

import contextlib
import ipaddress
import queue
import socket
import ssl
import threading
from collections.abc import Iterator

import httpcore

from holdfast.clock import boot_time
from holdfast.providers import sockets

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# All that is routed of IPv6; fec0::/10 and every other old or local range is outside.
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
# What `ipaddress` of some versions takes for public: documentation, relays of 6to4, IETF assignments.
_NOT_PUBLIC_V6 = (ipaddress.IPv6Network("3fff::/20"), ipaddress.IPv6Network("2001::/23"))
_NOT_PUBLIC_V4 = (ipaddress.IPv4Network("192.88.99.0/24"), ipaddress.IPv4Network("192.0.0.0/24"))
# The middle of an ISATAP address, whose last 32 bits are an IPv4 address; with and without the universal bit.
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})


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

    False also if that cannot be decided in time: the address is checked again on connecting. The resolver
    cannot be interrupted, so a slow one is left behind in a thread.
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


@contextlib.contextmanager
def pool(
    seconds: float, tls: ssl.SSLContext | None, *, allow_private: bool
) -> Iterator[httpcore.ConnectionPool]:
    """What opens connections to allowed addresses for one request, all of which ends within the seconds.

    `httpcore` goes on to use the name for `Host`, for SNI and for the certificate.
    """
    deadline = boot_time() + seconds
    attempt = sockets.Attempt(lambda: True, send_by=deadline, deadline=deadline, reads_late=False)
    token = sockets.current.set(attempt)
    try:
        backend = sockets.Backend(lambda address: allow_private or is_public(address))
        with httpcore.ConnectionPool(network_backend=backend, ssl_context=tls) as connections:
            yield connections
    finally:
        sockets.current.reset(token)
