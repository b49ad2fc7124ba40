"""`holdfast prices`: which prices are known, and where each comes from."""

import json
import subprocess
import sys

import pytest

SETTINGS = """
[providers.basement]
base_url = "http://127.0.0.1:8/v1"
free = true

[providers.fast]
base_url = "http://127.0.0.1:9/v1"
prices = { "my-model" = { input = 0.5, output = 2 } }
"""


@pytest.fixture
def prices(tmp_path):
    """The output of the command with a settings file of this text."""
    file = tmp_path / "holdfast.toml"

    def call(text, *words):
        file.write_text(text)
        command = [sys.executable, "-P", "-m", "holdfast.cli", "--config", str(file), "prices", *words]
        folder = {"HOLDFAST_DATA_DIR": str(tmp_path / "data"), "PATH": "/usr/bin:/bin", "COLUMNS": "120"}
        return subprocess.run(command, env=folder, capture_output=True, text=True, timeout=120, check=False)

    return call


def test_shipped_prices_and_those_of_the_settings_are_listed_with_their_source(prices):
    """A provider's own price, a provider that costs nothing, and the list that everybody has."""
    listed = json.loads(prices(SETTINGS, "--json").stdout)["prices"]
    own = {(row["provider"], row["model"]): row for row in listed if row["source"] == "settings"}
    assert own["fast", "my-model"] | {"input": 0.5, "output": 2.0} == own["fast", "my-model"]
    assert (own["basement", "*"]["input"], own["basement", "*"]["output"]) == (0, 0)
    shipped = {row["model"] for row in listed if row["source"] == "shipped"}
    assert "text-embedding-3-small" in shipped
    assert "my-model" not in shipped


def test_a_person_reads_a_table_and_what_any_other_model_is(prices):
    """In US dollars per million tokens."""
    said = prices(SETTINGS)
    assert said.returncode == 0
    assert "my-model" in said.stdout
    assert "US dollars per million tokens" in said.stdout
    assert "any other model is unpriced" in said.stdout


def test_a_wrong_price_is_refused_by_its_table_and_key(prices):
    """One line that says where to look."""
    said = prices(SETTINGS.replace("input = 0.5", 'input = "cheap"'))
    assert said.returncode != 0
    assert "providers.fast" in said.stderr
    assert "my-model" in said.stderr
