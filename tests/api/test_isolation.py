"""What belongs to another tenant is not there: over the route table, so that a new route is covered."""

import contextlib
import html
import json
from http.client import HTTPConnection

import pytest

from holdfast.api.access import COOKIE
from tests.api.accepted_requests import TAKEN
from tests.api.install import PREFIX
from tests.api.test_3_history import an_order
from tests.jobs.graph_rows import GraphRows, key

MARK = "quicksilver"
STREAMS = {"/api/v1/events/stream"}
FORMS = {"/api/v1/imports"}
SHELF = "/api/v1/collections/{collection_id}"
BUDGET = ("PUT", "/api/v1/budgets")
# Reasons for which a request that reaches what it names may still come to nothing.
MEANT = {"no_thumbnail", "no_url", "no_file", "nothing_to_cancel", "nothing_to_resolve", "delivery_busy"}
# Nothing of the owner's has failed, so that there is nothing to retry.
MEANT |= {"unknown_action"}
# The document of the owner is a text.
MEANT |= {"no_page"}


@pytest.fixture
def owner(install):
    """A tenant with something of everything."""
    created = install.key("owner", "read", "write", "admin")
    created.collection("shelf")
    hook = {"sort": "webhook", "params": {"url": f"http://127.0.0.1:9/{MARK}"}}
    assert created.post("collections/shelf/actions", hook).status == 201
    listed = {"type": "urls", "options": {"urls": [f"http://127.0.0.1:9/{MARK}"]}, "name": MARK}
    assert created.post("collections/shelf/sources", listed).status == 201
    created.indexed(f"Only the owner knows of {MARK}.", to="shelf", title=MARK)
    a_graph(install, created)
    created.text("Pushed.", to="shelf", title="Pushed", external_id="cms-7")
    assert created.post("flows", {"source": f"flow: {MARK}\nversion: 1\nsteps: [split: {{}}]"}).status == 201
    an_order(install, "owners-order", tenant="owner")
    assert created.post("collections/shelf/jobs", {"kind": "qa", "params": {"notes": MARK}}).status == 202
    install.work()
    return created


def a_graph(install, owner):
    """The collection of the owner has a knowledge graph of one entity and one report."""
    document = owner.get("collections/shelf/documents").json["documents"][0]["id"]
    rows = GraphRows(install.runtime.db, {document: 1}, "owner")
    entity = rows.entity(MARK, f"Of {MARK}.", document)
    rows.report(f"On {MARK}", MARK, document, children=(entity,))
    rows.publish()


def followed(owner):
    """The ids of all that the owner has."""
    action, sent = (
        owner.get("collections/shelf/actions").json["actions"][0],
        owner.get("deliveries").json["deliveries"][0],
    )
    listed = owner.get("collections/shelf/documents").json["documents"]
    document = next(each for each in listed if each["title"] == MARK)
    return {
        "collection_id": "shelf",
        "document_id": document["id"],
        "run_id": document["run_id"],
        "order_id": "owners-order",
        "action_id": str(action["id"]),
        "delivery_id": sent["id"],
        "source_id": owner.get("collections/shelf/sources").json["sources"][0]["id"],
        "job_id": owner.get("jobs").json["jobs"][0]["job_id"],
        "page": "1",
        "flow_id": f"{MARK}@1",
        "entity": key(MARK),
        "community": key(f"On {MARK}"),
        "chunk": owner.get(f"documents/{document['id']}/chunks").json["chunks"][0]["id"],
    }


def filled(template, names):
    for name, value in names.items():
        template = template.replace("{" + name + "}", value)
    assert "{" not in template, f"{template} has a parameter that this test does not know"
    return template


def ask(client, method, template, names):
    query = "?collection=shelf&q=quicksilver" if template.endswith("/search") else ""
    if (method, template) == ("DELETE", f"{SHELF}/documents"):
        query = "?external_id=cms-7"
    body = TAKEN.get(f"{method} {template.removeprefix(PREFIX)}", [{}])[0] if method != "GET" else None
    return client.call(method, filled(template, names) + query, body)


def test_every_route_hides_what_belongs_to_another_tenant(install, owner):
    """404 wherever one names it, nothing of it wherever one does not; and the same words as for nothing."""
    theirs = followed(owner)
    document = owner.get(f"documents/{theirs['document_id']}").json
    nothing = {name: f"no-such-{name}" for name in theirs}
    stranger = install.key("stranger", "admin")
    before = owner.get(f"documents/{document['id']}").json
    for method, template in install.routes():
        if template in STREAMS:
            continue
        said = ask(stranger, method, template, theirs)
        if (
            "{" in template
            or template.endswith(("/search", "/estimate", "/ask", "/completions", "/diff"))
            or (method, template) == BUDGET
        ):
            assert said.status == 404, (method, template)
            empty = ask(stranger, method, template, nothing)
            for name, value in theirs.items():
                empty = type(empty)(
                    empty.status, {}, empty.raw.replace(nothing[name].encode(), value.encode())
                )
            assert "{" not in template or said.json == empty.json, (method, template)
        for secret in (MARK, document["id"], document["run_id"], "owners-order", theirs["job_id"]):
            if "{" not in template:
                assert secret.encode() not in said.raw, (method, template)
    assert owner.get(f"documents/{document['id']}").json == before


def test_the_same_requests_reach_what_they_name_when_the_owner_makes_them(install, owner):
    """Otherwise the test above would prove nothing: each would be refused for its form."""
    theirs = followed(owner)
    taken = [(method, path) for method, path in install.routes() if path not in STREAMS | FORMS]
    # What ends things comes last, and the collection that holds the others last of all.
    for method, template in sorted(taken, key=lambda one: (one[0] == "DELETE", one[1] == SHELF)):
        said = ask(owner, method, template, theirs)
        output = (method, template, said.raw[:300])
        assert said.status < 400 or said.code in MEANT | {"duplicate", "same_content"}, output


def test_a_key_that_may_only_read_learns_no_more(install, owner):
    """403 would say that it is there."""
    names = followed(owner)
    stranger = install.key("stranger", "read")
    for method, template in install.routes():
        if "{" in template:
            assert ask(stranger, method, template, names).status == 404, (method, template)


def test_two_tenants_may_use_the_same_names(install, owner):
    """A name that another has taken is free, and leads to one's own."""
    stranger = install.key("stranger")
    stranger.indexed("Something else entirely.", to="shelf")
    hits = stranger.get("search?collection=shelf&q=quicksilver").json["hits"]
    assert MARK not in json.dumps(hits)
    assert len(stranger.get("collections/shelf/documents").json["documents"]) == 1


def test_the_same_words_are_paid_and_counted_apart(install, owner):
    """Neither bill, journal nor counts tell of another's work."""
    stranger = install.key("stranger")
    assert stranger.get("events").json["events"] == []
    assert stranger.get("orders").json["orders"] == []
    bill = stranger.get("bill").json
    assert (bill["lines"], bill["reused_calls"]) == ([], 0)
    owner.text("Waiting.")
    assert all(lane["queued"] == 0 for lane in stranger.get("status").json["lanes"])


def test_an_estimate_does_not_tell_what_another_has_paid_for(install, owner):
    """The same words cost a stranger as much as anybody, and are known to the owner."""
    text = {"text": f"Only the owner knows of {MARK}."}
    known, new = owner.post("estimate", text).json, install.key("stranger").post("estimate", text).json
    assert (known["calls"], known["reused_calls"]) == (0, 1)
    assert (new["calls"], new["reused_calls"]) == (1, 0)


def test_an_idempotency_key_of_another_tenant_is_free(install, owner):
    """Its answer is not given away."""
    stranger = install.key("stranger")
    same = {"Idempotency-Key": "the-same"}
    owner.post("collections", {"id": "one", "title": MARK}, headers=same)
    said = stranger.post("collections", {"id": "one", "title": "Mine"}, headers=same)
    assert (said.status, said.json["title"]) == (201, "Mine")


def test_operations_tell_no_names_of_others(install):
    """An admin's page shows that another tenant's work is held, not on which collection or document."""
    theirs = install.key("theirs")
    document = theirs.indexed("Their words.", to="secret-plans")
    assert theirs.post("collections/secret-plans/jobs", {"kind": "qa"}).status == 202
    install.begun()
    theirs.text("Other words.", to="secret-plans")
    install.begun()
    session = install.access.sign_in(install.key("mine", "admin").key)
    connection = HTTPConnection("127.0.0.1", install.port, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", "/operations", headers={"Cookie": f"{COOKIE}={session}"})
        text = connection.getresponse().read().decode()
    assert "another tenant's job" in html.unescape(text)
    assert "another tenant's document" in html.unescape(text)
    assert "secret-plans" not in text
    assert document["id"] not in text
