"""A question is answered from what was found, with checked citations; the meter says what it cost."""

import pytest

from tests.api.install import PREFIX

QUESTION = "How tall is the Eiffel Tower?"


def test_an_answer_cites_its_sources(install):
    """The sentence, its source with page and quote, and the price are in the answer."""
    said = install.ask(QUESTION)
    assert said["answer"] == "The Eiffel Tower is 330 metres tall [1]."
    assert said["sentences"] == [
        {"text": "The Eiffel Tower is 330 metres tall.", "cites": [1], "support": "quoted"}
    ]
    source = said["sources"][0]
    assert (source["n"], source["title"], source["generation"]) == (1, "Towers", 1)
    assert "330 metres" in source["quote"]
    assert source["chunk"].startswith(source["document_id"] + "@")
    assert [said[name] for name in ("refused", "reason", "replayed", "stand_in")] == [
        False,
        None,
        False,
        False,
    ]
    assert said["cost"]["paid"] > 0
    assert install.meter.totals().charges == 1


def test_a_source_whose_text_a_person_edited_says_so(install):
    """The answer is made from the edited text, and another text is another question to pay for."""
    assert install.ask(QUESTION)["sources"][0]["edited"] is False
    towers = install.client.get("collections/shelf/documents?q=Towers").json["documents"][0]["id"]
    (chunk,) = install.client.get(f"documents/{towers}/chunks").json["chunks"]
    path = f"{PREFIX}/documents/{towers}/chunks/{chunk['id']}"
    assert install.client.call("PATCH", path, {"text": "The Eiffel Tower is 324 metres tall."}).status == 202
    install.work()
    said = install.ask(QUESTION)
    assert (said["sources"][0]["edited"], said["replayed"]) == (True, False)
    assert "324 metres" in said["sources"][0]["quote"]


def test_the_same_question_again_is_replayed_for_nothing(install):
    """The second answer is the first, costs nothing, and says what it would have cost."""
    first = install.ask(QUESTION)
    again = install.ask(QUESTION)
    assert again["replayed"] is True
    assert again["cost"] == {"paid": 0.0, "saved": first["cost"]["paid"], "tokens": 0}
    assert again["answer"] == first["answer"]
    assert install.meter.totals().charges == 1


def test_a_question_that_finds_nothing_pays_nobody(install):
    """No hit, and a hit that is weak, are refused without a call."""
    said = install.ask("xqzvw kkkrt pfffg")
    assert (said["refused"], said["answer"], said["sources"]) == (True, "", [])
    assert said["reason"] in {"nothing_found", "weak_matches"}
    assert install.meter.totals().charges == 0


def test_unknown_citations_are_removed_and_counted(quick):
    """A number that names no source is in no answer; numbers that the source lacks are unsupported."""
    quick.model.says = "It is 330 metres tall [1][9]. It has 8 floors [1]. It was sold [0]."
    said = quick.ask(QUESTION, k=1)
    assert said["unknown_citations"] == 2
    assert said["answer"] == "It is 330 metres tall [1]. It has 8 floors [1]. It was sold."
    assert [each["support"] for each in said["sentences"]] == ["worded", "none", "none"]
    assert all(set(each["cites"]) <= {1} for each in said["sentences"])


def test_the_prompt_is_content_alone(quick):
    """No id, no date, no score; other documents of other rank in between change nothing."""
    said = quick.ask("What about the tower and the lease of the warehouse?", mode="keyword")
    ids = {each["document_id"] for each in said["sources"]}
    assert len(ids) == 2
    assert not any(each in quick.model.prompts[0] for each in ids)
    quick.client.indexed("Bananas are yellow.", title="Fruit")
    again = quick.ask("What about the tower and the lease of the warehouse?", mode="keyword")
    assert (again["replayed"], quick.meter.totals().charges) == (True, 1)


def test_fresh_pays_again_and_is_the_answer_from_then_on(quick):
    """The new answer replaces the old one also for those who ask plainly."""
    quick.ask(QUESTION)
    quick.model.says = "It was opened on 31 March 1889 [1]."
    assert quick.ask(QUESTION, fresh=True)["replayed"] is False
    said = quick.ask(QUESTION)
    assert (said["replayed"], said["answer"]) == (True, "It was opened on 31 March 1889 [1].")
    assert quick.meter.totals().charges == 2


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        ('{"answer": "The tow', "uncited"),
        ("Der Turm ist hoch.", "uncited"),
        ("It is tall [1]. " * 40, "repetitive"),
    ],
)
def test_a_model_that_talks_nonsense_has_a_clear_state(quick, says, reason):
    """Cut JSON, another language, repetition: the answer says what is amiss."""
    quick.model.says = says
    said = quick.ask(QUESTION)
    assert (said["refused"], said["reason"]) == (False, reason)
    assert len(said["sentences"]) == 1


def test_a_model_that_finds_no_answer_is_a_refusal(quick):
    """The model was install, and says that the sources do not hold it."""
    quick.model.says = "NO ANSWER"
    said = quick.ask(QUESTION)
    assert (said["refused"], said["reason"], said["answer"]) == (True, "not_in_sources", "")
    assert [name for name, _ in quick.stream(QUESTION)] == ["sources", "refused"]


def test_an_empty_answer_is_an_error_and_is_not_paid_twice(quick):
    """What the model left empty was paid for; asking again replays it."""
    quick.model.says = " "
    for _ in range(2):
        response = quick.client.post("collections/shelf/ask", {"question": QUESTION})
        assert (response.status, response.code) == (502, "bad_answer")
    assert quick.meter.totals().charges == 1


def test_several_collections_are_asked_together(quick):
    """Sources come from all of them, each with its collection."""
    quick.client.indexed("The Eiffel Tower was painted brown.", to="paint", title="Paint")
    body = {"question": "What is known of the Eiffel Tower?", "collections": ["shelf", "paint"]}
    said = quick.client.post("ask", body).json
    assert {each["collection"] for each in said["sources"]} == {"shelf", "paint"}


def test_a_budget_that_is_used_up_refuses_with_402(quick):
    """Nothing is sent when the budget or `max_cost` does not allow it."""
    response = quick.client.post("collections/shelf/ask", {"question": QUESTION, "max_cost": 0.000001})
    assert (response.status, response.code) == (402, "over_budget")
    assert quick.client.put("budgets", {"scope": "tenant", "hard": 0.0000001}).status == 200
    response = quick.client.post("collections/shelf/ask", {"question": QUESTION})
    assert (response.status, response.code) == (402, "over_budget")
    assert quick.meter.totals().charges == 0
