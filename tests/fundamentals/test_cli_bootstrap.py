"""Settings become a runtime: the numbers arrive where they belong, in the unit they belong in."""

import pytest

from holdfast import bootstrap, settings
from holdfast.core.errors import BadRequestError, SchemaError
from holdfast.engine.kinds import Supplies
from holdfast.leases.redis import RedisLeases
from holdfast.leases.sql import SqlLeases


@pytest.fixture
def runtime(sqlite_url, monkeypatch, tmp_path):
    """`runtime(LEASE_TTL="6")` is a runtime with these settings, closed at the end."""
    opened = []

    def build(**given):
        for name, value in {"DATABASE_URL": sqlite_url, **given}.items():
            monkeypatch.setenv(f"HOLDFAST_{name}", value)
        opened.append(bootstrap.open_runtime(settings.load()))
        return opened[-1]

    yield build
    for each in opened:
        each.close()


def test_the_defaults_are_those_of_the_design(runtime):
    """12 s of lease renewed every 4, with a margin of 2; a connection of its own for the watchdog."""
    built = runtime()
    terms = built.engine.leases.terms
    assert (terms.ttl, terms.renew_every, round(terms.margin, 6)) == (12.0, 4.0, 2.0)
    assert isinstance(built.engine.leases, SqlLeases)
    assert built.watch is not built.db
    assert built.supplies == Supplies("local", "wordllama-256", "local-extractive", "extractive-1")
    assert list(built.providers) == ["local", "local-extractive"]


def test_settings_arrive_in_their_units(runtime):
    """Days become seconds, dollars nano-dollars."""
    parts = runtime(
        HISTORY_RETENTION="2", PARK_ABOVE="0.5", PAY_CONCURRENCY="7", QUEUED_STUCK_AFTER="30", ATTEMPT_CAP="5"
    ).engine.parts
    assert parts.rules.history_retention == 172_800
    assert (parts.policy.park_above, parts.policy.concurrency) == (500_000_000, 7)
    assert (parts.patience.queued, parts.rules.attempt_cap) == (30.0, 5)


def test_redis_leases_keep_their_slower_terms(runtime):
    """120 s renewed every 30, with a margin of 10; nothing is asked of Redis before the first claim."""
    leases = runtime(LEASE_BACKEND="redis", REDIS_URL="redis://127.0.0.1:1/0").engine.leases
    assert isinstance(leases, RedisLeases)
    assert (leases.terms.ttl, leases.terms.renew_every, round(leases.terms.margin, 6)) == (120.0, 30.0, 10.0)


def test_a_provider_is_named_after_its_server(runtime):
    """Two servers never share answers: the name is part of the content key."""
    built = runtime(
        EMBEDDING_PROVIDER="openai",
        EMBEDDING_API_KEY="key",
        LLM_PROVIDER="openai",
        LLM_BASE_URL="http://127.0.0.1:9/v1",
        ORDER_DEADLINE="20",
    )
    assert (built.supplies.embedding, built.supplies.llm) == ("openai", "openai@127.0.0.1:9")
    servers = [built.providers[name] for name in (built.supplies.embedding, built.supplies.llm)]
    assert {provider.profile.deadline for provider in servers} == {20.0}


def test_a_provider_that_cannot_be_set_up_says_which(runtime):
    """The message names the part and what is wrong, not the key."""
    with pytest.raises(BadRequestError, match="the embedding provider cannot be configured") as refused:
        runtime(EMBEDDING_PROVIDER="openai", EMBEDDING_API_KEY="sésame")
    assert refused.value.code == "bad_provider"
    assert "sésame" not in refused.value.message


def test_looking_makes_no_database(runtime, tmp_path):
    """A missing file is reported, and still missing afterwards."""
    with pytest.raises(SchemaError, match="run: holdfast migrate"):
        runtime(DATABASE_URL=f"sqlite:///{tmp_path}/none.db")
    assert not (tmp_path / "none.db").exists()
