"""One job of a kind on a subject: duplicates, replacing, cancelling, and requests that make no sense."""

import json
import threading

import pytest
from sqlalchemy import select

from holdfast.chaos.waiting import until
from holdfast.store.base.schema import deliveries
from holdfast.store.protocol import requests
from tests.api.install import Client
from tests.jobs.install import ask, done, job, kept_rows, paragraphs, results


@pytest.mark.g6
def test_a_second_request_is_told_what_is_under_way(install):
    """409 with a sentence for a person and the active run; also if it asks for something else."""
    install.shelf(paragraphs("alpha", 2))
    first = ask(install.client).json["job_id"]
    for params in ({}, {"limit": 7}, {"notes": "Others."}):
        said = ask(install.client, **params)
        assert (said.status, said.code) == (409, "duplicate")
        assert said.message == "Question and answer pairs of shelf: already in progress (queued)"
        active = said.json["error"]["active"]
        assert (active["run_id"], active["status"], active["generation"]) == (first, "queued", 1)
    assert install.paid == 0

    def noted():
        response = install.client.get("events?limit=500").json["events"]
        return sum(event["reason"] == "duplicate:in_progress" for event in response) == 3

    until(noted, 30, "the journal does not tell of the refusals")


@pytest.mark.g6
def test_the_sentence_says_how_far_it_is(install):
    """The stage and the share of a job that is running."""
    install.shelf(paragraphs("alpha", 2))
    ask(install.client)
    install.begun()
    said = ask(install.client, limit=3)
    assert said.message == "Question and answer pairs of shelf: already in progress (reading, 0 %)"
    assert said.json["error"]["active"]["status"] == "running"


@pytest.mark.g1
def test_of_many_at_once_exactly_one_wins(install):
    """Eight clicks with different parameters are one job, paid once."""
    install.shelf(paragraphs("alpha", 2))
    gate, said = threading.Barrier(8), []

    def click(number):
        client = Client(install)
        gate.wait()
        said.append(ask(client, limit=3 + number % 2))

    threads = [threading.Thread(target=click, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.status for one in said) == [202] + 7 * [409]
    install.work()
    assert len(install.client.get("jobs").json["jobs"]) == 1
    assert install.meter.totals().excess == 0


@pytest.mark.g1
def test_replace_ends_what_is_under_way(install):
    """The same job or another one: the old run is superseded or cancelled, and only the new one succeeds."""
    install.shelf(paragraphs("alpha", 2))
    first = ask(install.client).json["job_id"]
    other = ask(install.client, mode="replace", limit=5).json
    assert other["disposition"] == "superseding"
    same = ask(install.client, mode="replace", limit=5).json
    install.work()
    states = {one["job_id"]: one["state"] for one in install.client.get("jobs").json["jobs"]}
    assert states == {first: "superseded", other["job_id"]: "cancelled", same["job_id"]: "success"}


def test_a_cancelled_job_stops_and_leaves_what_was_there(install):
    """Its results are none; those of the job before stay; asked again, it is done."""
    install.shelf(paragraphs("alpha", 2))
    first = done(install, limit=2)
    second = ask(install.client, limit=4).json["job_id"]
    paid = install.paid
    said = install.client.post(f"jobs/{second}/cancel")
    assert (said.status, said.json["cancelled"], said.json["job"]["state"]) == (200, True, "cancelled")
    install.work()
    assert (install.paid, results(install.client, second)) == (paid, [])
    assert len(results(install.client, first["job_id"])) == 2
    again = install.client.post(f"jobs/{second}/cancel")
    assert (again.status, again.code) == (409, "nothing_to_cancel")
    assert done(install, limit=4)["state"] == "success"


@pytest.mark.g2
def test_a_job_cancelled_in_the_middle_writes_nothing_more(install):
    """The worker that holds a slice is fenced out at its end; what was paid is kept for the next."""
    install.shelf(paragraphs("alpha", 14), paragraphs("beta", 14))
    said = ask(install.client, limit=28, per_chunk=1)
    install.worker.engine.work_off(most=1)
    calls = []

    def say(messages):
        calls.append(messages)
        if len(calls) == 13:
            assert install.client.post(f"jobs/{said.json['job_id']}/cancel").status == 200
        return install.author.pairs(messages)

    install.author.say = say
    install.work()
    finished = job(install.client, said.json["job_id"])
    assert (finished["state"], finished["results"]) == ("cancelled", 0)
    assert install.paid < 28
    paid = install.paid
    install.author.say = install.author.pairs
    again = done(install, limit=28, per_chunk=1)
    assert (again["state"], install.paid, install.meter.totals().excess) == ("success", 28, 0)
    assert again["cost"]["reused_calls"] == paid
    install.tidy()
    assert kept_rows(install) == 28


@pytest.mark.g2
def test_a_job_cannot_slip_in_beside_a_deletion(install, monkeypatch):
    """Asked for while its document is being deleted, it is ended by the deletion, not forgotten by it."""
    (book,) = install.shelf(paragraphs("alpha", 1))
    inside, go_on, said = threading.Event(), threading.Event(), []
    latest = requests.latest

    def slowly(tx, head):
        if head.kind == "qa" and not inside.is_set():
            inside.set()
            assert go_on.wait(60)
        return latest(tx, head)

    monkeypatch.setattr(requests, "latest", slowly)
    asking = threading.Thread(target=lambda: said.append(ask(Client(install), to=f"documents/{book['id']}")))
    asking.start()
    assert inside.wait(60)
    deleting = threading.Thread(target=lambda: install.client.call("DELETE", f"documents/{book['id']}"))
    deleting.start()
    deleting.join(0.3)
    assert deleting.is_alive()
    go_on.set()
    asking.join(60)
    deleting.join(60)
    install.work()
    assert said[0].status in {202, 404}
    assert install.client.get("jobs").json["jobs"] == []
    assert install.paid == 0


def test_an_idempotency_key_gives_the_same_answer_again(install):
    """Not a duplicate, but the very answer; with another body it is a conflict."""
    install.shelf(paragraphs("alpha", 1))
    key = {"Idempotency-Key": "one"}
    first, second = ask(install.client, headers=key), ask(install.client, headers=key)
    assert (first.status, first.raw) == (second.status, second.raw) == (202, first.raw)
    assert ask(install.client, headers=key, limit=9).code == "idempotency_conflict"


def test_a_job_waits_for_documents_that_are_not_ready_yet(install):
    """With `wait_for_ready` it is accepted, says what it waits for, and reads them once they are there."""
    install.client.text(paragraphs("alpha", 1), to="shelf")
    assert ask(install.client).code == "nothing_ready"
    said = ask(install.client, wait_for_ready=True, lane="interactive", priority=0)
    assert said.status == 202
    install.worker.engine.work_off(most=1)
    waiting = job(install.client, said.json["job_id"])["waiting"]
    assert (waiting["reason"], waiting["sentence"]) == (
        "documents",
        "Waiting for documents that are not ready yet.",
    )
    install.work()

    def ended():
        install.worker.engine.sweep()
        install.work()
        return job(install.client, said.json["job_id"])["state"] == "success"

    until(ended, 60, "the job did not go on")


def told_of(install, **params):
    """A job that was carried out to its end, and what its callback says of it."""
    finished = done(install, callback={"url": "https://example.org/told"}, **params)
    (row,) = install.runtime.db.read(lambda tx: tx.all(select(deliveries.c.body)))
    return finished, json.loads(bytes(row.body))["job"]


def test_a_callback_tells_counts_cost_and_where_to_look(install):
    """So that a program need not ask again: what came out, what it cost, and a link for a person."""
    install.shelf(paragraphs("alpha", 3))
    created, output = told_of(install, per_chunk=1)
    assert (output["results"], output["failed_results"]) == (created["results"], 0) == (3, 0)
    assert output["counts"]["asked"] == 3
    assert output["cost"] == created["cost"]
    assert output["cost"]["paid_calls"] == install.paid == 3
    assert output["link"] == f"http://127.0.0.1:{install.port}/jobs/{created['job_id']}"


def test_a_callback_of_a_failed_job_tells_its_category(install):
    """And what had been paid before it failed."""
    install.shelf(paragraphs("alpha", 12))
    body = '{"error": {"message": "No.", "code": "refused"}}'
    refused = {"do": "fail", "status": 401, "charge": False, "times": 99, "body": body}
    install.meter.plan(script=[{"do": "answer", "times": 4}, refused])
    created, output = told_of(install, per_chunk=1)
    error = output["error"]
    assert (output["status"], error["code"], error["category"]) == ("failed", "provider_auth", "auth")
    assert output["cost"]["paid_calls"] == created["cost"]["paid_calls"] == install.paid > 0


def test_a_callback_is_no_part_of_what_is_done(install):
    """Whoever asks for the same with another address gets the same job."""
    install.shelf(paragraphs("alpha", 1))
    finished = done(install, callback={"url": "https://example.org/one", "secret": "s" * 20})
    said = ask(install.client, callback={"url": "https://example.org/two"})
    assert (said.status, said.json["job_id"]) == (200, finished["job_id"])
    assert "s" * 20 not in str(finished)


def test_a_collection_with_nothing_ready_is_refused(install):
    """409 until a document answers queries; nothing is queued."""
    install.client.text("Not indexed yet.")
    said = ask(install.client)
    assert (said.status, said.code) == (409, "nothing_ready")
    assert install.client.get("jobs").json["jobs"] == []
    install.work()
    assert ask(install.client).status == 202


NONSENSE = [
    ({}, "bad_request"),
    ({"kind": "index"}, "unknown_kind"),
    ({"kind": "webhook"}, "unknown_kind"),
    ({"kind": "qa", "params": {"limit": 0}}, "bad_params"),
    ({"kind": "qa", "params": {"limit": True}}, "bad_params"),
    ({"kind": "qa", "params": {"limit": 10**9}}, "bad_params"),
    ({"kind": "qa", "params": {"per_chunk": "3"}}, "bad_params"),
    ({"kind": "qa", "params": {"notes": 7}}, "bad_params"),
    ({"kind": "qa", "params": {"notes": "x" * 5000}}, "bad_params"),
    ({"kind": "qa", "params": {"notes": "\x00"}}, "bad_params"),
    ({"kind": "qa", "params": {"documents": []}}, "bad_params"),
    ({"kind": "qa", "params": {"documents": "all"}}, "bad_params"),
    ({"kind": "qa", "params": {"documents": ["\ud800"]}}, "bad_params"),
    ({"kind": "qa", "params": {"schema": {}}}, "bad_params"),
    ({"kind": "qa", "lane": "fast"}, "bad_request"),
    ({"kind": "qa", "priority": 10}, "bad_request"),
    ({"kind": "qa", "mode": "please"}, "bad_request"),
    ({"kind": "qa", "callback": {"url": ""}}, "bad_request"),
    ({"kind": "qa", "more": 1}, "bad_request"),
]


def test_requests_that_make_no_sense(small):
    """400 with its code; nothing is queued and nothing is spent."""
    small.shelf("A short text of a few words.")
    for body, code in NONSENSE:
        said = small.client.post("collections/shelf/jobs", body)
        assert (said.status, said.code) == (400, code), body
    assert small.client.get("jobs").json["jobs"] == []


def test_a_job_on_a_document_names_no_others(small):
    """Its subject says which."""
    (book,) = small.shelf("A short text of a few words.")
    said = ask(small.client, to=f"documents/{book['id']}", documents=[book["id"]])
    assert (said.status, said.code) == (400, "bad_params")


def test_cursors_and_ids_that_are_none_of_ours(small):
    """404 or 400, never more."""
    small.shelf("A short text of a few words.")
    finished = done(small)
    assert small.client.get("jobs/nothing").status == 404
    assert small.client.get("jobs?cursor=nothing").status == 404
    assert small.client.get(f"jobs/{finished['job_id']}/results?cursor=x").code == "bad_cursor"
    index_run = small.client.get("collections/shelf/documents").json["documents"][0]["run_id"]
    assert small.client.get(f"jobs/{index_run}").status == 404


def test_documents_of_another_tenant_cannot_be_named(install):
    """Not by a job, not by a cursor: the same words as for nothing."""
    owner, stranger = install.key("owner"), install.key("stranger")
    theirs = owner.indexed(paragraphs("alpha", 1))
    created = ask(owner).json["job_id"]
    stranger.indexed(paragraphs("beta", 1))
    said = ask(stranger, documents=[theirs["id"]])
    assert (said.status, said.code) == (404, "unknown_document")
    assert ask(stranger, to=f"documents/{theirs['id']}").status == 404
    assert stranger.get(f"jobs?cursor={created}").status == 404
    assert stranger.post(f"jobs/{created}/cancel").status == 404
    assert stranger.get("jobs").json["jobs"] == []
