"""What clients of paid HTTP services share: one JSON body is sent at most once, and its answer is validated.

The body of a 200 is validated before it counts as an answer. An invalid one was most likely charged and
cannot be used: it is `Unknown`.
"""

from __future__ import annotations

import json
import ssl
import urllib.parse
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from holdfast import faults
from holdfast.providers import event_stream, statuses, wire
from holdfast.providers.base import Answered, Exchange, Outcome, Profile, Profiled, Unknown


class UnreadableAnswerError(Exception):
    """A 200 whose body does not answer the request."""


class HttpProvider(Profiled):
    """A server that takes POSTs of JSON below `base_url`, with the API key as a bearer token."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        profile: Profile,
        *,
        max_connections: int = 64,
        max_answer: int = wire.MAX_ANSWER,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._base_url = _checked_url(base_url)
        if not (api_key.isascii() and (api_key.isprintable() or not api_key)):
            raise ValueError("the API key has characters that are not allowed in an HTTP header")
        self._api_key = api_key
        super().__init__(profile)
        self._wire = wire.Wire(
            max_connections=max_connections, max_answer=max_answer, ssl_context=ssl_context
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._base_url!r}, profile={self._profile.name!r})"

    @property
    def address(self) -> str:
        """Host and port of the server."""
        return urllib.parse.urlsplit(self._base_url).netloc

    def send(self, exchange: Exchange, gate: Callable[[], bool]) -> Outcome:
        """Send the exchange at most once and return the outcome (see `base.Provider.send`)."""
        headers = {
            "Content-Type": "application/json",
            "Accept": f"application/json, {event_stream.MEDIA_TYPE}",
            "Accept-Encoding": "identity",
            "User-Agent": "holdfast",
            "Idempotency-Key": exchange.idempotency_key,
        }
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        url = f"{self._base_url}/{exchange.endpoint}"
        reply = self._wire.post(
            url,
            headers,
            exchange.body,
            gate,
            send_by=exchange.send_by,
            deadline=exchange.deadline,
            hear=self._heard_by(exchange),
        )
        if not isinstance(reply, wire.HttpReply):
            return reply
        faults.point("send.answered")
        if not 200 <= reply.status < 300:
            return statuses.judge(reply, self._profile, self._api_key)
        try:
            return self._answer(exchange, reply)
        except UnreadableAnswerError as exc:
            return Unknown(f"unreadable answer: {exc}", reply.status)

    def count_tokens(self, text: str) -> int:
        """Return an estimate: one token per four ASCII characters or one other, at least 1."""
        return estimated_tokens(text)

    def close(self) -> None:
        """Close idle connections; exchanges still in progress end as `Unknown`."""
        self._wire.close()

    @abstractmethod
    def _answer(self, exchange: Exchange, reply: wire.HttpReply) -> Answered:
        """What a 200 says; UnreadableAnswerError if it does not answer the request."""

    def _heard_by(self, _exchange: Exchange) -> Callable[[bytes], None] | None:
        """What hears the body of an answer while it arrives."""
        return None


def _checked_url(base_url: str) -> str:
    parts = urllib.parse.urlsplit(base_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or not base_url.isascii():
        raise ValueError("base_url must look like https://host/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(
            "base_url must not contain credentials, a query or a fragment; use api_key for the key"
        )
    return base_url.rstrip("/")


def estimated_tokens(text: str) -> int:
    """One token per four ASCII characters or one other, at least 1."""
    ascii_chars = len(text.encode("ascii", "ignore"))
    return max(1, -(-ascii_chars // 4) + len(text) - ascii_chars)


def canonical(value: object) -> bytes:
    """A body as bytes: the same for the same value."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return text.encode()  # a lone surrogate raises UnicodeEncodeError, which is a ValueError


def parsed(reply: wire.HttpReply) -> dict[str, Any]:
    """The JSON object of an answer; UnreadableAnswerError for anything else."""
    if reply.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnreadableAnswerError("compressed without request")
    try:
        answer = json.loads(reply.body)
    except (ValueError, RecursionError) as exc:
        raise UnreadableAnswerError("not JSON") from exc
    if not isinstance(answer, dict):
        raise UnreadableAnswerError("not an object")
    return answer


def count(value: object) -> int | None:
    """A number of tokens or units that a server reported; None for anything else."""
    return value if type(value) is int and value >= 0 else None
