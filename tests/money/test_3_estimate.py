"""Estimates: what something would cost before it is asked for, with nothing paid and nothing written."""

import pytest
from sqlalchemy import func, select

from holdfast.cli import money
from holdfast.service import estimates
from holdfast.store.base.schema import metadata

TEXT = "\n\n".join(f"Paragraph {n} says something of its own about harbour {n * 7}." for n in range(40))


def picture(install):
    """How many rows every table has."""
    tables = metadata.sorted_tables
    return install.runtime.db.read(
        lambda tx: {each.name: tx.execute(select(func.count()).select_from(each)).scalar() for each in tables}
    )


@pytest.mark.parametrize("options", [{}, {"chunk_size": 32}])
def test_the_estimate_of_a_text_is_what_it_costs_afterwards(install, client, meter, options):
    """The same calls to the same model, at a price that is never below the charge."""
    client.collection("shelf")
    before = picture(install)
    body = client.post("estimate", {"text": TEXT, "collection": "shelf", "options": options}).json
    assert (picture(install), meter.totals().charges) == (before, 0)
    assert (body["documents"], body["exact"], body["reused_calls"]) == (1, True, 0)
    document = client.indexed(TEXT, **({"options": options} if options else {}))
    bill = client.get("bill").json
    assert body["calls"] == bill["calls"] == document["chunks"] >= (1 if not options else 10)
    assert 0 < bill["paid"] <= body["cost"]
    again = client.post("estimate", {"text": TEXT, "collection": "shelf", "options": options}).json
    assert (again["calls"], again["cost"], again["reused_calls"]) == (0, 0, body["calls"])


def test_a_change_of_options_is_priced_before_it_is_made(install, client):
    """Of other chunks all are to be paid, of the same chunks none; the collection is as it was."""
    client.indexed(TEXT)
    same = client.post("estimate", {"collection": "shelf"}).json
    assert (same["documents"], same["calls"], same["cost"]) == (0, 0, 0)
    other = client.post("estimate", {"collection": "shelf", "options": {"chunk_size": 32}}).json
    assert (other["documents"], other["unknown"], other["exact"]) == (1, 0, True)
    assert client.get("collections/shelf").json["options"] == {}
    before = client.get("bill").json
    client.call("PATCH", "collections/shelf", {"options": {"chunk_size": 32}})
    install.work()
    after = client.get("bill").json
    assert other["calls"] == after["calls"] - before["calls"]
    assert after["paid"] - before["paid"] <= other["cost"]


def test_another_model_pays_for_every_chunk_as_it_is(install, client):
    """The chunks of the published generation are the inputs, so no text need be read again."""
    document = client.indexed(TEXT, options={"chunk_size": 32})
    response = client.post(
        "estimate", {"collection": "shelf", "options": {"model": "text-embedding-3-large"}}
    )
    assert response.json["model"] == "text-embedding-3-large"
    assert (response.json["calls"], response.json["exact"]) == (document["chunks"], True)
    assert response.json["cost"] > client.get("bill").json["paid"]


def test_what_is_not_published_yet_and_no_text_is_counted_as_unknown(install, client):
    """Nothing is parsed inside a request."""
    client.collection("shelf")
    client.upload("collections/shelf/documents", b"a,b,c\n1,2,3\n4,5,6\n7,8,9\n", "rows.csv")
    body = client.post("estimate", {"collection": "shelf"}).json
    assert (body["documents"], body["unknown"], body["calls"], body["exact"]) == (1, 1, 0, False)
    install.work()
    body = client.post("estimate", {"collection": "shelf", "options": {"chunk_size": 16}}).json
    assert (body["documents"], body["unknown"]) == (1, 0)


def test_a_large_collection_is_estimated_from_a_sample(install, client, monkeypatch):
    """And says so; the sample stands for the whole."""
    for number in range(6):
        client.text(f"Document {number}. " + TEXT)
    install.work()
    whole = client.post("estimate", {"collection": "shelf", "options": {"chunk_size": 32}}).json
    assert whole["estimated_from"] == "6 documents"
    monkeypatch.setattr(estimates, "MOST_DOCUMENTS", 3)
    body = client.post("estimate", {"collection": "shelf", "options": {"chunk_size": 32}}).json
    assert (body["estimated_from"], body["exact"]) == ("a sample of 3 of 6 documents", False)
    assert body["documents"] == whole["documents"] == 6
    assert body["cost"] > 0


def test_an_estimate_knows_nothing_of_other_tenants(install):
    """Neither their collections nor what they have paid for: else it would tell what they hold."""
    owner, stranger = install.key("owner"), install.key("stranger")
    owner.indexed(TEXT)
    assert stranger.post("estimate", {"collection": "shelf"}).status == 404
    assert stranger.post("estimate", {"text": TEXT, "collection": "shelf"}).status == 404
    body = stranger.post("estimate", {"text": TEXT}).json
    assert (body["reused_calls"], body["calls"] > 0) == (0, True)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "bad_request"),
        ({"text": "x" * (estimates.MOST_TEXT + 1)}, 413, "too_large"),
        ({"text": "x", "options": {"chunk_size": 1}}, 400, "bad_chunk_options"),
        ({"text": "x", "options": {"colour": 1}}, 400, "bad_option"),
        ({"collection": "nowhere"}, 404, "unknown_collection"),
        ({"collection": "../etc"}, 404, "not_found"),
        ({"collection": "shelf", "kind": "dance"}, 400, "unknown_kind"),
        ({"text": 5}, 400, "bad_request"),
    ],
)
def test_a_senseless_estimate_is_refused(small, body, status, code):
    """With a code that says why."""
    small.client.collection("shelf")
    said = small.client.post("estimate", body)
    assert (said.status, said.code) == (status, code)


def job(kind, **params):
    return {"collection": "shelf", "kind": kind, "params": params}


def test_a_job_is_estimated_by_the_calls_it_would_make(install, client):
    """Of published documents alone; what was asked before is not paid again, and a limit bounds it."""
    document = client.indexed(TEXT, options={"chunk_size": 32})
    client.text("Not published yet.")
    body = client.post("estimate", job("qa", limit=1000, per_chunk=2)).json
    assert (body["documents"], body["calls"], body["exact"]) == (1, document["chunks"], True)
    few = client.post("estimate", job("qa", limit=6, per_chunk=2)).json
    assert (few["calls"], few["exact"]) == (3, False)
    nobody = client.post("estimate", job("qa", documents=["other"])).json
    assert (nobody["documents"], nobody["calls"]) == (0, 0)
    client.post("collections/shelf/jobs", {"kind": "qa", "params": {"limit": 1000, "per_chunk": 2}})
    install.work()
    again = client.post("estimate", job("qa", limit=1000, per_chunk=2)).json
    assert (again["calls"], again["reused_calls"]) == (
        0,
        document["chunks"] + 1,
    )  # the other is published by now
    schema = {"type": "object", "properties": {"harbour": {"type": "string"}}}
    fields = client.post("estimate", job("extract", schema=schema)).json
    assert (fields["documents"], fields["calls"]) == (2, 2)


@pytest.mark.parametrize("params", [{"limit": 0}, {"colour": 1}, {"limit": "many"}])
def test_a_job_that_could_not_be_asked_for_is_not_estimated(client, params):
    """With the code that the job itself would be refused with."""
    client.collection("shelf")
    said = client.post("estimate", job("qa", **params))
    refused = client.post("collections/shelf/jobs", {"kind": "qa", "params": params})
    assert (said.status, said.code) == (refused.status, refused.code)
    assert said.status == 400


def test_the_command_line_estimates_files_by_reading_them(install, client, tmp_path, monkeypatch, capsys):
    """Any format, for no request waits for it; what cannot be read is told."""
    monkeypatch.setattr("holdfast.cli.context.loaded", lambda: install.settings)
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "a.txt").write_text(TEXT)
    (folder / "same.md").write_text(TEXT)
    (folder / "rows.csv").write_text("a,b,c\n1,2,3\n4,5,6\n7,8,9\n")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nonsense")
    money.estimate([folder], collection=None, tenant="default", options=["chunk_size=32"], as_json=False)
    output = capsys.readouterr()
    assert "for 3 documents" in output.out
    assert "broken.pdf" in output.err
    client.indexed(TEXT)
    money.estimate([], collection="shelf", tenant="default", options=["chunk_size=32"], as_json=True)
    assert '"documents": 1' in capsys.readouterr().out
