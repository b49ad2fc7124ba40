"""Nothing that is secret is shown: not of a URL, not of an error, not of a setting."""

import hypothesis
import pytest
from hypothesis import strategies as st

from holdfast.doctor import redaction

PASSWORDS = st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S")), min_size=6).map(
    lambda text: f"Zq{text}qZ"
)


@pytest.mark.parametrize(
    ("url", "kind", "shown"),
    [
        ("redis://:pw-1@h:6379/3", "redis", "redis://h:6379/3"),
        ("rediss://user:pw-1@h/0", "redis", "rediss://user@h/0"),
        ("amqp://u:pw-1@h//", "rabbitmq", "amqp://u@h//"),
        ("pyamqp://u:pw-1@h:5672/vhost", "rabbitmq", "pyamqp://u@h:5672/vhost"),
        ("postgresql+psycopg://u:pw-1@h/db?password=pw-1", "postgresql", "postgresql+psycopg://u@h/db"),
        ("db+postgresql://u:pw-1@h/db", "postgresql", "db+postgresql://u@h/db"),
        (
            "redis+socket:///run/redis.sock?virtual_host=2&password=pw-1",
            "redis",
            "redis+socket:///run/redis.sock",
        ),
        ("sqs://KEYID:pw-1@", "sqs", "sqs://KEYID@"),
        ("redis://:pw/1@h:6379/0", "redis", "redis://…"),
        ("filesystem:///data/broker", "filesystem", "filesystem:///data/broker"),
    ],
)
def test_a_url_is_shown_without_its_password(url, kind, shown):
    """The scheme, user, host and path stay; whatever cannot be parsed is shown as its scheme alone."""
    endpoint = redaction.endpoint(url)
    assert (endpoint.kind, endpoint.shown) == (kind, shown)
    assert "pw" not in repr(endpoint)


@hypothesis.given(PASSWORDS)
def test_no_password_gets_through_whatever_it_is(password):
    """Also one with signs that a URL should have escaped."""
    for url in (f"redis://:{password}@host:6379/0", f"amqp://user:{password}@host:5672/vhost"):
        endpoint = redaction.endpoint(url)
        assert password not in repr(endpoint)


@pytest.mark.parametrize(
    "message",
    [
        "could not connect to redis://:hunter22@host:6379/0",
        "OperationalError: amqp://user:hunter22@host refused",
        "bad option password=hunter22 in dsn",
        "OPENAI_API_KEY=hunter22 is wrong",
        "api_key: hunter22",
        "connection to postgresql://u:hunter22@h/db failed",
    ],
)
def test_a_message_is_shown_without_secrets(message):
    """Errors of drivers and of the application quote what they were given."""
    assert "hunter22" not in redaction.text(message)


@pytest.mark.parametrize(
    ("url", "default"),
    [
        ("amqp://guest:guest@h//", True),
        ("amqp://h//", True),
        ("amqp://app:long-and-own@h//", False),
        ("redis://:foobared@h", True),
        ("postgresql://postgres:postgres@h/db", True),
        ("postgresql://app:long-and-own@h/db", False),
    ],
)
def test_default_credentials_are_known(url, default):
    """Those that servers are shipped with, and those of tutorials."""
    assert redaction.endpoint(url).default_credentials is default
