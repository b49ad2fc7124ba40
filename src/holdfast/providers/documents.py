"""A client for services that read documents (OCR, layout, "document AI"), for parsers of the user's own.

An order holds what is sent around the file and the file's digest, never the file: that is read from the blob
store while it is sent, so an order is small and a resend is still byte for byte the same.

The body of a 2xx is the answer, whatever it says: only the parser can tell, and it is kept compressed. Pages
and tokens are taken from the usage that the answer states, pages otherwise as they were counted here.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import urllib.parse
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from holdfast import faults
from holdfast.core import keys
from holdfast.core.errors import HoldfastError
from holdfast.providers import statuses, wire
from holdfast.providers.base import Answered, Exchange, NotSent, Outcome, Profile, Unknown
from holdfast.providers.http_provider import HttpProvider, UnreadableAnswerError, count

NAME = "documents"
MAX_ANSWER = 16 * 1024 * 1024
# What is read of a file at a time: a multiple of three, so that the base64 of the parts is that of the whole.
PART = 3 * 64 * 1024
FILE = "{file}"
DOCUMENTS = Profile(
    name=NAME,
    honours_keys=False,
    key_retention=0.0,
    max_inputs=1,
    max_tokens=1,
    deadline=300.0,
    unit_tokens=2000,
)
_USAGES = ("usage", "usage_info")
_PAGES = ("pages", "pages_processed", "page_count")
_INPUT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")


class DocumentProvider(HttpProvider):
    """A service that is sent a file and answers with what is in it."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        open_file: Callable[[str], BinaryIO],
        profile: Profile = DOCUMENTS,
        *,
        key_header: str = "Authorization",
        max_answer: int = MAX_ANSWER,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        """`open_file` opens the file with a digest. `key_header` has the key; `Authorization` as a bearer."""
        super().__init__(base_url, api_key, profile, max_answer=max_answer, ssl_context=ssl_context)
        self._key_header = key_header
        self._open_file = open_file
        self._max_answer = max_answer

    def encode(self, endpoint: str, model: str, params: Mapping[str, object], inputs: Sequence[str]) -> bytes:
        """Return what an order keeps: the request without the file, and the file's digest, the one input."""
        if len(inputs) != 1 or "message" not in params:
            raise ValueError("an order for a document has a message and one file")
        known = {name: params[name] for name in ("message", "units") if name in params}
        return keys.canonical({"endpoint": endpoint, "model": model, "file": inputs[0], **known}).encode()

    def send(self, exchange: Exchange, gate: Callable[[], bool]) -> Outcome:
        """Send the exchange at most once and return the outcome (see `base.Provider.send`)."""
        order = json.loads(exchange.body)
        try:
            file = self._open_file(order["file"])
        except (HoldfastError, OSError) as error:
            return NotSent(f"the file cannot be read: {error}")
        with file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            message = Message(order["message"], order["file"], size)
            headers = {
                "Content-Type": message.content_type,
                "Content-Length": str(message.length),
                "Accept": "application/json, */*",
                "Accept-Encoding": "identity",
                "User-Agent": "holdfast",
                "Idempotency-Key": exchange.idempotency_key,
            }
            reply = self._wire.post(
                f"{self._base_url}/{exchange.endpoint}{message.query}",
                headers | self._credentials(),
                message.parts(file),
                gate,
                send_by=exchange.send_by,
                deadline=exchange.deadline,
            )
        if isinstance(reply, Unknown) and reply.reason == wire.TOO_LARGE:
            reason = f"the answer has more than {self._max_answer:,} bytes; raise max_answer of the provider"
            return Unknown(reason, reply.status, code="answer_too_large")
        if not isinstance(reply, wire.HttpReply):
            return reply
        faults.point("send.answered")
        if not 200 <= reply.status < 300:
            return statuses.judge(reply, self._profile, self._api_key)
        try:
            return self._answer(exchange, reply)
        except UnreadableAnswerError as error:
            return Unknown(f"unreadable answer: {error}", reply.status)

    def _answer(self, exchange: Exchange, reply: wire.HttpReply) -> Answered:
        if reply.headers.get("content-encoding", "identity").lower() != "identity":
            raise UnreadableAnswerError("compressed without request")
        usage = _usage(reply.body)
        pages = _count(usage, _PAGES)
        return Answered(
            results=(zlib.compress(reply.body),),
            input_tokens=_count(usage, _INPUT) or 0,
            output_tokens=_count(usage, _OUTPUT) or 0,
            replayed=reply.headers.get("idempotent-replayed", "").lower() == "true",
            units=json.loads(exchange.body).get("units") if pages is None else pages,
        )

    def _credentials(self) -> dict[str, str]:
        if not self._api_key:
            return {}
        bearer = self._key_header.lower() == "authorization"
        return {self._key_header: f"Bearer {self._api_key}" if bearer else self._api_key}

    def count_tokens(self, text: str) -> int:  # noqa: ARG002 (a digest says nothing about its file)
        """Return 1: documents are estimated by their pages."""
        return 1


def content(result: bytes) -> bytes:
    """The answer that a settled call holds."""
    return zlib.decompress(result)


class Message:
    """The body of a request: some bytes, the file as it is or in base64, and some bytes more."""

    def __init__(self, message: Mapping[str, Any], digest: str, size: int) -> None:
        query = urllib.parse.urlencode(message.get("query", {}))
        self.query = f"?{query}" if query else ""
        self._size, self._in_base64, self._after = size, "json" in message, b""
        if self._in_base64:
            before, _, after = keys.canonical(message["json"]).partition(FILE)
            self.content_type, self._before, self._after = "application/json", before.encode(), after.encode()
        elif "form" in message:
            # From the digest: a resend must be the same, and no file contains its own.
            boundary = f"holdfast-{digest[:40]}"
            self.content_type = f"multipart/form-data; boundary={boundary}"
            self._before = _form(message, boundary)
            self._after = f"\r\n--{boundary}--\r\n".encode()
        else:
            self.content_type, self._before = str(message["content_type"]), b""

    @property
    def length(self) -> int:
        """The bytes of the body."""
        file = -(-self._size // 3) * 4 if self._in_base64 else self._size
        return len(self._before) + file + len(self._after)

    def parts(self, file: BinaryIO) -> Iterator[bytes]:
        """The body, part by part."""
        if self._before:
            yield self._before
        while part := _read(file):
            yield base64.b64encode(part) if self._in_base64 else part
        if self._after:
            yield self._after


def _read(file: BinaryIO) -> bytes:
    try:
        return file.read(PART)
    except OSError as error:
        raise wire.BodyError from error


def _form(message: Mapping[str, Any], boundary: str) -> bytes:
    """The fields of a form, and the head of its file."""
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'
        for name, text in sorted(message["form"].items())
    ]
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="{message["file_field"]}";'
        f' filename="document"\r\nContent-Type: {message["content_type"]}\r\n\r\n'
    )
    return "".join([*parts, head]).encode()


def _usage(body: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(answer, dict):
        return {}
    return next((answer[name] for name in _USAGES if isinstance(answer.get(name), dict)), {})


def _count(usage: Mapping[str, Any], names: Sequence[str]) -> int | None:
    counts = (count(usage.get(name)) for name in names)
    return next((each for each in counts if each is not None and each < 2**40), None)
