"""The same key with the same request gives the same answer again."""

import threading
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import update

from holdfast.store.access import idempotency
from holdfast.store.base.schema import idempotency as table

KEY = {"Idempotency-Key": "b1946ac9"}


def test_the_same_request_gets_the_same_answer_and_does_nothing(client, install):
    """Word for word, also of a form, whose boundary is new each time; and it says that it is a repetition."""
    client.collection()
    first = client.upload("collections/shelf/documents", b"Once.", headers=KEY)
    install.work()
    again = client.upload("collections/shelf/documents", b"Once.", headers=KEY)
    assert (first.status, first.raw) == (again.status, again.raw)
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"


def test_another_request_under_the_same_key_is_a_conflict(client):
    """Other bytes, other fields, another path: each is another request."""
    client.collection()
    client.upload("collections/shelf/documents", b"Once.", headers=KEY)
    for said in (
        client.upload("collections/shelf/documents", b"Twice.", headers=KEY),
        client.upload("collections/shelf/documents", b"Once.", headers=KEY, title="Other"),
        client.post("collections", {"id": "other"}, headers=KEY),
    ):
        assert (said.status, said.code) == (409, "idempotency_conflict")


def test_a_duplicate_is_no_answer_for_a_day(client, install):
    """When the work that was in the way has ended, the same request under the same key is carried out."""
    response = client.text("Some words.")
    first = client.post(f"documents/{response['id']}/index", {"mode": "force"}, headers=KEY)
    assert (first.status, first.code) == (409, "duplicate")
    install.work()
    again = client.post(f"documents/{response['id']}/index", {"mode": "force"}, headers=KEY)
    assert (again.status, again.json["disposition"]) == (202, "accepted")
    assert "idempotency-replayed" not in again.headers
    last = client.post(f"documents/{response['id']}/index", {"mode": "force"}, headers=KEY)
    assert (last.raw, last.headers["idempotency-replayed"]) == (again.raw, "true")


def test_a_budget_that_was_raised_lets_the_same_request_pass(client):
    """402 was true for a moment."""
    client.collection()
    client.put("budgets", {"scope": "tenant", "hard": 0})
    upload = lambda: client.upload("collections/shelf/documents", b"Once.", headers=KEY)
    assert (upload().status, upload().status) == (402, 402)
    client.put("budgets", {"scope": "tenant", "hard": 5})
    assert upload().status == 202
    assert upload().headers["idempotency-replayed"] == "true"


def test_what_was_missing_or_malformed_may_be_mended_under_the_same_key(client):
    """404 and 400 hold no key: neither has done anything."""
    path = "collections/shelf/documents"
    assert client.post(path, {"text": "Once."}, headers=KEY).status == 404
    client.collection()
    wrong = {"text": "Once.", "options": {"chunk_size": -1}}
    assert client.post(path, wrong, headers=KEY).status == 400
    assert client.post(path, {"text": "Once."}, headers=KEY).status == 202


def test_a_generation_that_is_over_stays_over(client, install):
    """412 is kept: it can never turn out otherwise."""
    document = client.indexed("Some words.")
    headers = KEY | {"If-Match": '"7"'}
    first = client.post(f"documents/{document['id']}/index", {"mode": "force"}, headers=headers)
    again = client.post(f"documents/{document['id']}/index", {"mode": "force"}, headers=headers)
    assert (first.status, first.raw) == (412, again.raw)
    assert again.headers["idempotency-replayed"] == "true"


def test_of_eight_at_once_one_is_carried_out(client):
    """The others get its answer, or are told to come back."""
    start = threading.Barrier(8)

    def make(_):
        start.wait()
        return client.post("collections", {"title": "One"}, headers=KEY)

    with ThreadPoolExecutor(8) as crowd:
        said = list(crowd.map(make, range(8)))
    assert {one.status for one in said} <= {201, 409}
    assert {one.code for one in said if one.status == 409} <= {"idempotency_busy"}
    assert len(client.get("collections").json["collections"]) == 1


def test_a_request_that_nobody_will_answer_is_taken_over(client, install):
    """Its process died; when its time is up the next one is carried out."""
    client.post("collections", {"title": "One"}, headers=KEY)
    lost = update(table).values(status=None, answer=None, token="dead")
    install.runtime.db.write("by_hand", lambda tx: tx.execute(lost))
    assert client.post("collections", {"title": "One"}, headers=KEY).code == "idempotency_busy"
    late = update(table).values(open_until=1.0)
    install.runtime.db.write("by_hand", lambda tx: tx.execute(late))
    assert client.post("collections", {"title": "One"}, headers=KEY).status == 201


def test_an_answer_is_forgotten_after_a_day(client, install):
    """Then the key is free for anything."""
    client.post("collections", {"id": "one"}, headers=KEY)
    long_ago = update(table).values(created_at=1.0)
    install.runtime.db.write("by_hand", lambda tx: tx.execute(long_ago))
    assert client.post("collections", {"id": "two"}, headers=KEY).status == 201
    install.runtime.db.write("by_hand", lambda tx: tx.execute(long_ago))
    idempotency.forget(install.runtime.db)
    assert install.runtime.db.read(lambda tx: tx.all(table.select())) == []


def test_a_key_has_a_form(client):
    """Short, and printable."""
    for key in ("", "x" * 256, "caf\xe9"):
        said = client.post("collections", {"id": "one"}, headers={"Idempotency-Key": key})
        assert said.code == "bad_idempotency_key"
