"""Secrets that sign webhooks, and how they are stored.

HMAC needs the secret itself, so a digest is not enough. If the settings contain a key, a secret generated
here is not stored at all: the row has a random number, and the secret is derived from that and the key when
needed. A copy of the database is useless for signing without the key. A secret chosen by a user is stored
as it is, with or without a key.
"""

import base64
import hashlib
import hmac
import re

PREFIX = "derived"
_KEPT = re.compile(rf"{PREFIX}:([0-9a-f]{{8}}):([A-Za-z0-9_-]{{32,64}})")


class KeyMissingError(Exception):
    """The secret cannot be made, for the key in the settings is missing or another one; for people."""


def stored_form(key: str | None, number: str) -> str:
    """What is kept of a secret that is drawn now: without a key the secret itself, which is `number`."""
    return number if key is None else f"{PREFIX}:{_mark(key)}:{number}"


def is_derived(text: str) -> bool:
    """True for what is kept of a derived secret."""
    return _KEPT.fullmatch(text) is not None


def secret(key: str | None, stored: str) -> str:
    """The secret that `stored` stands for; KeyMissingError if it needs another key than this one."""
    match = _KEPT.fullmatch(stored)
    if match is None:
        return stored
    if key is None or match[1] != _mark(key):
        state = "not set" if key is None else "different"
        raise KeyMissingError(f"the secret was created with a HOLDFAST_WEBHOOK_KEY that is {state} here")
    digest = hmac.new(key.encode(), f"webhook:{match[2]}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _mark(key: str) -> str:
    """Tells one key from another, and nothing of it."""
    return hmac.new(key.encode(), b"mark", hashlib.sha256).hexdigest()[:8]
