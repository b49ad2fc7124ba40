"""A Redis server, by INFO, CONFIG GET, TIME and CLIENT LIST, and by a look at the keys of one database."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast import extras
from holdfast.doctor import redaction
from holdfast.doctor.facts import RedisFacts

PATIENCE = 5.0
MOST_KEYS = 500
# Keys that Celery and kombu write beside the queues, which are lists.
OWN_KEYS = ("_kombu.", "unacked", "celery-task-meta-", "celery-taskset-meta-", "celery-resultset-")


def probe(
    url: str,
    used_as: Sequence[str] = ("broker",),
    *,
    tls: Mapping[str, Any] | None = None,
    now: Callable[[], float] = time.time,
    keys: bool = True,
) -> RedisFacts:
    """The facts about the server, or why there are none. `keys`: look at the keys of the URL's database."""
    facts = RedisFacts(redaction.endpoint(url), tuple(used_as))
    if not extras.is_installed("redis"):
        return replace(facts, error='the Redis client is not installed: pip install "holdfast[redis]"')
    import redis  # noqa: PLC0415 - of an extra

    options = {name: value for name, value in (tls or {}).items() if name.startswith("ssl_")}
    try:
        client = redis.Redis.from_url(
            url.replace("redis+socket://", "unix://", 1),
            socket_timeout=PATIENCE,
            socket_connect_timeout=PATIENCE,
            decode_responses=True,
            **options,
        )
    except ValueError as error:
        return replace(facts, error=redaction.text(f"the URL cannot be used: {error}"))
    with client:
        try:
            return _asked(client, facts, now, keys=keys)
        except (redis.RedisError, OSError) as error:
            return replace(facts, error=redaction.text(f"it does not answer: {error}"))


def _asked(client: Any, facts: RedisFacts, now: Callable[[], float], *, keys: bool) -> RedisFacts:
    info = client.info()
    before = now()
    seconds, micros = client.time()
    difference = (before + now()) / 2 - (seconds + micros / 1_000_000)
    save = _config(client, "save")
    replicas = _config(client, "min-replicas-to-write")
    idle = _config(client, "timeout")
    facts = replace(
        facts,
        version=info.get("redis_version"),
        maxmemory=info.get("maxmemory"),
        maxmemory_policy=info.get("maxmemory_policy"),
        used_memory=info.get("used_memory"),
        append_only=bool(info["aof_enabled"]) if "aof_enabled" in info else None,
        snapshots=None if save is None else bool(save.strip()),
        replicas=info.get("connected_slaves"),
        min_replicas_to_write=None if replicas is None else int(replicas),
        timeout=None if idle is None else int(idle),
        clock_difference=difference,
    )
    if not keys or "broker" not in facts.used_as:
        return facts
    return replace(
        facts,
        unacknowledged=client.hlen("unacked") if client.type("unacked") in {"hash", "none"} else None,
        consumers=_consumers(client, facts.endpoint.name),
        other_keys=_other_keys(client),
    )


def _config(client: Any, name: str) -> str | None:
    """A setting of the server; None where the command is not allowed, as on most hosted servers."""
    import redis  # noqa: PLC0415 - of an extra

    try:
        return client.config_get(name).get(name)  # type: ignore[no-any-return]
    except redis.ResponseError:
        return None


def _consumers(client: Any, database: str) -> int | None:
    import redis  # noqa: PLC0415 - of an extra

    try:
        listed: list[dict[str, str]] = client.client_list()
    except redis.ResponseError:
        return None
    return sum(each.get("cmd") in {"brpop", "blpop"} and each.get("db") == database for each in listed)


def _other_keys(client: Any) -> int:
    """How many keys, of the first few hundred, are neither queues nor of Celery."""
    others = 0
    for number, key in enumerate(client.scan_iter(count=200)):
        if number >= MOST_KEYS:
            break
        if not key.startswith(OWN_KEYS) and client.type(key) != "list":
            others += 1
    return others
