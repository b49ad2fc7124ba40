"""What `/metrics` of the API counts, and that a scrape reads only what is new."""

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import func, select, update

from holdfast.chaos.waiting import until
from holdfast.core.records import Spent
from holdfast.store.base.schema import duties, journal, tasks
from holdfast.store.protocol import duty_schedule
from holdfast.store.protocol import tasks as fenced
from holdfast.store.views import event_counts, events
from tests.money.conftest import priced


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    """Nobody writes while these stories look, so that nothing need be held back."""
    monkeypatch.setattr(event_counts, "HOLD_BACK", -1.0)


def scrape(client):
    settled = lambda: not events.here(client.install.runtime.db)[1]
    until(settled, 30, "a transaction of another database of this server has ended", every=0.01)
    text = client.get("/metrics").raw.decode()
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_work_money_and_refusals_are_counted(install, client, meter):
    """As the bill has them; each once, however often it is scraped."""
    scrape(client)
    response = client.text("A text that is paid for.")
    client.post(f"documents/{response['id']}/index", {})
    install.work()
    client.indexed("A text that is paid for.", to="other")
    result, bill = scrape(client), client.get("bill").json
    again = scrape(client)
    assert [key for key in result if "_api_" not in key[0] and result[key] != again[key]] == []
    model = "text-embedding-3-small"
    assert result["holdfast_dispositions_total", "duplicate"] == 1
    assert result["holdfast_dispositions_total", "accepted"] == 2
    assert result["holdfast_decisions_total", "", "claim"] == 2
    assert result["holdfast_charges_total", "paid", model] == bill["orders"] == 1
    assert result["holdfast_tokens_total", "paid", model] == bill["tokens"]
    assert result["holdfast_charged_dollars_total", "paid", model] == pytest.approx(bill["paid"])
    assert result["holdfast_saved_dollars_total", "reuse"] == pytest.approx(bill["saved"])
    assert result["holdfast_reused_calls_total",] == 1
    assert result["holdfast_stage_seconds_count", "index", "run"] == 2
    assert result["holdfast_stage_seconds_count", "order", model] == 1
    assert result["holdfast_stage_seconds_sum", "index", "queue"] > 0
    assert result["holdfast_in_doubt",] == 0


def test_calls_without_a_price_are_counted(database_url, tmp_path, meter):
    """By the metrics, the bill, the run and its tasks alike."""
    install = priced(database_url, tmp_path, meter, embedding_model="nobody-knows")
    try:
        scrape(install.client)
        document = install.client.indexed("A text of unknown price.")
        assert scrape(install.client)["holdfast_unpriced_calls_total", "nobody-knows"] == 1
        assert (install.client.get("bill").json["unpriced_calls"], document["cost"]["unpriced_calls"]) == (
            1,
            1,
        )
        (row,) = install.runtime.db.look(select(func.sum(tasks.c.unpriced_calls).label("number")))
        assert row.number == 1
    finally:
        install.close()


def test_doubts_and_fenced_writes_are_counted(install, client, meter):
    """A doubt while it lasts, and what a worker that lost its task tried to write."""
    scrape(client)
    meter.plan(script=["charge_then_cut"])
    client.indexed("Words whose answer was cut off.")
    claim_of = client.text("Another text.")
    claim = install.begun()
    client.post(f"documents/{claim_of['id']}/cancel")
    fenced.finish(install.worker.db, claim, spent=Spent())
    metrics = scrape(client)
    assert metrics["holdfast_in_doubt",] == 1
    assert metrics["holdfast_in_doubt_dollars",] > 0
    assert metrics["holdfast_decisions_total", "", "doubt"] == 1
    assert metrics["holdfast_decisions_total", "fenced_out", "finish"] == 1


def test_a_scrape_counts_on_from_where_the_last_one_ended(install, client):
    """Also when more is new than one look takes."""
    scrape(client)
    for number in range(4):
        client.text(f"Text {number}.")
    newest = len(install.runtime.db.look(journal.select()))
    scrape(client)
    position = event_counts.here(install.runtime.db)
    assert event_counts.since(install.runtime.db, position).decisions == {}
    first = event_counts.since(install.runtime.db, event_counts.CountPosition())
    assert first.position.entry == position.entry
    assert sum(first.decisions.values()) == newest


def test_a_duty_of_the_sweep_that_fails_is_shown(install, client):
    """Its lag and its failures are measured, and the status says what it said."""
    duty_schedule.enrol(install.runtime.db, {"drift": 60.0})
    duty_schedule.note_failure(install.runtime.db, "drift", 2, "it took longer than 30 s")
    late = update(duties).values(enrolled_at=duties.c.enrolled_at - 500)
    install.runtime.db.write("by_hand", lambda tx: tx.execute(late))
    measured = scrape(client)
    assert measured["holdfast_duty_failures", "drift"] == 2
    assert 440 <= measured["holdfast_duty_lag_seconds", "drift"] < 700
    (output,) = client.get("status").json["installation"]["duties"]
    assert (output["name"], output["error"], output["succeeded"]) == (
        "drift",
        "it took longer than 30 s",
        None,
    )
