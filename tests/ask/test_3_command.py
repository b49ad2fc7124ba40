"""`holdfast ask`, answered by the stand-in, which quotes and says so."""

import json

import pytest

from tests import commands
from tests.api.install import ApiInstall
from tests.ask.conftest import LEASE, TOWER


@pytest.fixture
def ask(sqlite_url, tmp_path, monkeypatch, capsys):
    """The command, in an installation without a language model."""
    installation = ApiInstall(sqlite_url, tmp_path / "data")
    installation.client.indexed(TOWER, title="Towers")
    installation.client.indexed(LEASE, title="Lease")
    installation.close()
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", sqlite_url)
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(tmp_path / "data"))
    call = commands.caller(monkeypatch, capsys)
    return lambda *words: call("ask", *words, "-c", "shelf")


def test_an_answer_and_its_sources_are_printed(ask):
    """The quotation, the passages below it, and that no language model was asked."""
    code, out, _ = ask("What is the rent of the warehouse?")
    assert code == 0
    assert "“The rent is EUR 1,200 per month.” [1]" in out
    assert "[1] Lease" in out
    assert "stand-in" in out


def test_a_question_without_an_answer_has_an_exit_code(ask):
    """Nothing was found: the reason, and exit code 5."""
    code, out, _ = ask("xqzvw kkkrt pfffg")
    assert code == 5
    assert "no model was asked" in out


def test_json_has_what_the_api_has(ask):
    """Sentences with support, sources, money in dollars; the second time it is replayed."""
    ask("How tall is the Eiffel Tower?")
    code, out, _ = ask("How tall is the Eiffel Tower?", "--json")
    said = json.loads(out)
    assert (code, said["replayed"], said["stand_in"]) == (0, True, True)
    assert said["sentences"][0]["support"] == "quoted"
    assert said["cost"] == {"paid": 0.0, "saved": 0.0, "tokens": 0}
    assert "text" not in said["sources"][0]


def test_what_cannot_be_asked_is_an_error(ask):
    """A collection that is not there is exit code 5, with its code."""
    code, _, err = ask("How?", "-c", "none")
    assert code == 5
    assert "unknown_collection" in err or "not_found" in err
