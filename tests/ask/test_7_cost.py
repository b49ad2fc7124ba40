"""What an answer costs, all of it, and whose bill has it."""

import pytest

from tests.ask.conftest import AskInstall

QUESTION = "How tall is the Eiffel Tower?"


@pytest.fixture
def embedding(sqlite_url, tmp_path, llm, model):
    """An installation whose questions are embedded by a server that charges."""
    wire = {"embedding_provider": "openai", "embedding_base_url": llm.base_url}
    installation = AskInstall(sqlite_url, tmp_path / "data", llm, model, **wire)
    yield installation.filled()
    installation.close()


def test_the_embedding_of_the_question_is_part_of_the_cost(embedding):
    """The tokens of an answer are those of all its calls; the same again saves all of it and pays nothing."""
    before = embedding.meter.totals().tokens
    first = embedding.ask(QUESTION)
    endpoints = [each["endpoint"] for each in embedding.meter.log() if each["inputs"] == (QUESTION,)]
    assert endpoints == ["embeddings"]
    completion = len(embedding.model.says) // 4
    assert first["cost"]["tokens"] == embedding.meter.totals().tokens - before + completion
    again = embedding.ask(QUESTION)
    assert again["cost"] == {"paid": 0.0, "saved": pytest.approx(first["cost"]["paid"]), "tokens": 0}


def test_several_collections_are_billed_to_the_one_that_most_passages_are_from(quick):
    """The answer names it, and its bill has the call; the collection that was named first has nothing."""
    quick.client.indexed("A tower of cards is 2 metres tall.", title="Cards", to="games")
    answer = quick.client.post("ask", {"question": QUESTION, "collections": ["games", "shelf"]}).json
    assert answer["billed_to"] == "shelf"
    bill = quick.client.get("bill?by=collection").json
    paid = {line["about"]: line["paid"] for line in bill["lines"]}
    assert (paid["shelf"], paid.get("games", 0)) == (pytest.approx(answer["cost"]["paid"]), 0)
