"""Requests and responses of client libraries, without the library: what the two flavours of httpx share."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# Of a connection, not of the message; and what is no longer true once a body was read and decoded.
HOP_BY_HOP = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
    }
)
CHARGE_HEADER = "holdfast-charge"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A POST of a client library. `read_timeout` is how long the client waits for the next byte."""

    url: str = field(repr=False)  # may have a key in its query
    headers: Sequence[tuple[str, str]] = field(repr=False)
    body: bytes = field(repr=False)
    read_timeout: float | None = None

    def header(self, name: str) -> str:
        """The value of a header; empty if it is not there."""
        return next((value for known, value in self.headers if known.lower() == name), "")


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A response. The body of one that is still arriving is empty."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


class TransportFailure(Exception):  # noqa: N818 - becomes an error of the client's own library
    """There is no response. `kind` names the error of the library: ConnectError, ReadError, ReadTimeout."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


def refusal(status: int, code: str, message: str, *, anthropic: bool = False) -> HttpAnswer:
    """A response of ours in the shape of the provider's errors, which its client library does not retry."""
    detail: dict[str, Any] = {"type": code, "message": f"holdfast: {message}"}
    body = {"type": "error", "error": detail} if anthropic else {"error": {**detail, "code": code}}
    headers = {"content-type": "application/json", "x-should-retry": "false", CHARGE_HEADER: "none"}
    return HttpAnswer(status, headers, json.dumps(body).encode())
