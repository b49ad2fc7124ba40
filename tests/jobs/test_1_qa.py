"""Questions and answers over a collection: what is asked, what is paid, what is kept."""

import csv
import io
import json

from tests.jobs.install import ask, done, job, kept_rows, paragraphs, results
from tests.jobs.install import chunks as chunks_of


def test_a_job_asks_about_each_chunk_once_and_says_where_answers_stand(install):
    """State, counters, cost and results agree with the provider's own book."""
    (book,) = install.shelf(paragraphs("alpha", 3))
    finished = done(install, per_chunk=2)
    chunks = book["chunks"]
    assert (finished["state"], finished["stage"], finished["kind"]) == ("success", None, "qa")
    assert (install.paid, finished["cost"]["paid_calls"]) == (chunks, chunks)
    assert finished["progress"]["stages"] == {
        "reading": [chunks, chunks],
        "asking": [chunks, chunks],
        "collecting": [2 * chunks, 2 * chunks],
    }
    assert (finished["progress"]["done"], finished["progress"]["total"], finished["progress"]["unit"]) == (
        chunks,
        chunks,
        "chunks",
    )
    assert (finished["counters"]["asked"], finished["counters"]["found"], finished["results"]) == (
        chunks,
        2 * chunks,
        2 * chunks,
    )
    assert finished["cost"]["paid"] > 0
    assert (finished["model"], finished["stand_in"]) == ("gpt-4o-mini", False)
    result = results(install.client, finished["job_id"], limit=2)
    assert len(result) == 2 * chunks
    assert {one["document_id"] for one in result} == {book["id"]}
    assert sorted({one["chunk"] for one in result}) == list(range(chunks))
    texts = chunks_of(install.client, book["id"])
    assert all(one["answer"] == texts[one["chunk"]] for one in result)


def test_the_limit_is_exact_and_no_more_is_paid_than_it_needs(install):
    """Seven questions of three to a chunk are three calls, spread over the documents."""
    shelf = install.shelf(*(paragraphs(name, 4) for name in ("alpha", "beta", "gamma")))
    finished = done(install, limit=7, per_chunk=3)
    result = results(install.client, finished["job_id"])
    assert (len(result), finished["results"], install.paid) == (7, 7, 3)
    assert {one["document_id"] for one in result} == {one["id"] for one in shelf}


def test_the_same_question_twice_is_one_result(install):
    """However it is spelt, and in whichever slice; chunks in reserve make up for it as far as they can."""
    install.shelf(paragraphs("alpha", 14), paragraphs("beta", 14))
    install.author.say = lambda messages: {
        "pairs": [
            {"question": "What is this?", "answer": "A text."},
            {"question": "  what IS this ", "answer": "Something else."},
        ]
    }
    finished = done(install, limit=500, per_chunk=2)
    assert finished["state"] == "success"
    assert [one["question"] for one in results(install.client, finished["job_id"])] == ["What is this?"]
    assert finished["counters"]["duplicates"] == 2 * finished["counters"]["asked"] - 1


def test_an_answer_that_gives_too_little_is_made_up_for(install):
    """A chunk in reserve is asked about, and no more of them than it takes."""
    install.shelf(paragraphs("alpha", 6))
    empty = iter([True])
    usual = install.author.pairs
    install.author.say = lambda messages: {"pairs": []} if next(empty, False) else usual(messages)
    finished = done(install, limit=2, per_chunk=1)
    assert (finished["results"], finished["counters"]["asked"], install.paid) == (2, 3, 3)


def test_asking_again_changes_nothing_until_a_document_does(install):
    """The same is `unchanged`; after a change only what is new is paid for."""
    text = paragraphs("alpha", 4)
    (book,) = install.shelf(text)
    first = done(install)
    paid, before = install.paid, chunks_of(install.client, book["id"])
    again = ask(install.client)
    assert (again.status, again.json["disposition"], again.json["job_id"]) == (
        200,
        "unchanged",
        first["job_id"],
    )
    install.client.put(f"documents/{book['id']}/content", {"text": f"{text}\n\n{paragraphs('omega', 1)}"})
    install.work()
    second = ask(install.client)
    assert (second.status, second.json["disposition"]) == (202, "superseding")
    install.work()
    finished = job(install.client, second.json["job_id"])
    assert finished["state"] == "success"
    fresh = set(chunks_of(install.client, book["id"])) - set(before)
    assert 0 < install.paid - paid == len(fresh) < len(before)
    assert finished["cost"]["reused_calls"] > 0


def test_notes_are_part_of_the_question(install):
    """Other notes are another job, and other calls."""
    install.shelf(paragraphs("alpha", 2))
    done(install)
    paid = install.paid
    finished = done(install, notes="For children, please.")
    assert install.paid == 2 * paid
    assert finished["params"]["notes"] == "For children, please."
    assert "For children, please." in install.author.heard[-1][0]["content"]


def test_only_the_named_documents_are_read(install):
    """One that is not there is not found, and nothing is spent."""
    first, _second = install.shelf(paragraphs("alpha", 2), paragraphs("beta", 2))
    finished = done(install, documents=[first["id"]])
    assert {one["document_id"] for one in results(install.client, finished["job_id"])} == {first["id"]}
    paid = install.paid
    assert ask(install.client, documents=["nobody"]).code == "unknown_document"
    assert install.paid == paid


def test_a_job_on_one_document(install):
    """Its subject is the document; the collection may have a job of its own meanwhile."""
    first, _second = install.shelf(paragraphs("alpha", 2), paragraphs("beta", 2))
    said = ask(install.client, to=f"documents/{first['id']}")
    other = ask(install.client)
    assert (said.status, other.status) == (202, 202)
    install.work()
    finished = job(install.client, said.json["job_id"])
    assert (finished["document_id"], finished["collection"]) == (first["id"], "shelf")
    assert {one["document_id"] for one in results(install.client, finished["job_id"])} == {first["id"]}


def test_results_stay_when_a_later_job_succeeds(install):
    """They are read by the job's id, whatever was published since and pruned after it."""
    install.shelf(paragraphs("alpha", 2))
    first = done(install, limit=2)
    before = results(install.client, first["job_id"])
    second = done(install, limit=3)
    install.tidy()
    assert results(install.client, first["job_id"]) == before
    assert len(results(install.client, second["job_id"])) == 3


def test_what_was_read_out_of_a_document_goes_with_it(install):
    """At once for readers, and from the tables when the deletion is pruned; the collection takes all."""
    first, second = install.shelf(paragraphs("alpha", 2), paragraphs("beta", 2))
    finished = done(install)
    install.client.call("DELETE", f"documents/{first['id']}")
    assert {one["document_id"] for one in results(install.client, finished["job_id"])} == {second["id"]}
    install.tidy()
    assert kept_rows(install) == len(results(install.client, finished["job_id"]))
    install.client.call("DELETE", "collections/shelf")
    assert install.client.get(f"jobs/{finished['job_id']}").status == 404
    install.tidy()
    assert kept_rows(install) == 0
    install.client.collection("shelf")
    assert install.client.get("jobs").json["jobs"] == []


def test_a_document_replaced_after_the_plan_is_left_out_and_counted(install):
    """Half of the old version and half of the new one would be neither."""
    shelf = install.shelf(paragraphs("alpha", 8), paragraphs("beta", 8))
    said = ask(install.client, limit=16, per_chunk=1)
    install.worker.engine.work_off(most=1)  # the plan
    install.client.put(f"documents/{shelf[0]['id']}/content", {"text": paragraphs("omega", 8)})
    install.work()
    finished = job(install.client, said.json["job_id"])
    assert finished["state"] == "success"
    assert finished["counters"]["replaced"] >= 1
    assert {one["document_id"] for one in results(install.client, said.json["job_id"])} <= {shelf[1]["id"]}


def test_a_model_that_answers_rubbish_cannot_hurt(install):
    """Characters that no database keeps, numbers that no JSON has, depth, length, wrong shapes."""
    install.shelf(paragraphs("alpha", 9))
    rubbish = iter(
        [
            {"pairs": [{"question": "A\x00\ud800?", "answer": "B\x00"}]},
            '{"pairs": [{"question": "Deep?", "answer": ' + "[" * 500 + "]" * 500 + "}]}",
            '{"pairs": 1e999}',
            {"pairs": [7, None, {}, {"question": 1, "answer": 2}, {"question": " ", "answer": "x"}]},
            {"pairs": [{"question": f"Number {n}?", "answer": "x" * 20_000} for n in range(9)]},
            {"pairs": {}},
            [],
        ]
    )
    usual = install.author.pairs
    install.author.say = lambda messages: next(rubbish, None) or usual(messages)
    finished = done(install, limit=100, per_chunk=2)
    assert finished["state"] == "success"
    result = results(install.client, finished["job_id"])
    assert ("A\ufffd\ufffd?", "B\ufffd") in [(one["question"], one["answer"]) for one in result]
    assert [len(one["answer"]) for one in result if one["question"].startswith("Number")] == [8000, 8000]
    assert finished["counters"]["unusable"] >= 3


def test_results_as_a_table(install):
    """A row for each; what a spreadsheet would run is only text."""
    install.shelf(paragraphs("alpha", 1))
    install.author.say = lambda messages: {"pairs": [{"question": '=1+1, "x"?', "answer": "Líne\nbreak"}]}
    finished = done(install)
    said = install.client.get(f"jobs/{finished['job_id']}/results?format=csv")
    rows = list(csv.DictReader(io.StringIO(said.raw.decode(), newline="")))
    assert said.headers["content-type"].startswith("text/csv")
    assert [(row["question"], row["answer"], row["chunk"]) for row in rows] == [
        ('\'=1+1, "x"?', "Líne\nbreak", "0")
    ]


def test_all_results_in_one_download(install):
    """The JSON that a person downloads has every result, also beyond the largest page."""
    install.shelf(paragraphs("alpha", 30))
    finished = done(install, per_chunk=20, limit=600)
    assert finished["results"] > 500
    said = install.client.get(f"jobs/{finished['job_id']}/results?all=true")
    body = json.loads(said.raw)
    assert body["results"] == results(install.client, finished["job_id"])
    assert (body["job_id"], body["next"], len(body["results"])) == (
        finished["job_id"],
        None,
        finished["results"],
    )
    assert f"qa-{finished['job_id']}.json" in said.headers["content-disposition"]


def test_the_list_of_jobs_is_read_page_by_page(install):
    """The newest first, by collection, kind and state."""
    install.shelf(paragraphs("alpha", 1))
    install.shelf(paragraphs("beta", 1), to="other")
    items = [
        done(install, limit=1)["job_id"],
        done(install, limit=2)["job_id"],
        done(install, to="collections/other")["job_id"],
    ]
    seen, cursor = [], ""
    while True:
        page = install.client.get(f"jobs?limit=2{cursor}").json
        seen += [one["job_id"] for one in page["jobs"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert seen == items[::-1]
    only = install.client.get("jobs?collection=other&kind=qa&state=success").json["jobs"]
    assert [one["job_id"] for one in only] == [items[2]]
    assert install.client.get("jobs?state=failed").json["jobs"] == []
    assert install.client.get("jobs?kind=extract").json["jobs"] == []
