"""Leases in Redis: fewer writes to the database, but slower recovery (120 s instead of 12).

One key per task; its value is the epoch and the token of the claim, its expiry is the lease. The claim is
still made in the database, whose epochs only rise, and that decides who may open: a key left by an *older*
claim is overwritten, since the database has already given its task to another; a key of the same or a newer
epoch is respected. Without the epoch, a holder that released its row a moment before it deleted its key would
block its successor for a whole ttl, and so would a claimer that was frozen before `open` and has lost the
task.

Redis may forget: a restart without persistence, a fail-over to a lagging replica, `FLUSHALL`. A forgotten
lease is a lost one: the holder stops, and the sweep recovers the task. Nothing wrong is written, because the
fence does not depend on Redis.

Each operation is one script, so nothing happens between its test and its effect. Repeating one has no further
effect, so after a broken connection it is retried once, at once.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from holdfast.core.records import Claim
from holdfast.extras import MissingExtraError
from holdfast.leases.base import REDIS_TERMS, LeaseBackendError, LeaseTerms

_missing: ModuleNotFoundError | None = None
try:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ModuleNotFoundError as error:
    # An extra: the module can be imported without it, so the composition root needs no late import.
    _missing = error

T = TypeVar("T")

# `alive` is called inside a database transaction: a hanging server must not block it for long.
TIMEOUT = 2.0

OPEN = """
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then
    local epoch = tonumber(string.match(held, '^(%d+):'))
    if not epoch or epoch >= tonumber(ARGV[2]) then
        return 0
    end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return 1
"""
RENEW = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
"""
CLOSE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
"""


class RedisLeases:
    """Leases as keys that expire by the clock of one Redis server.

    Installations that share a server each need a `prefix`, as their task ids are the same numbers.
    """

    kept_in_database = False

    def __init__(
        self, server: "str | redis.Redis", terms: LeaseTerms = REDIS_TERMS, prefix: str = "holdfast:lease:"
    ) -> None:
        if _missing is not None:
            raise MissingExtraError("redis", "a Redis lease") from _missing
        self.terms = terms
        self._prefix = prefix
        self._client: Any = connect(server) if isinstance(server, str) else server
        self._open = self._client.register_script(OPEN)
        self._renew = self._client.register_script(RENEW)
        self._close = self._client.register_script(CLOSE)

    def open(self, claim: Claim) -> bool:
        """True if the lease runs under the claim's token; False if a newer claim of the task has it."""
        args: list[str | int] = [_value(claim), claim.epoch, self._milliseconds]
        return bool(_translated(lambda: self._open(keys=[self._key(claim.task_id)], args=args)))

    def renew(self, claim: Claim) -> bool:
        """True if the lease now runs for the whole ttl; False if it is gone, which is final."""
        args: list[str | int] = [_value(claim), self._milliseconds]
        return bool(_translated(lambda: self._renew(keys=[self._key(claim.task_id)], args=args)))

    def close(self, claim: Claim) -> None:
        """The lease of this claim is over; other leases are untouched."""
        _translated(lambda: self._close(keys=[self._key(claim.task_id)], args=[_value(claim)]))

    def alive(self, pairs: list[tuple[int, str]]) -> set[int]:
        """The task ids among these whose lease is alive under that token, by the clock of Redis."""
        if not pairs:
            return set()
        values = _translated(lambda: self._client.mget([self._key(task_id) for task_id, _ in pairs]))
        return {
            task_id
            for (task_id, token), value in zip(pairs, values, strict=True)
            if value is not None and _token(value) == token
        }

    @property
    def _milliseconds(self) -> int:
        return max(1, round(self.terms.ttl * 1000))

    def _key(self, task_id: int) -> str:
        return f"{self._prefix}{task_id}"


def connect(url: str) -> "redis.Redis":
    """A client that gives up within seconds, notices a dead connection, and retries a broken one once."""
    return redis.Redis.from_url(
        url,
        socket_timeout=TIMEOUT,
        socket_connect_timeout=TIMEOUT,
        socket_keepalive=True,
        health_check_interval=15,
        retry=Retry(NoBackoff(), 1),
    )


def _value(claim: Claim) -> str:
    return f"{claim.epoch}:{claim.token}"


def _token(value: bytes | str) -> str:
    text = value.decode() if isinstance(value, bytes) else value
    return text.partition(":")[2]


def _translated(ask: Callable[[], T]) -> T:
    try:
        return ask()
    except redis.RedisError as error:
        message = (
            f"Redis did not answer about the lease ({error}); check that it runs and that "
            "HOLDFAST_REDIS_URL is right"
        )
        raise LeaseBackendError(message) from error
