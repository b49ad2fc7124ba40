"""What became of documents and what it cost, as a program asks for it."""

import hashlib
import io
import re
import socket

from PIL import Image
from sqlalchemy import insert

from holdfast.chaos.waiting import until
from holdfast.documents.parse.records import Format
from holdfast.store.base import schema
from holdfast.store.base.schema import orders
from holdfast.store.library import documents, thumbnails


def test_runs_and_their_logs_are_told(client):
    """The newest run first; its log has progress and cost."""
    document = client.indexed("Some words.")
    client.post(f"documents/{document['id']}/index", {"mode": "force"})
    runs = client.get(f"documents/{document['id']}/runs").json["runs"]
    assert [(one["generation"], one["status"]) for one in runs] == [(2, "queued"), (1, "success")]
    assert (runs[1]["disposition"], runs[1]["reason"], runs[1]["actor"]) == (
        "accepted",
        "never_done",
        "api:loopback",
    )
    log = client.get(f"runs/{runs[1]['id']}/log").json
    assert (log["status"], log["progress"]["share"]) == ("success", 1.0)
    assert client.get("runs/unknown/log").code == "unknown_run"


def test_the_journal_is_read_on_from_where_the_last_page_ended(client):
    """Of a document, of a collection, or of everything; `next` is good for later, too."""
    document = client.indexed("Some words.")
    client.text("Elsewhere.", to="other")
    output = lambda: {(one["verb"], one["collection"]) for one in client.get("events").json["events"]}
    until(lambda: ("request", "other") in output(), 10, "the newest entry is held back for ever")
    everything = client.get("events").json
    first = client.get("events?limit=2").json
    rest = client.get(f"events?cursor={first['next']}").json
    assert first["events"] + rest["events"] == everything["events"]
    assert client.get(f"events?cursor={everything['next']}").json["events"] == []
    assert {one["collection"] for one in client.get("events?collection=other").json["events"]} == {"other"}
    verbs = [one["verb"] for one in client.get(f"documents/{document['id']}/events").json["events"]]
    assert verbs[0] == "request"
    assert "publish" in verbs


def test_chunks_are_read_page_by_page_of_one_generation(client, install):
    """A cursor of a generation that was replaced since is refused, not mixed up."""
    client.post("collections", {"id": "shelf", "options": {"chunk_size": 16}})
    document = client.indexed("\n\n".join(f"Paragraph {n} has its own few words to say." for n in range(6)))
    path = f"documents/{document['id']}/chunks"
    first = client.get(f"{path}?limit=2").json
    rest = client.get(f"{path}?cursor={first['next']}").json
    assert len(first["chunks"]) == 2
    assert len(first["chunks"]) + len(rest["chunks"]) == document["chunks"]
    client.put(f"documents/{document['id']}/content", {"text": "All new."})
    install.work()
    assert client.get(f"{path}?cursor={first['next']}").code == "stale_cursor"
    assert client.get(f"{path}?cursor=1").code == "bad_cursor"


def picture_of(client, made):
    said = client.get(f"documents/{made['id']}/thumbnail")
    assert (said.status, said.headers["content-type"]) == (200, "image/png"), said.raw
    return said.raw


def test_a_thumbnail_is_drawn_when_somebody_first_looks(client, install):
    """It is kept from then on; what is not published yet has none."""
    queued = client.text("Some words of a page.")
    assert client.get(f"documents/{queued['id']}/thumbnail").code == "no_thumbnail"
    install.work()
    picture = picture_of(client, queued)
    assert Image.open(io.BytesIO(picture)).size == (320, 452)
    document = documents.document(install.runtime.db, "default", queued["id"])
    assert document.thumbnail == hashlib.sha256(picture).hexdigest()
    assert picture_of(client, queued) == picture


def test_a_thumbnail_is_of_the_published_generation(client, install):
    """While a new content waits it shows the old one, and afterwards the new; its address says how long."""
    document = client.indexed("Some words of a page.")
    client.put(f"documents/{document['id']}/content", {"text": "# All new\n\nAnd more of it than before."})
    before = picture_of(client, document)
    install.work()
    after = picture_of(client, document)
    assert before != after
    items = [
        client.get(f"documents/{document['id']}/thumbnail?generation={number}").headers["cache-control"]
        for number in (1, 2)
    ]
    assert items == ["no-store", "private, max-age=604800"]


def test_a_picture_of_a_text_that_was_replaced_meanwhile_is_not_kept(client, install):
    """A publication between drawing and keeping: the next one who looks sees the new text."""
    document = client.indexed("Some words of a page.")
    old = documents.document(install.runtime.db, "default", document["id"])
    client.put(f"documents/{document['id']}/content", {"text": "All new."})
    install.work()
    assert not thumbnails.keep(install.runtime.db, old, "0" * 64)
    assert documents.document(install.runtime.db, "default", document["id"]).thumbnail is None


def test_what_cannot_be_drawn_is_shown_as_a_plain_sheet(client, install):
    """Its drawing is not tried again for everybody who looks."""
    document = client.indexed("Some words of a page.")
    change = schema.documents.update().values(format="docx")
    install.runtime.db.write("by_hand", lambda tx: tx.execute(change))
    picture = picture_of(client, document)
    assert picture == install.runtime.parser.placeholder(Format.DOCX)
    assert documents.document(install.runtime.db, "default", document["id"]).thumbnail is not None


def test_why_tells_the_whole_story(client, install):
    """Each generation with its tasks, and the journal."""
    document = client.indexed("Some words.")
    body = client.get(f"documents/{document['id']}/why").json
    assert [one["run"]["generation"] for one in body["generations"]] == [1]
    assert body["generations"][0]["tasks"][0]["state"] == "done"
    assert next(one["verb"] for one in body["journal"]) == "request"


def an_order(install, order_id, tenant="default", state="parked"):
    """An order that waits for a person."""
    values = {
        "id": order_id,
        "tenant": tenant,
        "provider": "meter",
        "endpoint": "embeddings",
        "model": "small",
        "state": state,
        "call_keys": ["k"],
        "weights": [1],
        "body": b"",
        "idempotency_key": f"key-{order_id}",
        "keyed": False,
        "holder": "",
        "scopes": ["tenant"],
        "estimate": 2_000_000_000,
        "created_at": 1.0,
        "deadline": 1.0,
        "deadline_at": 1.0,
    }
    install.runtime.db.write("by_hand", lambda tx: tx.execute(insert(orders), values))


def test_an_order_in_doubt_is_listed_and_resolved(client, install):
    """Once: then there is nothing to resolve any more."""
    an_order(install, "o1")
    (result,) = client.get("orders?state=parked").json["orders"]
    assert (result["id"], result["estimate"], result["calls"]) == ("o1", 2.0, 1)
    assert client.get("orders?state=in_doubt").json["orders"] == []
    said = client.post("orders/o1/resolve", {"charged": False})
    assert (said.status, said.json["state"]) == (200, "void")
    assert client.post("orders/o1/resolve", {"charged": False}).code == "nothing_to_resolve"
    assert client.post("orders/o2/resolve", {"charged": True}).code == "unknown_order"


def test_the_bill_adds_up_by_whatever_is_asked(client):
    """By model, collection, document, run and day."""
    client.indexed("Some words.")
    totals = set()
    for by in ("model", "collection", "document", "run", "day"):
        said = client.get(f"bill?by={by}").json
        assert said["by"] == by
        totals.add(said["total"])
        assert sum(line["paid"] for line in said["lines"]) == said["total"]
    assert len(totals) == 1


def test_health_readiness_status_and_metrics(client):
    """The API is ready with its database alone; what is missing to carry work out is said beside."""
    assert client.get("/healthz").json == {"alive": True}
    ready = client.get("/readyz").json
    assert (ready["ready"], ready["workers"]) == (True, False)
    client.text("Some words.")
    standing = client.get("status").json
    assert {one["lane"]: one["queued"] for one in standing["lanes"]} == {
        "interactive": 1,
        "bulk": 0,
        "follow-up": 0,
    }
    assert standing["installation"]["lanes"][0]["queued"] == 1
    with socket.create_connection(("127.0.0.1", client.install.port)):  # it says nothing, and is counted
        until(lambda: _connections(client) == 2, 20, "both are counted, this one and the one that asks")
    response = client.get("/metrics").raw.decode()
    assert 'holdfast_lane_tasks{lane="interactive",state="queued"} 1.0' in response
    assert 'holdfast_api_requests_total{method="GET",route="/healthz",status="200"} 1.0' in response


def _connections(client):
    response = client.get("/metrics").raw.decode()
    return float(re.search(r"^holdfast_api_connections (.+)$", response, re.MULTILINE)[1])
