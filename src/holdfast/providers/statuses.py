"""What an HTTP status means for money, for providers that follow the common conventions.

The rule is one-sided: a status counts as uncharged only if the provider cannot sensibly have done the work.
If a gateway may have given up on work that went on behind it (408, 499, 5xx), the order is in doubt, unless
the provider's profile lists the status as uncharged.
"""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from collections.abc import Mapping

from holdfast.providers.base import Profile, Refused, Unknown
from holdfast.providers.wire import HttpReply

_MAX_MESSAGE = 300
_TOO_MANY = 429
_CONFLICT = 409
_DOUBTFUL = frozenset({408, 499})
_AUTH = frozenset({401, 403})
_PAYMENT_REQUIRED = 402
_PARAMETER = re.compile(r"[a-z][a-z0-9_]{0,59}")
_INPUTS = frozenset({"input", "messages", "model", "prompt", "tools"})
_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


def judge(reply: HttpReply, profile: Profile, *secrets: str) -> Refused | Unknown:
    """Return what a reply outside 2xx means for money; `secrets` are removed from the server's message."""
    status = reply.status
    code, message = _error(reply.body, secrets)
    wait = retry_after(reply.headers, time.time())
    if code in _QUOTA_CODES or status == _PAYMENT_REQUIRED:
        return Refused(status, "quota", message, wait, permanent=True)
    if status == _TOO_MANY:
        return Refused(status, "rate_limited", message, wait, permanent=False)
    if status in profile.uncharged:
        return Refused(status, "unavailable", message, wait, permanent=False)
    if status in _AUTH:
        return Refused(status, "auth", message, wait, permanent=True)
    # A provider that honours keys answers 409 while the first exchange of this key is still in progress,
    # which may yet be charged.
    if status in _DOUBTFUL or (status == _CONFLICT and profile.honours_keys) or not 300 <= status < 500:
        return Unknown(f"status {status}: {message}" if message else f"status {status}", status)
    if parameter := _parameter(reply.body):
        hint = (
            f"the model rejects the parameter `{parameter}`; set `parameters` in [providers.NAME] or "
            "[providers.NAME.models.MODEL] to those it accepts: only these are sent"
        )
        return Refused(status, "parameter", f"{hint} ({message})" if message else hint, wait, permanent=True)
    return Refused(status, "rejected", message, wait, permanent=True)


def _parameter(body: bytes) -> str:
    """The parameter that the server rejected; empty if the error concerns the input itself."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    detail = answer.get("error", answer) if isinstance(answer, dict) else None
    name = detail.get("param") if isinstance(detail, dict) else None
    if not isinstance(name, str) or not _PARAMETER.fullmatch(name) or name in _INPUTS:
        return ""
    return name


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds the server asked to wait, None if absent or unreadable.

    A date is compared with the server's own `Date`, so that the clocks need not agree; `now` is the fallback.
    """
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _seconds(value)
    if seconds is not None:
        return seconds
    until = _moment(value)
    if until is None:
        return None
    return max(0.0, until - (_moment(headers.get("date")) or now))


def _seconds(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _moment(value: str | None) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(value or "").timestamp()
    except (ValueError, OverflowError):
        return None


def _error(body: bytes, secrets: tuple[str, ...]) -> tuple[str, str]:
    """Return the error's code and a message that is safe to show, both empty if the body has none."""
    text = body.decode("utf-8", "replace")
    code = ""
    try:
        detail = json.loads(text)
    except (ValueError, RecursionError):
        detail = None
    if isinstance(detail, dict):
        detail = detail.get("error", detail)
    if isinstance(detail, dict):
        code = str(detail.get("code") or detail.get("type") or "")
        text = str(detail.get("message") or "")
        if detail.get("type") in _QUOTA_CODES:
            code = str(detail["type"])
    elif isinstance(detail, str):
        text = detail
    for secret in filter(None, secrets):
        text = text.replace(secret, "***")
    return code, " ".join(text.split())[:_MAX_MESSAGE]
