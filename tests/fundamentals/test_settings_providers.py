"""Providers of the settings file: who they are, what they cost, and what their calls are sent with."""

import hashlib

import pytest

from holdfast import bootstrap
from holdfast.engine.models import Model
from holdfast.kinds import corpus, model_calls
from holdfast.ledger.pay import Call
from holdfast.providers.openai import OpenAIProvider
from holdfast.settings import SettingsError, load

FILE = """
llm_provider = "house"
llm_model = "talker"
[providers.house]
base_url = "http://127.0.0.1:9/v1"
identity = "openai@old-host:8000"
parameters = { top_p = 0.5, max_tokens = true }
[providers.house.prices]
talker = { input = 1, output = 2 }
[providers.house.models.thinker]
parameters = { max_completion_tokens = true }
[providers.mine]
base_url = "http://127.0.0.1:10/v1"
free = true
"""


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """`loaded(text)` are the settings of a file that the user has named."""

    def read(text):
        file = tmp_path / "own.toml"
        file.write_text(text)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HOLDFAST_CONFIG", str(file))
        return load()

    return read


def test_the_keys_and_bodies_of_before_are_the_same_byte_for_byte():
    """What was paid for under the defaults is found again: digests of before there were parameters."""
    requested = Model("openai@127.0.0.1:9", "gpt-4o-mini")
    call = model_calls.question(
        requested, "Say what the text is about.", "The text.", wants_json=True, max_tokens=700
    )
    assert call.key("default") == "6daadd10515bea70e69be3331fd36cf7bd245045dd7c985b52bf9aef027f83e3"
    body = OpenAIProvider("http://127.0.0.1:9/v1", "").encode(
        call.endpoint, call.model, call.params, [call.text]
    )
    digest = "8debfcc98d991214cab6e65cf5e126fbf75f98586ed0e14dd1dc75b8015151ba"
    assert hashlib.sha256(body).hexdigest() == digest
    plain = model_calls.question(Model("openai", "gpt-4o-mini"), "Instruct.", "Text.")
    assert plain.key("default") == "42c13a6cf939e3bd04b9fa71e0431f0e05bda3897f4052d1c65c86a42c0f0619"
    chunk = Call("openai", "embeddings", "text-embedding-3-small", "A chunk.")
    assert chunk.key("default") == "c001f80c7d582e019042b7c85d3a79e627a26ab4ac5627beaee4051e551087ed"
    frozen = corpus.frozen({"count": 3}, Model("openai", "gpt-4o-mini"), 2)
    assert frozen == {"count": 3, "provider": "openai", "model": "gpt-4o-mini", "prompts": 2}


def test_a_model_is_sent_what_its_table_says_and_nothing_else(loaded):
    """No temperature where none is named; `true` is the limit of the work; a model's own come first."""
    supplies = bootstrap.supplies_of(loaded(FILE))
    usual = model_calls.question(model_calls.model(supplies), "Instruct.", "Text.", max_tokens=70)
    assert usual.params == {"messages_json": True, "top_p": 0.5, "max_tokens": 70}
    thinker = model_calls.named(supplies, usual.provider, "thinker")
    other = model_calls.question(thinker, "Instruct.", "Text.", max_tokens=70)
    assert other.params == {"messages_json": True, "max_completion_tokens": 70}
    assert corpus.frozen({}, thinker, 1)["parameters"] == {"max_completion_tokens": True}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[providers.fast.prices]\nx = { output = 1 }", "[providers.fast] in {file} prices.x: "),
        ('[providers.fast]\nfree = "perhaps"', "[providers.fast] in {file} free: "),
        ("[providers.fast]\nprice = 1", "[providers.fast] in {file} price: "),
        ('[providers.fast]\nwire = "gopher"', "[providers.fast] in {file} wire: "),
        ("[providers.fast]\nfree = true", "[providers.fast] in {file} set api_key or api_key_env"),
    ],
)
def test_what_is_wrong_in_a_table_is_named_with_its_table(loaded, tmp_path, line, message):
    """And with its key: there may be many tables."""
    with pytest.raises(SettingsError) as refused:
        loaded(line)
    assert message.format(file=tmp_path / "own.toml") in str(refused.value)


def test_a_wire_format_may_be_named(loaded):
    """One that does not exist is refused with what there is."""
    assert loaded('[providers.fast]\nwire = "openai"\nbase_url = "http://127.0.0.1:9/v1"').providers
    assert loaded('[providers.fast]\nwire = "anthropic"\nbase_url = "http://127.0.0.1:9"').providers
    with pytest.raises(SettingsError, match="'openai', 'anthropic'"):
        loaded('[providers.fast]\nwire = "gopher"\nbase_url = "http://127.0.0.1:9/v1"')


def test_a_provider_keeps_its_identity_when_its_name_and_address_change(loaded):
    """The content key has the identity: nothing is paid again, and two providers never share one."""
    assert bootstrap.supplies_of(loaded(FILE)).llm == "openai@old-host:8000"
    moved = FILE.replace("127.0.0.1:9/", "127.0.0.1:99/").replace("house", "attic")
    assert bootstrap.supplies_of(loaded(moved)).llm == "openai@old-host:8000"
    same = FILE.replace("free = true", 'identity = "openai@old-host:8000"')
    with pytest.raises(SettingsError, match="same identity"):
        loaded(same)


def test_prices_of_the_file_come_before_the_shipped_ones(loaded):
    """A free provider is free whatever its models are called; a version tells the tables apart."""
    table = bootstrap.prices_of(loaded(FILE))
    assert table.cost("talker", 10**6, 10**6, provider="openai@old-host:8000") == 3 * 10**9
    assert table.cost("anything", 10**6, provider="openai@127.0.0.1:10") == 0
    assert table.cost("talker", 10**6, provider="elsewhere") is None
    assert table.version != bootstrap.prices_of(loaded("")).version


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("providers.mine]", "providers.local]"), "not a valid provider name"),
        (("free = true", "free = true\nspeed = 3"), "providers"),
        (("http://127.0.0.1:10/v1", "ftp://there"), "http://"),
        (("free = true", 'api_key_env = "NOT_THERE_AT_ALL"'), "NOT_THERE_AT_ALL"),
        (('"house"', '"shed"'), "shed"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused_at_the_start(loaded, change, said):
    """In one line that names what is wrong."""
    with pytest.raises(SettingsError, match=said):
        loaded(FILE.replace(*change))
