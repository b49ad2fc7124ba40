"""Hits in the order of a reranking model: one call, paid once, and never a reason to fail."""

import json

import pytest

from tests.ask.conftest import AskInstall

# Words alone put the first at the top; by the meter's reckoning it has the fewest words of the question.
TEXTS = {
    "Lamps": "Lamp, quay, oiled. Lamp, quay, oiled. Lamp, quay, oiled.",
    "Oil": "Nobody has to ask when the lamp on the quay is oiled: at dusk, by the watch, from a can.",
    "Rope": "The lamp on the quay is near the rope store, where the lines of the ferry are oiled in winter.",
}
QUESTION = "when is the lamp on the quay oiled"


def filled(url, tmp_path, llm, model):
    """An installation with a reranker called `judge`."""
    judge = {
        "wire": "cohere",
        "base_url": f"{llm.url}/v2",
        "identity": "judge",
        "prices": {"rerank-v3.5": {"search": 0.5}},
    }
    installation = AskInstall(url, tmp_path / "data", llm, model, providers={"judge": judge})
    for title, text in TEXTS.items():
        installation.client.indexed(text, title=title)
    return installation


@pytest.fixture
def ranked(database_url, tmp_path, llm, model):
    installation = filled(database_url, tmp_path, llm, model)
    yield installation
    installation.close()


@pytest.fixture
def quick_ranked(sqlite_url, tmp_path, llm, model):
    """The same on SQLite alone, for what no database decides."""
    installation = filled(sqlite_url, tmp_path, llm, model)
    yield installation
    installation.close()


def titles(page):
    return [hit["title"] for hit in page["hits"]]


def searched(install, **more):
    body = {"collections": ["shelf"], "q": QUESTION, "mode": "keyword", **more}
    response = install.client.post("search", body)
    assert response.status == 200, response.raw
    return response.json


def test_hits_are_in_the_order_of_the_reranker_and_paid_for_once(ranked):
    """The cost is shown; the same question again, or another page of it, pays nothing."""
    plain = searched(ranked)
    assert (plain["cost"]["paid"], plain["hits"][0]["relevance"]) == (0.0, None)
    first = searched(ranked, rerank=True)
    assert (titles(plain)[0], titles(first)) == ("Lamps", ["Oil", "Rope", "Lamps"])
    assert [round(hit["relevance"], 1) for hit in first["hits"]] == [1.0, 0.9, 0.4]
    assert (first["cost"]["paid"], "rerank" in first["legs"]) == (0.5, True)
    again = searched(ranked, rerank="judge", k=1, offset=1)
    assert titles(again) == titles(first)[1:2]
    assert (again["cost"]["paid"], again["cost"]["saved"]) == (0.0, 0.5)
    assert ranked.meter.totals().charges == 1


def test_a_collection_may_rerank_by_itself_and_a_request_may_not(ranked):
    """The option is checked when it is set, and holds for searches and answers that do not turn it off."""
    path = "/api/v1/collections/shelf"
    wrong = ranked.client.call("PATCH", path, {"search": {"rerank": "nobody"}})
    assert (wrong.status, wrong.code) == (400, "unknown_provider")
    assert ranked.client.call("PATCH", path, {"search": {"rerank": "judge"}}).status == 200
    assert "rerank" in searched(ranked)["legs"]
    assert "rerank" not in searched(ranked, rerank=False)["legs"]
    ranked.model.says = "The lamp on the quay is oiled at dusk [1]."
    answer = ranked.ask(QUESTION, k=1, mode="keyword")
    assert [source["title"] for source in answer["sources"]] == ["Oil"]
    assert (answer["cost"]["saved"], answer["notices"]) == (0.5, [])
    assert len([e for e in ranked.meter.log() if e["endpoint"] == "rerank"]) == 1


def test_a_reranker_that_fails_leaves_the_hits_in_their_own_order(ranked):
    """Refused by the provider, or over the budget: the same hits, with a notice that says why."""
    plain = titles(searched(ranked))
    ranked.meter.plan(script=[{"do": "fail", "status": 400}])
    failed = searched(ranked, rerank=True)
    assert (titles(failed), [each["code"] for each in failed["notices"]]) == (plain, ["not_reranked"])
    ranked.client.call("PUT", "/api/v1/budgets", {"scope": "tenant", "hard": 0.1})
    over = searched(ranked, rerank=True)
    assert (titles(over), [each["code"] for each in over["notices"]]) == (plain, ["not_reranked"])
    assert "budget" in over["notices"][0]["message"]
    answer = ranked.ask(QUESTION, rerank=True, mode="keyword")
    assert [each["code"] for each in answer["notices"]] == ["not_reranked"]
    assert [e for e in ranked.meter.log() if e["endpoint"] == "rerank" and e["charged"]] == []


def test_weak_matches_are_not_sent_to_a_reranker(ranked):
    """What would be refused costs nothing, with a reranker or without."""
    answer = ranked.ask("xqzvw kkkrt pfffg", rerank=True)
    assert (answer["refused"], answer["cost"]["paid"]) == (True, 0.0)
    assert ranked.meter.totals().charges == 0
    nobody = ranked.client.post("search", {"collections": ["shelf"], "q": "lamp", "rerank": "other"})
    assert (nobody.status, nobody.code) == (400, "unknown_provider")


def ranking(*results):
    return json.dumps({"results": [{"index": index, "relevance_score": score} for index, score in results]})


@pytest.mark.parametrize(
    "body",
    [
        ranking((0, 0.9), (1, 0.8), (3, 0.7)),
        ranking((0, 0.9), (-1, 0.8)),
        ranking((0, 0.9), (0, 0.8), (1, 0.7)),
        ranking((0, 0.9), (1, float("nan"))),
        ranking((0, 0.9), (1, float("inf"))),
        ranking((0, 0.9), (1, 10**400)),
        ranking((0, 0.9), (True, 0.8)),
        ranking((0, 0.9), ("1", 0.8)),
        ranking((0, "0.9")),
        ranking((0, True)),
        ranking(*((n, 0.5) for n in range(1000))),
        ranking(),
        '{"results": {"index": 0}}',
        '{"results": [7]}',
        "[]",
        "<html>",
        "[" * 100_000,
    ],
    ids=str,
)
def test_a_ranking_that_is_none_changes_nothing(quick_ranked, body):
    """Wrong, repeated and missing places, scores that are no numbers: the own order, a notice, one charge."""
    plain = titles(searched(quick_ranked))
    quick_ranked.meter.plan(script=[{"do": "answer", "body": body.encode()}])
    for _ in range(2):
        page = searched(quick_ranked, rerank=True)
        assert (titles(page), [each["code"] for each in page["notices"]]) == (plain, ["not_reranked"])
        assert all(hit["relevance"] is None for hit in page["hits"])
    assert len([e for e in quick_ranked.meter.log() if e["endpoint"] == "rerank" and e["charged"]]) <= 1


def test_a_ranking_of_some_puts_the_others_behind(quick_ranked):
    """What the server left out has no score, and comes after what has one."""
    quick_ranked.meter.plan(script=[{"do": "answer", "body": ranking((1, 0.2)).encode()}])
    page = searched(quick_ranked, rerank=True)
    assert [hit["relevance"] for hit in page["hits"]] == [0.2, None, None]
    assert sorted(titles(page)) == sorted(TEXTS)


def test_the_price_limit_of_a_question_holds_for_its_ranking(quick_ranked):
    """`max_cost` below the price of a ranking: nobody is asked to rank, and the notice says so."""
    quick_ranked.model.says = "The lamp on the quay is oiled at dusk [1]."
    answer = quick_ranked.ask(QUESTION, rerank=True, mode="keyword", max_cost=0.1)
    assert [each["code"] for each in answer["notices"]] == ["not_reranked"]
    assert "max_cost" in answer["notices"][0]["message"]
    assert [e for e in quick_ranked.meter.log() if e["endpoint"] == "rerank"] == []
