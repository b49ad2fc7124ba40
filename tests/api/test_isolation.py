"""What belongs to another tenant is not there: over the route table, so that a new route is covered."""

import json

import pytest

from tests.api.test_3_history import an_order

MARK = "quicksilver"
# Bodies that would be taken if the thing were one's own; a route that is not here is sent `{}`.
BODIES = {
    "/orders/{order_id}/resolve": {"charged": True},
    "/collections/{collection_id}/documents": {"text": "Mine now."},
    "/documents/{document_id}/content": {"text": "Mine now."},
    "/collections": {"id": "mine"},
}
STREAMS = {"/api/v1/events/stream"}


@pytest.fixture
def owner(house):
    """A tenant with something of everything."""
    made = house.key("owner")
    made.indexed(f"Only the owner knows of {MARK}.", to="shelf", title=MARK)
    an_order(house, "owners-order", tenant="owner")
    return made


def filled(template, names):
    for name, value in names.items():
        template = template.replace("{" + name + "}", value)
    assert "{" not in template, f"{template} has a parameter that this test does not know"
    return template


def ask(client, method, template, names):
    query = "?collection=shelf&q=quicksilver" if template.endswith("/search") else ""
    body = BODIES.get(template.removeprefix("/api/v1"), {}) if method != "GET" else None
    return client.call(method, filled(template, names) + query, body)


def test_every_route_hides_what_belongs_to_another_tenant(house, owner):
    """404 wherever one names it, nothing of it wherever one does not; and the same words as for nothing."""
    document = owner.get("collections/shelf/documents").json["documents"][0]
    theirs = {
        "collection_id": "shelf",
        "document_id": document["id"],
        "run_id": document["run_id"],
        "order_id": "owners-order",
    }
    nothing = {name: f"no-such-{name}" for name in theirs}
    stranger = house.key("stranger", "admin")
    before = owner.get(f"documents/{document['id']}").json
    for method, template in house.routes():
        if template in STREAMS:
            continue
        said = ask(stranger, method, template, theirs)
        if "{" in template or template.endswith("/search"):
            assert said.status == 404, (method, template)
            empty = ask(stranger, method, template, nothing)
            for name, value in theirs.items():
                empty = type(empty)(
                    empty.status, {}, empty.raw.replace(nothing[name].encode(), value.encode())
                )
            assert template.endswith("/search") or said.json == empty.json, (method, template)
        for secret in (MARK, document["id"], document["run_id"], "owners-order"):
            if "{" not in template:
                assert secret.encode() not in said.raw, (method, template)
    assert owner.get(f"documents/{document['id']}").json == before


def test_a_key_that_may_only_read_learns_no_more(house, owner):
    """403 would say that it is there."""
    document = owner.get("collections/shelf/documents").json["documents"][0]
    names = {
        "collection_id": "shelf",
        "document_id": document["id"],
        "run_id": "x",
        "order_id": "owners-order",
    }
    stranger = house.key("stranger", "read")
    for method, template in house.routes():
        if "{" in template:
            assert ask(stranger, method, template, names).status == 404, (method, template)


def test_two_tenants_may_use_the_same_names(house, owner):
    """A name that another has taken is free, and leads to one's own."""
    stranger = house.key("stranger")
    stranger.indexed("Something else entirely.", to="shelf")
    hits = stranger.get("search?collection=shelf&q=quicksilver").json["hits"]
    assert MARK not in json.dumps(hits)
    assert len(stranger.get("collections/shelf/documents").json["documents"]) == 1


def test_the_same_words_are_paid_and_counted_apart(house, owner):
    """Neither bill, journal nor counts tell of another's work."""
    stranger = house.key("stranger")
    assert stranger.get("events").json["events"] == []
    assert stranger.get("orders").json["orders"] == []
    bill = stranger.get("bill").json
    assert (bill["lines"], bill["reused_calls"]) == ([], 0)
    owner.text("Waiting.")
    assert all(lane["queued"] == 0 for lane in stranger.get("status").json["lanes"])


def test_an_idempotency_key_of_another_tenant_is_free(house, owner):
    """Its answer is not given away."""
    stranger = house.key("stranger")
    same = {"Idempotency-Key": "the-same"}
    owner.post("collections", {"id": "one", "title": MARK}, headers=same)
    said = stranger.post("collections", {"id": "one", "title": "Mine"}, headers=same)
    assert (said.status, said.json["title"]) == (201, "Mine")
