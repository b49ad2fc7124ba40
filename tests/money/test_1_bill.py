"""The bill: what was paid, and what was saved by reuse and by refusing duplicates, by whatever one asks."""

import json
import time

import pytest
from sqlalchemy import update

from holdfast.chaos.waiting import until
from holdfast.cli import money
from holdfast.store.base.schema import charges, journal, tasks

BYS = ("model", "collection", "document", "run", "tenant", "reason", "day")
ONE_TEXT = "A first sentence that is paid for."


@pytest.fixture
def story(install, client):
    """One document paid, and asked for twice more while it was queued; its text again elsewhere, for free."""
    response = client.text(ONE_TEXT)
    for _ in range(2):
        assert client.post(f"documents/{response['id']}/index", {}).status == 409
    install.work()
    client.indexed(ONE_TEXT, to="other")
    return client.get(f"documents/{response['id']}").json


def test_the_bill_says_what_was_paid_and_what_was_saved(client, story):
    """A refused duplicate would have cost what the run in its way cost; a known text, what it cost once."""
    bill = client.get("bill").json
    paid = story["cost"]["paid"]
    assert paid > 0
    assert (bill["orders"], bill["calls"], bill["tokens"]) == (1, 1, story["cost"]["tokens"])
    assert (bill["total"], bill["paid"], bill["charged_twice"], bill["in_doubt"]) == (paid, paid, 0, 0)
    assert (bill["reused_calls"], bill["saved"]) == (1, paid)
    assert (bill["refused_duplicates"], bill["saved_by_refusals"]) == (2, pytest.approx(2 * paid))


@pytest.mark.parametrize("by", BYS)
def test_the_lines_add_up_to_the_sums_whatever_they_are_about(client, story, by):
    """Each line is about one thing; nothing is lost or counted twice between them."""
    bill = client.get(f"bill?by={by}").json
    names = set(bill["lines"][0]) - {"about"}
    for name in names:
        assert sum(line[name] for line in bill["lines"]) == pytest.approx(bill[name]), name
    about = [line["about"] for line in bill["lines"]]
    expected = {
        "model": ["text-embedding-3-small"],
        "collection": ["other", "shelf"],
        "tenant": ["default"],
        "reason": ["index:never_done"],
        "day": [time.strftime("%Y-%m-%d", time.gmtime())],
    }
    assert about == expected.get(by, about)
    if by == "document":
        (line,) = [line for line in bill["lines"] if line["about"] == story["id"]]
        assert (line["paid"], line["refused_duplicates"]) == (story["cost"]["paid"], 2)
    if by == "run":
        assert story["run_id"] in about


def test_events_and_the_bill_say_the_same_of_refused_duplicates(client, story):
    """Who adds up `would_cost` over the journal comes to the bill's sum; each names who asked and when."""

    def refused():
        response = client.get("events?limit=500").json["events"]
        return [one for one in response if one["would_cost"] is not None]

    # PostgreSQL holds numbers back for a while, until no lower one can appear.
    events = until(lambda: len(refused()) == 2 and refused(), 30, "the refusals never show")
    assert [(one["reason"], one["actor"]) for one in events] == [
        ("duplicate:in_progress", "api:loopback")
    ] * 2
    assert all(one["at"] and one["run_id"] == story["run_id"] for one in events)
    assert sum(one["would_cost"] for one in events) == pytest.approx(
        client.get("bill").json["saved_by_refusals"]
    )
    of_shelf = client.get("events?limit=500&collection=shelf").json["events"]
    assert sum(one["would_cost"] or 0 for one in of_shelf) == pytest.approx(2 * story["cost"]["paid"])


def test_a_refusal_notes_what_is_known_at_that_moment(install, client, story):
    """Of work done before: the price of the published generation, before the new one paid anything."""
    response = client.post(f"documents/{story['id']}/index", {"mode": "force"})
    assert response.status == 202
    assert client.post(f"documents/{story['id']}/index", {}).status == 409
    row = install.runtime.db.read(lambda tx: tx.all(journal.select().order_by(journal.c.id)))[-1]
    assert row.data["would_cost"] == round(story["cost"]["paid"] * 1e9)


def test_a_span_of_time_bounds_the_bill(install, client, story):
    """From then on, and before then; each source by its own time."""
    old = time.time() - 10 * 86_400

    def age(tx):
        tx.execute(update(charges).values(at=old))
        tx.execute(update(journal).values(at=old))

    install.runtime.db.write("by_hand", age)
    day = time.strftime("%Y-%m-%d", time.gmtime(old + 86_400))
    recent = client.get(f"bill?from={day}").json
    assert (recent["paid"], recent["refused_duplicates"], recent["reused_calls"]) == (0, 0, 1)
    before = client.get(f"bill?to={day}").json
    assert (before["orders"], before["refused_duplicates"], before["reused_calls"]) == (1, 2, 0)
    install.runtime.db.write("by_hand", lambda tx: tx.execute(update(tasks).values(signed_at=old)))
    assert client.get(f"bill?from={day}T00:00:00Z").json["lines"] == []
    assert client.get(f"bill?from={day}&to={day}").code == "bad_span"
    for wrong in ("from=yesterday", "by=colour", "by=day&cursor=x", "cursor=%00"):
        assert client.get(f"bill?{wrong}").status == 400, wrong


def test_a_long_bill_comes_in_pages(install, client, monkeypatch):
    """The sums are of all pages; each line comes once."""
    for number in range(5):
        client.text(f"Text number {number} of five.")
    install.work()
    monkeypatch.setattr("holdfast.store.money.billing.bill.__kwdefaults__", {"after": None, "limit": 2})
    seen, cursor = [], ""
    while cursor is not None:
        page = client.get(f"bill?by=document{cursor and '&cursor='}{cursor}").json
        assert page["orders"] == 5
        seen += [line["about"] for line in page["lines"]]
        cursor = page["next"]
    assert len(seen) == len(set(seen)) == 5


def test_what_is_in_doubt_and_charged_twice_is_in_the_bill(install, client, meter):
    """A cut after the charge: the resend is charged again, and both are told."""
    meter.plan(script=["charge_then_cut"])
    document = client.indexed("Words whose answer was cut off.")
    bill = client.get("bill?by=document").json
    (line,) = bill["lines"]
    assert (line["about"], line["paid"] > 0, line["in_doubt"] > 0) == (document["id"], True, True)
    assert bill["total"] == pytest.approx(bill["paid"] + bill["charged_twice"] + bill["in_doubt"])


def test_the_command_line_and_the_api_show_one_bill(install, client, story, monkeypatch, capsys):
    """`holdfast bill --by` reads what `GET /bill?by=` reads, over all tenants or one."""
    monkeypatch.setattr("holdfast.cli.context.loaded", lambda: install.settings)
    money.bill("default", "collection", None, None, as_json=True)
    body = json.loads(capsys.readouterr().out)
    shown = client.get("bill?by=collection").json
    assert [(line["about"], line["paid"] / 1e9) for line in body["lines"]] == [
        (line["about"], pytest.approx(line["paid"])) for line in shown["lines"]
    ]
    assert body["total"] / 1e9 == pytest.approx(shown["total"])
    money.bill(None, "day", None, None, as_json=False)
    assert "2 rejected duplicates" in capsys.readouterr().out
