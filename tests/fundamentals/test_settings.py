"""Settings: where they come from, and how a mistake in one is told."""

import pickle

import pytest

from holdfast import settings
from holdfast.settings import trust


def refusal():
    with pytest.raises(settings.SettingsError) as caught:
        settings.load()
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_nothing_set_gives_the_embedded_default(tmp_path):
    """Without any setting, state is an SQLite file in the data folder, and leases last 12 s."""
    result = settings.load()
    assert result.database_url.get_secret_value() == f"sqlite:///{tmp_path}/share/holdfast/holdfast.db"
    assert (result.lease_ttl, result.lease_renew_every) == (12.0, 4.0)
    assert result.redis_url is None
    assert (result.queued_stuck_after, result.running_stuck_after, result.attempt_cap) == (600, 2700, 3)
    assert (result.in_doubt, result.park_above, result.history_retention) == ("resend", None, None)


def test_the_environment_wins_over_the_file(tmp_path, monkeypatch):
    """A variable beats the same key of holdfast.toml; other keys of the file still count."""
    (tmp_path / "holdfast.toml").write_text('attempt_cap = 5\nlog_format = "json"\n')
    monkeypatch.setenv("HOLDFAST_ATTEMPT_CAP", "7")
    result = settings.load()
    assert (result.attempt_cap, result.log_format) == (7, "json")


def test_the_database_follows_the_data_folder(monkeypatch, tmp_path):
    """Moving DATA_DIR moves the default database with it."""
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(tmp_path / "elsewhere"))
    assert settings.load().database_url.get_secret_value() == f"sqlite:///{tmp_path}/elsewhere/holdfast.db"


def test_redis_leases_are_longer_unless_told(monkeypatch):
    """The redis backend defaults to 120 s renewed every 30; a lease time that is set is kept."""
    monkeypatch.setenv("HOLDFAST_REDIS_URL", "redis://localhost")
    monkeypatch.setenv("HOLDFAST_LEASE_BACKEND", "redis")
    result = settings.load()
    assert (result.lease_ttl, result.lease_renew_every) == (120.0, 30.0)
    monkeypatch.setenv("HOLDFAST_LEASE_TTL", "40")
    result = settings.load()
    assert (result.lease_ttl, result.lease_renew_every) == (40.0, 10.0)


def test_an_empty_variable_counts_as_unset(monkeypatch):
    """Compose files set variables to nothing; that means the default."""
    monkeypatch.setenv("HOLDFAST_REDIS_URL", "")
    monkeypatch.setenv("HOLDFAST_ATTEMPT_CAP", "")
    assert settings.load().attempt_cap == 3


def test_a_misspelt_variable_names_the_closest_setting(monkeypatch):
    """An unknown variable is an error that helps."""
    monkeypatch.setenv("HOLDFAST_LEASE_TLL", "12")
    assert refusal() == "HOLDFAST_LEASE_TLL is not a setting; the closest is HOLDFAST_LEASE_TTL"


def test_a_misspelt_key_names_the_closest_setting(tmp_path):
    """An unknown key of the file is an error that helps."""
    (tmp_path / "holdfast.toml").write_text("sweep_intervall = 2")
    assert refusal() == "sweep_intervall in holdfast.toml is not a setting; the closest is sweep_interval"


def test_every_setting_says_who_may_set_it():
    """A setting that is new has its place in `settings/trust.py`, in exactly one of the lists."""
    lists = [trust.ANY_FILE, trust.NAMED_FILE, trust.NO_FILE]
    assert sorted(name for each in lists for name in each) == sorted(settings.Settings.model_fields)


def test_a_file_that_nobody_named_decides_nothing_of_weight(tmp_path, monkeypatch):
    """Neither code nor servers, keys, paths or money: one line names the setting and the remedy."""
    file, key = tmp_path / "holdfast.toml", "HOLDFAST_EMBEDDING_API_KEY"
    monkeypatch.setenv(key, "the-key-of-the-user")
    for name in sorted(trust.NAMED_FILE):
        file.write_text(f'{name} = "http://127.0.0.1:9/v1"')
        output = refusal()
        assert output.startswith(f"{name} cannot be set by a holdfast.toml merely found in the current ")
        assert "--config holdfast.toml, or HOLDFAST_CONFIG=holdfast.toml" in output


def test_a_file_that_somebody_named_sets_everything_but_the_module_path(tmp_path, monkeypatch):
    """It is found wherever it lies; a file in the current folder is not read beside it."""
    (tmp_path / "holdfast.toml").write_text("attempt_cap = 9")
    (tmp_path / "mine.toml").write_text('kinds = "a:b, c:d"\ndata_dir = "/srv/holdfast"')
    monkeypatch.setenv("HOLDFAST_CONFIG", str(tmp_path / "mine.toml"))
    result = settings.load()
    assert (result.kinds, str(result.data_dir), result.attempt_cap) == (("a:b", "c:d"), "/srv/holdfast", 3)
    (tmp_path / "mine.toml").write_text('python_path = "/tmp"')
    assert refusal() == "python_path cannot be set in a file; use --python-path or HOLDFAST_PYTHON_PATH"
    monkeypatch.setenv("HOLDFAST_CONFIG", "none.toml")
    assert refusal() == "HOLDFAST_CONFIG names none.toml, which does not exist"


def test_a_broken_file_is_told_by_name(tmp_path):
    """A file that is not TOML says where it breaks."""
    (tmp_path / "holdfast.toml").write_text("attempt_cap = = 3")
    assert refusal().startswith("holdfast.toml cannot be read: ")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("LEASE_TTL", "-1", "HOLDFAST_LEASE_TTL should be greater than 0"),
        ("LEASE_TTL", "soon", "HOLDFAST_LEASE_TTL should be a valid number"),
        ("LEASE_TTL", "nan", "HOLDFAST_LEASE_TTL should be "),
        ("ATTEMPT_CAP", "0", "HOLDFAST_ATTEMPT_CAP should be greater than or equal to 1"),
        ("PAY_CONCURRENCY", "1000", "HOLDFAST_PAY_CONCURRENCY should be less than or equal to 64"),
        ("IN_DOUBT", "maybe", "HOLDFAST_IN_DOUBT should be 'resend' or 'park'"),
        ("DATABASE_URL", "mysql://x", "HOLDFAST_DATABASE_URL should start with sqlite:// or postgresql://"),
        (
            "LEASE_RENEW_EVERY",
            "10",
            "HOLDFAST_LEASE_RENEW_EVERY (10) must be less than half of HOLDFAST_LEASE_TTL",
        ),
        ("LEASE_BACKEND", "redis", "HOLDFAST_LEASE_BACKEND is redis, so HOLDFAST_REDIS_URL is required"),
        (
            "EMBEDDING_PROVIDER",
            "openai",
            "HOLDFAST_EMBEDDING_PROVIDER is openai, so HOLDFAST_EMBEDDING_API_KEY is",
        ),
        (
            "EMBEDDING_BASE_URL",
            "localhost:80",
            "HOLDFAST_EMBEDDING_BASE_URL should start with http:// or https://",
        ),
        ("PARK_ABOVE", "-0.01", "HOLDFAST_PARK_ABOVE should be greater than or equal to 0"),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_name(monkeypatch, name, value, message):
    """The message names the setting and what it should be."""
    monkeypatch.setenv(f"HOLDFAST_{name}", value)
    assert refusal().startswith(message)


def test_a_bad_value_in_the_file_is_told_to_be_there(tmp_path):
    """The message says whether to look at the environment or at the file."""
    (tmp_path / "holdfast.toml").write_text("attempt_cap = 0")
    assert refusal().startswith("attempt_cap in holdfast.toml should be ")


def test_secrets_never_print(monkeypatch):
    """Neither the object nor an error shows a key or a password."""
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", "postgresql://me:hunter2@localhost/x")
    monkeypatch.setenv("HOLDFAST_REDIS_URL", "redis://:hunter2@localhost")
    monkeypatch.setenv("HOLDFAST_EMBEDDING_API_KEY", "hunter2")
    monkeypatch.setenv("HOLDFAST_LLM_PROVIDER", "openai")
    monkeypatch.setenv("HOLDFAST_LLM_API_KEY", "hunter2")
    result = settings.load()
    assert "hunter2" not in f"{result} {result!r} {result.model_dump()} {result.model_dump_json()}"
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", "hunter2")
    assert "hunter2" not in refusal()


def test_a_model_that_is_named_is_not_replaced_by_the_stand_in(monkeypatch):
    """Whoever gives an address or a key means a server: the stand-in must not answer in its name."""
    assert settings.load().llm_provider == "local"
    monkeypatch.setenv("HOLDFAST_LLM_BASE_URL", "http://127.0.0.1:9/v1")
    assert "set it to openai" in refusal()


def test_settings_do_not_change():
    """Built once, frozen; a child process gets the same ones."""
    result = settings.load()
    with pytest.raises(ValueError, match="frozen"):
        result.attempt_cap = 9
    assert pickle.loads(pickle.dumps(result)) == result


def test_the_bucket_of_all_documents_is_no_source(monkeypatch):
    """A tenant's source would read the documents of the others."""
    monkeypatch.setenv("HOLDFAST_BLOBS_URL", "s3://documents/prefix")
    monkeypatch.setenv("HOLDFAST_SOURCE_BUCKETS", "reports")
    assert settings.load().source_buckets == ("reports",)
    for name in ("documents", "documents@https://minio.example"):
        monkeypatch.setenv("HOLDFAST_SOURCE_BUCKETS", f"reports, {name}")
        assert "HOLDFAST_SOURCE_BUCKETS names the bucket of HOLDFAST_BLOBS_URL" in refusal()
