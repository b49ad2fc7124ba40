"""Trees, graphs and mind maps under hard conditions: a clear state, nothing lost, and nothing paid twice."""

import json

import pytest
from sqlalchemy import update

from holdfast.store.base.schema import tasks, throttles
from holdfast.store.derived import trees
from tests.jobs.derived_kills import KINDS
from tests.jobs.install import ask, done, job, results

EVERY_KIND = pytest.mark.parametrize("kind", sorted(KINDS))
DOCUMENTS = {"raptor": 2, "graph": 2, "mindmap": 4}
# Of its estimate, which is not enough for a job: summaries come out much shorter than they may be.
SHARES = {"raptor": 0.25, "graph": 0.4, "mindmap": 0.25}


def filled(install, kind, documents=None):
    """An installation with documents for a kind, and a model that knows how to answer it."""
    install.author.say = KINDS[kind].chat
    install.client.collection("shelf")
    for upload in KINDS[kind].write(documents or DOCUMENTS[kind]):
        install.client.upload("collections/shelf/documents", upload.content, upload.name)
    install.work()
    return install


def whole(install, kind):
    """What is published has nothing wrong with it, and every input was charged once."""
    (head,) = install.runtime.db.read(lambda tx: trees.of_collection(tx, "default", "shelf", kind, 9))
    totals = install.meter.totals()
    assert (totals.charges, totals.excess) == (totals.distinct_inputs, 0)
    return trees.faults(install.runtime.db, head) == trees.TreeFaults(0, 0, 0)


def pass_time(install, seconds):
    def body(tx):
        for column in (tasks.c.due_at, throttles.c.not_before):
            tx.execute(update(column.table).where(column > seconds).values({column: column - seconds}))

    install.runtime.db.write("by_hand", body)


FOREIGN = "Ich kann diese Passagen leider nicht zusammenfassen, weil darin zu wenig steht."
ANSWERS = {
    "nonsense": "%%% ]]] {{{ lorem",
    "cut": '{"entities": [{"name": "Ann Archer", "type": "person", "descr',
    "wrong types": json.dumps({"entities": 7, "relations": "x", "topics": [[1]], "summary": [], "same": {}}),
    "another language": FOREIGN,
    "refuses": "I'm sorry, but I can't help with that.",
    "repeats itself": json.dumps({"entities": [{"name": "Ann Archer", "type": "person"}] * 4000}),
    "nested": "[" * 20_000,
}


@EVERY_KIND
@pytest.mark.parametrize("answer", list(ANSWERS))
def test_a_model_that_answers_badly(small, kind, answer):
    """The job ends with a result that is whole, or fails with a reason; doing it again pays nothing."""
    filled(small, kind).author.say = lambda _messages: ANSWERS[answer]
    finished = done(small, kind)
    assert finished["state"] in {"success", "failed"}
    if finished["state"] == "failed":
        assert finished["error"]["code"] in {"bad_answer", "answer_cut", "invalid_answer", "no_text"}
        assert small.client.get(f"collections/shelf/{'tree' if kind == 'raptor' else kind}").status == 200
    else:
        assert whole(small, kind)
    paid = small.paid
    done(small, kind, mode="force")
    assert (small.paid, small.meter.totals().excess) == (paid, 0)


@EVERY_KIND
def test_one_document_of_one_word(small, kind):
    """There is nothing to group or relate: a result that is whole, or a failure that says so."""
    small.author.say = KINDS[kind].chat
    small.shelf("Word")
    finished = done(small, kind)
    if finished["state"] == "success":
        assert whole(small, kind)
    else:
        assert finished["error"]["message"]
    assert small.paid <= 1


@EVERY_KIND
def test_a_second_job_of_a_kind_is_refused(small, kind):
    """409 with the one that runs."""
    filled(small, kind)
    first = ask(small.client, kind)
    second = ask(small.client, kind)
    assert (second.status, second.code) == (409, "duplicate")
    assert second.json["error"]["active"]["run_id"] == first.json["job_id"]


@EVERY_KIND
def test_a_budget_that_ends_in_the_middle(install, kind):
    """The job waits and says for what; with a higher budget it goes on where it was."""
    filled(install, kind)
    forecast = install.estimate(kind).forecast.cost / 1e9
    price = done(install, kind)["cost"]["paid"]
    before = install.paid
    install.client.put("budgets", {"scope": "collection:shelf", "hard": price + SHARES[kind] * forecast})
    said = ask(install.client, kind, notes="Once more.")
    assert said.status == 202, said.raw
    install.work()
    waiting = job(install.client, said.json["job_id"])
    assert (waiting["state"], waiting["waiting"]["reason"]) == ("running", "budget")
    assert before < install.paid < 2 * before
    install.client.put("budgets", {"scope": "collection:shelf", "hard": 10 * (price + forecast)})
    pass_time(install, 3600.0)
    install.worker.engine.sweep()
    install.work()
    assert job(install.client, said.json["job_id"])["state"] == "success"
    assert (install.paid, whole(install, kind)) == (2 * before, True)


@EVERY_KIND
def test_a_model_that_disappears_between_phases(install, kind):
    """The job fails and names the cause; when the model is back, what was paid is reused."""
    filled(install, kind)
    calls = install.estimate(kind).forecast.calls
    body = '{"error": {"message": "The model does not exist.", "code": "model_not_found"}}'
    gone = {"do": "fail", "status": 404, "charge": False, "times": 999, "body": body}
    install.meter.plan(script=[{"do": "answer", "times": calls - 1}, gone])
    finished = done(install, kind)
    paid = install.paid
    assert 0 < paid < calls + 3
    if finished["state"] == "failed":
        assert finished["error"]["code"]
    install.meter.plan(script=[])
    again = done(install, kind, mode="force")
    assert (again["state"], whole(install, kind)) == ("success", True)
    assert install.paid > paid


@EVERY_KIND
def test_cancelled_between_any_two_calls(small, kind):
    """Whenever it is, nothing of the job is seen, and the next one pays only for the rest."""
    filled(small, kind)
    usual, heard, running = small.author.say, [], []

    def say(messages):
        heard.append(messages)
        if len(heard) in stops:
            small.client.post(f"jobs/{running[-1]}/cancel")
        return usual(messages)

    stops = {1, 2, 3, 5, 8}
    small.author.say = say
    for _ in stops:
        said = ask(small.client, kind)
        assert said.status == 202, said.raw
        running.append(said.json["job_id"])
        small.work()
        if job(small.client, running[-1])["state"] == "success":
            break
        assert job(small.client, running[-1])["state"] == "cancelled"
        assert not small.runtime.db.read(lambda tx: trees.of_collection(tx, "default", "shelf", kind, 9))
    small.author.say = usual
    finished = done(small, kind, mode="force")
    assert (finished["state"], whole(small, kind)) == ("success", True)


@EVERY_KIND
def test_a_ceiling_of_one_run(small, kind):
    """The job stops before it costs more; what it paid is there for the next one."""
    filled(small, kind)
    price = done(small, kind)["cost"]["paid"]
    before = small.paid
    body = {"kind": kind, "params": {"notes": "Once more."}, "max_cost": price * 0.9}
    said = small.client.post("collections/shelf/jobs", body)
    assert said.status == 202, said.raw
    small.work()
    stopped = job(small.client, said.json["job_id"])
    assert (stopped["state"], stopped["error"]["code"]) == ("failed", "over_max_cost")
    assert stopped["cost"]["paid"] <= price * 0.9
    assert done(small, kind, notes="Once more.")["state"] == "success"
    assert (small.paid, whole(small, kind)) == (2 * before, True)


@EVERY_KIND
def test_what_failed_is_listed_with_its_document(small, kind):
    """The model refuses one of the documents: the rest is there, and that one is named with a reason."""
    filled(small, kind)
    documents = small.client.get("collections/shelf/documents").json["documents"]
    (first,) = (each for each in documents if each["title"] in {"0.txt", "aaaa.txt", "0.md"})
    mark = {"raptor": "name0", "graph": "aaaa", "mindmap": "name0 "}[kind]
    usual = small.author.say

    def say(messages):
        text = str(messages[1]["content"])
        return "" if mark in text else usual(messages)

    small.author.say = say
    finished = done(small, kind)
    assert finished["state"] == "success", finished
    listed = [each for each in results(small.client, finished["job_id"]) if each["error"]]
    assert first["id"] in {each["document_id"] for each in listed}
    assert finished["counters"]["failed"] > 0


def test_the_stage_of_a_later_phase(small):
    """While reports are written a job says so, and not that it extracts."""
    filled(small, "graph")
    said, stages = ask(small.client, "graph"), set()

    def say(messages):
        if str(messages[0]["content"]).startswith("Below are things"):
            stages.add(job(small.client, said.json["job_id"])["stage"])
        return KINDS["graph"].chat(messages)

    small.author.say = say
    small.work()
    assert stages == {"reporting"}
