"""What a request costs in statements: a page of documents costs no more than one of them."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event

from holdfast.api.search import Hits
from holdfast.providers.local import LocalProvider
from tests.api.install import ApiInstall, Client


@contextlib.contextmanager
def statements(install: ApiInstall) -> Iterator[list[str]]:
    """What is sent to the database meanwhile, and every transaction that is begun."""
    sent: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith("BEGIN"):
            sent.append(statement)

    def begin(connection: Any) -> None:
        if not connection.get_execution_options().get("holdfast_look", False):
            sent.append("BEGIN")

    engine = install.runtime.db.engine
    event.listen(engine, "before_cursor_execute", note)
    event.listen(engine, "begin", begin)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)
        event.remove(engine, "begin", begin)


def test_a_duplicate_is_refused_in_one_transaction_and_four_looks(
    install: ApiInstall, client: Client
) -> None:
    """Caller, document, collection and the run in the way are looked up; the refusal is journalled."""
    waiting = client.text("It waits.")
    with statements(install) as sent:
        said = client.post(f"documents/{waiting['id']}/index", {"mode": "retry"})
    assert said.status == 409
    assert sent.count("BEGIN") == 1
    assert len(sent) <= 9, sent
    assert sum(statement.startswith("INSERT INTO holdfast_journal") for statement in sent) == 1


def test_an_upload_is_taken_in_one_transaction(install: ApiInstall, client: Client) -> None:
    """The caller and the collection are looked up once, and the new document is not read again."""
    client.collection("shelf")
    with statements(install) as sent:
        client.text("A text of its own.")
    assert sent.count("BEGIN") == 1
    assert len(sent) <= 18, sent


def test_a_page_of_documents_costs_no_more_statements_than_one_document(
    install: ApiInstall, client: Client
) -> None:
    """However many documents there are, and whatever they are doing; none of it opens a transaction."""
    items = [client.text(f"Text number {number}.") for number in range(5)]
    with statements(install) as one:
        assert client.get(f"documents/{items[0]['id']}").status == 200
    with statements(install) as many:
        assert len(client.get("collections/shelf/documents?limit=50").json["documents"]) == 5
    assert (len(one), len(many)) == (3, 4)
    assert "BEGIN" not in one + many


def test_a_page_tells_of_a_document_what_the_document_tells_of_itself(
    install: ApiInstall, client: Client
) -> None:
    """The page is written without the models that describe it: what it says must be the same."""
    client.indexed("A text that is published.")
    client.text("A text that waits.", options={"chunk_size": 900})
    failed = client.post("collections/shelf/documents", {"text": "?", "title": "x" * 500})
    assert failed.status == 202
    listed = client.get("collections/shelf/documents").json["documents"]
    assert len(listed) == 3
    assert listed == [client.get(f"documents/{each['id']}").json for each in listed]


def test_a_search_of_a_collection_at_rest_is_three_looks(install: ApiInstall, client: Client) -> None:
    """Caller, collection and hits; what was published since the last one is read in a snapshot."""
    client.indexed("The anchor holds fast.")
    client.get("search?collection=shelf&q=anchor")
    with statements(install) as sent:
        assert client.get("search?collection=shelf&q=anchor").json["hits"]
    assert "BEGIN" not in sent
    assert len(sent) <= 3, sent
    client.indexed("A second anchor, published later.")
    with statements(install) as sent:
        assert len(client.get("search?collection=shelf&q=anchor").json["hits"]) == 2
    assert sent.count("BEGIN") == 1


def test_hits_are_written_as_their_model_describes_them(install: ApiInstall, client: Client) -> None:
    """They are written without the model: every field is there, in its form and order."""
    client.indexed("The anchor “holds” fast.\n\tÜber alles.")
    for query in ("q=anchor", "q=anchor&mode=keyword", "q=zebra&mode=keyword"):
        said = client.get(f"search?collection=shelf&{query}")
        assert said.headers["content-type"] == "application/json"
        assert Hits.model_validate(said.json, strict=True).model_dump(mode="json") == said.json
        assert list(said.json) == list(Hits.model_fields)


def test_a_question_that_is_asked_again_is_not_embedded_again(
    install: ApiInstall, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model on board says the same of it each time; of a very long question nothing is kept."""
    client.indexed("The anchor holds fast.")
    embedded: list[str] = []
    plain = LocalProvider.embed

    def embed(provider: LocalProvider, texts: Sequence[str]) -> np.ndarray:
        embedded.extend(texts)
        return plain(provider, texts)

    monkeypatch.setattr(LocalProvider, "embed", embed)
    long = "anchors " * 50
    answers = [
        client.get(f"search?collection=shelf&q={q.strip().replace(' ', '+')}").json
        for q in ("anchors", "ropes", "anchors", long, long)
    ]
    assert embedded == ["anchors", "ropes", long.strip(), long.strip()]
    assert answers[0] == answers[2]
    assert answers[3] == answers[4]
