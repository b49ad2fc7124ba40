"""What is derived from a collection is kept up to date by an action: one run after a quiet time."""

import pytest
from sqlalchemy import update

from holdfast import bootstrap
from holdfast.store.base.schema import keeps
from holdfast.store.follow_ups import keeps as stored
from tests.jobs.install import ask, paragraphs


@pytest.fixture
def author(author):
    author.say = lambda _messages: "A title\nAnd a summary."
    return author


def turn(install, passed=0.0):
    """One turn of the duty, after so many seconds more; what it requested is carried out."""
    sooner = {name: keeps.c[name] - passed for name in ("changed_at", "due_at")}
    install.runtime.db.write("pass", lambda tx: tx.execute(update(keeps).values(sooner)))
    started = bootstrap.AppServices(install.runtime).keeps.run_due()
    install.work()
    return started


def keep(install, kind="mindmap", **params):
    answer = install.client.post("collections/shelf/actions", {"sort": f"keep:{kind}", "params": params})
    assert answer.status == 201, answer.raw
    return answer.json["action"]


def runs(install, kind="mindmap"):
    return install.client.get(f"jobs?kind={kind}").json["jobs"]


def shown(install):
    return install.client.get("collections/shelf/actions").json["actions"][0]


def test_edits_fold_into_one_run_after_a_quiet_time(install):
    """At once for what is ready; then after a minute without a change, and not again for its own version."""
    install.shelf(paragraphs("alpha", 3), paragraphs("beta", 3))
    keep(install)
    assert (turn(install), len(runs(install))) == (1, 1)
    assert (turn(install), turn(install, 100), len(runs(install))) == (0, 0, 1)
    for name in ("gamma", "delta"):
        install.shelf(paragraphs(name, 3))
        assert turn(install, 40) == 0
    assert shown(install)["due_at"] is not None
    assert (turn(install, 61), len(runs(install))) == (1, 2)
    action = shown(install)
    assert (action["fired"], action["done"], action["error"]) == (2, 2, None)
    assert (turn(install), turn(install, 61), len(runs(install))) == (0, 0, 2)
    covered = [one["title"] for one in install.client.get("collections/shelf/mindmap").json["topics"]]
    assert len(covered) >= 1


def test_a_burst_cannot_postpone_it_for_ever(small):
    """A change every half minute: the run comes ten quiet times after the first of them."""
    small.shelf(paragraphs("alpha", 2))
    keep(small, quiet_seconds=60)
    turn(small)
    began = len(runs(small))
    for number in range(30):
        small.shelf(paragraphs(f"name{number}", 1))
        turn(small, 30)
        if len(runs(small)) > began:
            break
    assert 18 <= number <= 21


def test_a_deleted_document_and_one_that_was_there_before(small):
    """A deletion is a change; with `existing: skip` the documents that are there are none."""
    documents = small.shelf(paragraphs("alpha", 2), paragraphs("beta", 2))
    body = {"sort": "keep:raptor", "params": {"scope": "document"}, "existing": "skip"}
    assert small.client.post("collections/shelf/actions", body).status == 201
    assert turn(small, 100) == 0
    small.client.call("DELETE", f"documents/{documents[0]['id']}")
    assert turn(small) == 0
    assert turn(small, 61) == 1
    (job,) = runs(small, "raptor")
    assert (job["state"], job["params"]["scope"]) == ("success", "document")


def test_one_run_at_a_time(small):
    """While somebody's own job is under way, it waits; then it sees that there is nothing left to do."""
    small.shelf(paragraphs("alpha", 2))
    first = ask(small.client, "mindmap")
    keep(small)
    services = bootstrap.AppServices(small.runtime)
    assert services.keeps.run_due() == 0
    assert [job["job_id"] for job in runs(small)] == [first.json["job_id"]]
    small.work()
    assert turn(small, 700) == 0
    assert (len(runs(small)), shown(small)["due_at"]) == (1, None)


def test_a_crash_after_the_request(small, monkeypatch):
    """The process dies before it writes down that it asked: nothing is lost, and nothing runs twice."""
    small.shelf(paragraphs("alpha", 2))
    keep(small)
    monkeypatch.setattr(stored, "settle", lambda *_values: 1 / 0)
    with pytest.raises(Exception, match="division"):
        turn(small)
    monkeypatch.undo()
    small.work()
    assert turn(small, 700) == 0
    action = shown(small)
    assert (len(runs(small)), action["fired"], action["due_at"]) == (1, 1, None)


def test_a_failed_run_is_shown_and_not_repeated_until_something_changes(small, author):
    """The action says that it failed; people retry the job, or the next change does."""
    author.say = lambda _messages: ""
    small.shelf(paragraphs("alpha", 12))
    keep(small, "raptor")
    assert turn(small) == 1
    assert shown(small)["failed"] == 1
    assert turn(small, 700) == 0
    author.say = lambda _messages: "A title\nAnd another summary."
    small.shelf(paragraphs("beta", 2))
    turn(small)
    turn(small, 61)
    assert [job["state"] for job in runs(small, "raptor")][:1] == ["success"]


def test_what_cannot_be_requested_is_said(small):
    """No document is left: the action says why it did not run, until there is one again."""
    (document,) = small.shelf(paragraphs("alpha", 2))
    keep(small)
    turn(small)
    small.client.call("DELETE", f"documents/{document['id']}")
    turn(small)
    assert turn(small, 61) == 0
    assert shown(small)["error"]["code"] == "nothing_ready"
    small.shelf(paragraphs("beta", 2))
    turn(small)
    turn(small, 61)
    assert (shown(small)["error"], len(runs(small))) == (None, 2)


def test_a_clock_that_was_set_back(small):
    """A change that seems to be in the future is due now, not when the clock has caught up."""
    small.shelf(paragraphs("alpha", 2))
    keep(small)
    turn(small)
    small.shelf(paragraphs("beta", 2))
    turn(small)
    assert turn(small, -3600) == 1


def test_parameters_price_and_removal(small):
    """Those of the kind and its own; the price is that of the job; a removed action asks for nothing."""
    small.shelf(paragraphs("alpha", 12))
    for params in ({"scope": "world"}, {"quiet_seconds": 0}, {"documents": ["x"]}):
        body = {"sort": "keep:raptor", "params": params}
        assert small.client.post("collections/shelf/actions", body).status == 400, params
    assert small.client.post("collections/shelf/actions", {"sort": "keep:qa"}).status == 400
    body = {"collection": "shelf", "action": {"sort": "keep:raptor", "params": {}}}
    estimate = small.client.post("estimate", body).json
    assert estimate["calls"] == small.estimate("raptor").forecast.calls > 0
    action = keep(small, "raptor", max_cost=0.5)
    assert small.client.call("DELETE", f"collections/shelf/actions/{action['id']}").status == 200
    assert (turn(small, 700), runs(small, "raptor")) == (0, [])
