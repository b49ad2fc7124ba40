"""A RabbitMQ broker: its release over AMQP, queues and alarms over the management interface."""

import base64
import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import amqp

from holdfast.doctor import redaction
from holdfast.doctor.facts import QueueFacts, RabbitFacts

PATIENCE = 5.0
MANAGEMENT_PORT = 15672
MOST_BYTES = 16 << 20
# Names of policies, and of the queue arguments that mean the same.
POLICY = {
    "delivery-limit": "x-delivery-limit",
    "dead-letter-exchange": "x-dead-letter-exchange",
    "max-length": "x-max-length",
    "max-length-bytes": "x-max-length-bytes",
    "overflow": "x-overflow",
    "consumer-timeout": "x-consumer-timeout",
}


def probe(
    url: str, management: str | None = None, *, tls: Mapping[str, Any] | bool | None = None
) -> RabbitFacts:
    """The facts about the broker, or why there are none.

    `management` is the URL of its HTTP interface; without it, port 15672 of the same host is tried, with the
    user and password of the broker.
    """
    facts = RabbitFacts(redaction.endpoint(url))
    facts = replace(facts, **_greeting(url, tls))
    if facts.error is not None:
        return facts
    try:
        return replace(facts, **_managed(url, management, facts.endpoint.name or "/"))
    except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
        reason = redaction.text(f"{type(error).__name__}: {error}")
        return replace(
            facts,
            management_error=f"its management interface does not answer ({reason}); set it with --management",
        )


def _greeting(url: str, tls: Mapping[str, Any] | bool | None) -> dict[str, Any]:
    """What the broker says of itself when a client connects."""
    parts = urlsplit(url)
    host, port = parts.hostname or "localhost", parts.port or 5672
    secure = tls or parts.scheme == "amqps"
    connection = amqp.Connection(
        f"{host}:{port}",
        userid=unquote(parts.username or "guest"),
        password=unquote(parts.password or "guest"),
        virtual_host=unquote(parts.path.removeprefix("/")) or "/",
        connect_timeout=PATIENCE,
        read_timeout=PATIENCE,
        write_timeout=PATIENCE,
        ssl=dict(secure) if isinstance(secure, Mapping) else secure,
    )
    try:
        connection.connect()
        version = connection.server_properties.get("version")
    except (amqp.AMQPError, OSError) as error:
        return {"error": redaction.text(f"it does not answer: {error}")}
    finally:
        connection.collect()
    return {"version": str(version) if version else None}


def _managed(url: str, management: str | None, virtual_host: str) -> dict[str, Any]:
    # A node that has just started lists itself as an empty list.
    listed = _get(url, management, "/api/nodes?columns=mem_alarm,disk_free_alarm")
    nodes = [node for node in listed if isinstance(node, dict) and "mem_alarm" in node]
    queues = _get(url, management, f"/api/queues/{quote(virtual_host, safe='')}")
    return {
        "queues": tuple(_queue(each) for each in queues),
        "memory_alarm": any(node["mem_alarm"] for node in nodes) if nodes else None,
        "disk_alarm": any(node.get("disk_free_alarm") for node in nodes) if nodes else None,
    }


def _queue(row: Mapping[str, Any]) -> QueueFacts:
    policy = row.get("effective_policy_definition") or {}
    arguments = {POLICY[name]: value for name, value in dict(policy).items() if name in POLICY}
    arguments |= row.get("arguments") or {}
    return QueueFacts(
        str(row["name"]),
        type=str(row.get("type", "classic")),
        durable=bool(row.get("durable")),
        auto_delete=bool(row.get("auto_delete")),
        exclusive=bool(row.get("exclusive") or row.get("owner_pid_details")),
        arguments=arguments,
    )


def _get(url: str, management: str | None, path: str) -> Any:
    broker = urlsplit(url)
    where = urlsplit(management or f"http://{_bracketed(broker.hostname or 'localhost')}:{MANAGEMENT_PORT}")
    source = where if where.username else broker
    user, password = unquote(source.username or "guest"), unquote(source.password or "guest")
    host = where.hostname or "localhost"
    connection = (
        http.client.HTTPSConnection(
            host, where.port or 443, timeout=PATIENCE, context=ssl.create_default_context()
        )
        if where.scheme == "https"
        else http.client.HTTPConnection(host, where.port or 80, timeout=PATIENCE)
    )
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    try:
        connection.request("GET", where.path.rstrip("/") + path, headers={"Authorization": f"Basic {token}"})
        response = connection.getresponse()
        body = response.read(MOST_BYTES)
        if response.status != 200:
            raise OSError(f"HTTP {response.status} {response.reason}")
        return json.loads(body)
    finally:
        connection.close()


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
