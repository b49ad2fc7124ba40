"""URLs and errors without their secrets."""

import ipaddress
import re
from urllib.parse import unquote, urlsplit

from holdfast.doctor.facts import Endpoint

KINDS = {
    "redis": "redis",
    "rediss": "redis",
    "redis+socket": "redis",
    "sentinel": "redis-sentinel",
    "amqp": "rabbitmq",
    "amqps": "rabbitmq",
    "pyamqp": "rabbitmq",
    "librabbitmq": "rabbitmq",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "sqlite": "sqlite",
    "filesystem": "filesystem",
    "memory": "memory",
}
PORTS = {"redis": 6379, "rabbitmq": 5672, "postgresql": 5432}
# Users and passwords that servers and their images are shipped with, and those that tutorials use.
SHIPPED = {
    ("guest", "guest"),
    ("rabbitmq", "rabbitmq"),
    ("admin", "admin"),
    ("user", "bitnami"),
    ("postgres", "postgres"),
    ("postgres", "password"),
    ("redis", "redis"),
}
WEAK = {"changeme", "secret", "password", "passwd", "redis", "foobared", "123456", "difyai123456"}
# Everything between // and the last @ before the path. Passwords with an unescaped / are cut at the path, so
# that a part of one could be left: such a URL is shown as its scheme alone.
_USERINFO = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://[^\s/@]*@")
_PARAMETER = re.compile(
    r"(?i)(?P<name>[\w-]*(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key)[\w-]*)"
    r"(?P<sign>\s*[=:]\s*)(?P<value>[^\s&,;]+)"
)


def endpoint(url: str | None) -> Endpoint:
    """What a URL names, without its secrets. Whatever cannot be parsed is shown as its scheme alone."""
    if not url:
        return Endpoint("none", "none")
    scheme = url.partition("://")[0].lower()
    base = scheme.removeprefix("db+").partition("+")[0] if scheme.startswith("db+") else scheme
    kind = KINDS.get(base) or KINDS.get(base.partition("+")[0]) or base
    if kind in {"filesystem", "sqlite", "memory", "file"}:
        return Endpoint(kind, _without_query(url), name=url.partition("://")[2])
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or PORTS.get(kind)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
    except ValueError:
        return Endpoint(kind, f"{scheme}://…", local=False)
    if "@" in parts.path or "@" in parts.query.partition("=")[0]:
        # An unescaped / in the password: what looks like host and path are parts of it.
        return Endpoint(kind, f"{scheme}://…", local=False)
    if scheme == "redis+socket":
        return Endpoint(kind, f"{scheme}://{parts.path}", host=parts.path, name=_virtual_host(parts.query))
    name = parts.path.removeprefix("/") or {"redis": "0", "rabbitmq": "/"}.get(kind, "")
    written = f"[{host}]" if ":" in host else host
    at = f"{user}@" if user else ""
    shown_port = f":{parts.port}" if parts.port else ""
    return Endpoint(
        kind,
        f"{scheme}://{at}{written}{shown_port}{parts.path}",
        host,
        port,
        unquote(name),
        default_credentials=_shipped(kind, user, password),
        no_password=not password,
        local=_is_local(host),
    )


def text(message: object) -> str:
    """One line of an error or a setting, with the user and password of every URL, and every value whose name
    says that it is a secret, written as an ellipsis.
    """
    line = " ".join(str(message).split())
    line = _USERINFO.sub(lambda match: f"{match['scheme']}://…@", line)
    return _PARAMETER.sub(lambda match: f"{match['name']}{match['sign']}…", line)[:300]


def _without_query(url: str) -> str:
    return url.partition("?")[0]


def _virtual_host(query: str) -> str:
    match = re.search(r"virtual_host=(\d+)", query)
    return match[1] if match else "0"


def _shipped(kind: str, user: str, password: str) -> bool:
    if kind == "rabbitmq" and not password:
        return user in {"", "guest"}  # kombu then logs in as guest
    if not password:
        return False
    return (user, password) in SHIPPED or password.lower() in WEAK


def _is_local(host: str) -> bool:
    if not host or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
