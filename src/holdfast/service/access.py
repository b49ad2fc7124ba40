"""API keys and what each of them permits.

A key belongs to one tenant and has scopes. Its token has 256 random bits and is shown once; only its SHA-256
is stored. A slow, salted hash protects secrets that can be guessed, and this one cannot.

As long as no key has ever been created, every client on this machine is the tenant `default` and may do
everything; the API and the web UI each decide what counts as "on this machine".
"""

import hashlib
import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from holdfast.core import filters
from holdfast.core.errors import BadRequestError, HoldfastError, KeyRestrictedError, NotFoundError
from holdfast.core.filters import Filter
from holdfast.core.records import TENANT
from holdfast.core.text import is_plain
from holdfast.store.access import keys, sessions
from holdfast.store.access.keys import Key
from holdfast.store.base.database import Database

PREFIX = "hf_"
MOST_NAME = 100
MOST_TOKEN = 200
MOST_RATE = 1_000_000.0
SESSION_SECONDS = 12 * 3600.0


class Scope(StrEnum):
    """What a key may do. Each includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


RANK = {scope: rank for rank, scope in enumerate(Scope)}


class KeyNeededError(HoldfastError):
    """The caller has shown no key, or none that is good."""

    code = "key_needed"


class ScopeMissingError(HoldfastError):
    """The caller's key does not go so far."""

    code = "scope_missing"


@dataclass(frozen=True, slots=True)
class Credential:
    """What somebody has shown, by its digest: a key, or a session of the web UI."""

    digest: str
    is_session: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody who may ask, and in whose name; how often and how much at once, if their key says so.

    `credential` is None for who has shown nothing, as long as nobody has to. `restriction` is the filter of
    the key, in JSON; empty for none.
    """

    tenant: str
    actor: str
    scopes: frozenset[Scope]
    key_id: str = ""
    rate: float | None = None
    concurrency: int | None = None
    credential: Credential | None = None
    restriction: str = ""

    @property
    def only(self) -> Filter | None:
        """The filter that every document must pass to exist for this caller; None for none."""
        return filters.restriction(self.restriction) if self.restriction else None

    def may(self, required: Scope) -> bool:
        """True when one of the scopes is this one, or includes it."""
        return any(RANK[scope] >= RANK[required] for scope in self.scopes)

    def require(self, required: Scope) -> None:
        """Return if the caller may; otherwise ScopeMissingError."""
        if not self.may(required):
            raise ScopeMissingError(f"this key does not have the {required} scope; use one that does")


NEIGHBOUR = Identity("default", "api:loopback", frozenset(Scope))
"""Any client on this machine, while there are no keys."""


@dataclass(frozen=True, slots=True)
class Made:
    """A new key, with the token that nobody will see again."""

    key: Key
    token: str


class Access:
    """The keys of an installation."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._has_keys = False

    def make(
        self,
        *,
        tenant: str,
        name: str,
        scopes: Sequence[Scope],
        days: float | None = None,
        rate: float | None = None,
        concurrency: int | None = None,
        only: Mapping[str, Any] | None = None,
    ) -> Made:
        """A key of the tenant is good from now on, for so many days or for ever; with limits of its own.

        `only` is a filter: documents that do not pass it do not exist for the key. Such a key is no admin's.
        """
        if not TENANT.fullmatch(tenant):
            message = f"tenant {tenant!r} is not a valid name; use letters, digits, . - _, at most 64"
            raise BadRequestError(message, code="bad_tenant")
        if len(name) > MOST_NAME or not is_plain(name) or not name.isprintable():
            raise BadRequestError(
                f"the name of a key is plain text of at most {MOST_NAME} characters", code="bad_name"
            )
        if not scopes or (days is not None and days <= 0):
            raise BadRequestError(
                "a key needs at least one scope and an expiry date in the future", code="bad_request"
            )
        if (rate is not None and not 0 < rate <= MOST_RATE) or (concurrency is not None and concurrency < 1):
            raise BadRequestError("the rate and concurrency of a key must be above zero", code="bad_request")
        if only is not None:
            filters.of_key(only)
            if Scope.ADMIN in scopes:
                message = "a key with a filter cannot have the admin scope: admins see everything"
                raise BadRequestError(message, code="bad_request")
        token = PREFIX + secrets.token_urlsafe(32)
        key = keys.make(
            self._db,
            secrets.token_hex(4),
            digest(token),
            tenant=tenant,
            name=name,
            scopes=[scope for scope in Scope if scope in scopes],
            seconds=None if days is None else days * 86_400,
            rate=rate,
            concurrency=concurrency,
            only=only,
        )
        return Made(key, token)

    def every(self) -> tuple[Key, ...]:
        """All keys, the oldest first."""
        return keys.every(self._db)

    def revoke(self, key_id: str) -> None:
        """The key opens nothing any more; NotFoundError when there is no such key."""
        if not keys.revoke(self._db, key_id):
            raise NotFoundError(f"there is no key {key_id!r}; see: holdfast keys list", code="unknown_key")

    def has_keys(self) -> bool:
        """True when a key was ever made: then nobody comes in without one."""
        self._has_keys = self._has_keys or keys.any_created(self._db)  # keys are revoked, never deleted
        return self._has_keys

    def who(self, token: str) -> Identity:
        """Whose token this is; KeyNeededError when it is nobody's, ran out or was revoked."""
        known = keys.live(self._db, digest(token)) if len(token) <= MOST_TOKEN else None
        if known is None:
            raise KeyNeededError("this key is unknown, has expired or was revoked; ask for a new one")
        return _identity(known, Credential(digest(token)))

    def sign_in(self, token: str) -> str:
        """A session of the web UI with the rights of this key, for some hours; KeyNeededError as `who`."""
        known = self.who(token.strip())
        if known.restriction:
            message = "this key is limited to some documents, and the web UI shows all; use it with the API"
            raise KeyRestrictedError(message)
        session = secrets.token_urlsafe(32)
        sessions.begin(self._db, digest(session), known.key_id, seconds=SESSION_SECONDS)
        return session

    def signed_in(self, session: str) -> Identity:
        """Whose session this is; KeyNeededError when it has ended, or its key has."""
        known = sessions.key_of(self._db, digest(session)) if len(session) <= MOST_TOKEN else None
        if known is None:
            raise KeyNeededError("your session has expired, or its key was revoked; sign in again")
        return _identity(known, Credential(digest(session), is_session=True))

    def sign_out(self, session: str) -> None:
        """The session has ended."""
        sessions.end(self._db, digest(session))

    def ended(self, shown: Collection[Credential | None]) -> set[Credential | None]:
        """Those of them that open nothing any more: revoked, run out, signed out. Two statements for all.

        Who has shown nothing is among them from the first key on.
        """
        some = [each for each in shown if each is not None]
        of_keys = [each.digest for each in some if not each.is_session]
        of_sessions = [each.digest for each in some if each.is_session]
        live = {Credential(each) for each in keys.still_live(self._db, of_keys)}
        live |= {Credential(each, is_session=True) for each in sessions.still_live(self._db, of_sessions)}
        gone: set[Credential | None] = {each for each in some if each not in live}
        return gone | ({None} if None in shown and self.has_keys() else set())


def _identity(known: Key, credential: Credential) -> Identity:
    actor = f"api:{known.name or known.id}"
    scopes = frozenset(Scope(each) for each in known.scopes)
    restriction = "" if known.filter is None else _compact(known.filter)
    limits = known.rate, known.concurrency
    return Identity(known.tenant, actor, scopes, known.id, *limits, credential, restriction)


def _compact(restriction: object) -> str:
    return json.dumps(restriction, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
