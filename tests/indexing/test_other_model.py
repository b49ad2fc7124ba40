"""Another embedding provider does not turn search into keyword search silently, and says what to do."""

import json
import socket

import pytest

from holdfast.chaos.waiting import until
from tests.api.install import ApiInstall

TEXT = "The ferry leaves the harbour at noon."


@pytest.fixture
def moved(database_url, tmp_path, meter):
    """An installation whose documents were embedded on board, and which uses a server now."""
    before = ApiInstall(database_url, tmp_path / "data")
    before.client.indexed(TEXT)
    before.close()
    server = {"embedding_provider": "openai", "embedding_base_url": meter.base_url, "embedding_api_key": "k"}
    install = ApiInstall(database_url, tmp_path / "data", **server)
    yield install
    install.close()


def asked(install, **more):
    words = "&".join(f"{name}={value}" for name, value in {"q": "boat", **more}.items())
    return install.client.get(f"search?collection=shelf&{words}").json


def test_documents_of_another_model_are_told_of_with_the_way_out(moved, meter):
    """The answer says how many, what it costs and how; doing that brings them back."""
    (notice,) = asked(moved)["notices"]
    assert (notice["code"], notice["documents"]) == ("other_model", 1)
    price = moved.client.post("estimate", notice["estimate"]["body"]).json
    assert (price["documents"], price["calls"]) == (1, 1)
    assert price["cost"] > 0
    start = notice["start"]
    body = {**start["body"], "estimate": price["fingerprint"]}
    said = moved.client.call(start["method"], start["path"], body)
    assert (said.status, said.json["requested"]) == (200, 1)
    moved.work()
    until(lambda: not asked(moved)["notices"], 30, "it is told of still")
    assert [hit["text"] for hit in asked(moved)["hits"]] == [TEXT]


def test_nothing_is_said_of_what_is_as_it_should_be(database_url, tmp_path):
    """Nor by somebody who looks for words alone."""
    install = ApiInstall(database_url, tmp_path / "data")
    try:
        install.client.indexed(TEXT)
        assert (asked(install)["notices"], asked(install, mode="keyword")["notices"]) == ([], [])
    finally:
        install.close()


def test_a_question_that_cannot_be_embedded_is_told_of(database_url, tmp_path):
    """Words alone decide then, and the answer says who did not answer."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    server = {"embedding_provider": "openai", "embedding_base_url": f"http://127.0.0.1:{port}/v1"}
    install = ApiInstall(database_url, tmp_path / "data", embedding_api_key="k", **server)
    try:
        install.client.collection("shelf")
        output = asked(install)
        (notice,) = output["notices"]
        assert (notice["code"], output["legs"]) == ("not_embedded", ["keyword"])
        assert f"openai@127.0.0.1:{port}" in notice["message"]
    finally:
        install.close()


def test_the_command_line_says_it_and_indexes_again(installed, tmp_path, monkeypatch, holdfast):
    """`search` names the command, `reindex` its price."""
    paper = tmp_path / "alpha.txt"
    paper.write_text(TEXT)
    for name in ("PROVIDER", "BASE_URL", "API_KEY"):
        monkeypatch.delenv(f"HOLDFAST_EMBEDDING_{name}")
    assert holdfast("index", str(paper))[0] == 0
    for name in ("PROVIDER", "BASE_URL", "API_KEY"):
        monkeypatch.setenv(f"HOLDFAST_EMBEDDING_{name}", installed[f"HOLDFAST_EMBEDDING_{name}"])
    assert "holdfast reindex -c default" in holdfast("search", "ferry")[1]
    code, out, _ = holdfast("reindex")
    assert (code, "estimate for reindexing: 1 document" in out) == (0, True)
    assert json.loads(holdfast("reindex", "--json")[1]) == {"requested": 0, "to_follow": 0}
