"""Budgets: a soft limit warns once, a hard one refuses and waits, and raising it lets work go on at once."""

import json
import sqlite3

import pytest
from sqlalchemy import exc, update
from typer.testing import CliRunner

from holdfast import faults
from holdfast.cli import money
from holdfast.cli.app import app
from holdfast.core.states import TaskState
from holdfast.store.base.schema import budgets as budget_table
from holdfast.store.base.schema import journal, tasks
from holdfast.store.money import budgets

CENTS = 0.02 / 1e6  # what a token costs in dollars


def verbs(install, verb):
    query = journal.select().where(journal.c.verb == verb).order_by(journal.c.id)
    return install.runtime.db.read(lambda tx: tx.all(query))


def waiting(install):
    query = tasks.select().where(tasks.c.state == TaskState.WAITING.value)
    return install.runtime.db.read(lambda tx: tx.all(query))


def test_a_budget_is_set_shown_and_removed(client):
    """Dollars in, dollars out; what was spent before counts; null takes it away."""
    document = client.indexed("Paid for before there was a budget.")
    said = client.put("budgets", {"scope": "tenant", "hard": 5, "soft": 2.5})
    (shown,) = client.get("budgets").json["budgets"]
    assert said.json == {"budget": shown, "resumed": 0}
    assert (shown["scope"], shown["hard"], shown["soft"]) == ("tenant", 5, 2.5)
    assert (shown["spent"], shown["over_soft"]) == (document["cost"]["paid"], False)
    assert client.get("bill").json["budgets"] == [shown]
    client.put("budgets", {"scope": "collection:shelf", "hard": 1})
    assert len(client.get("budgets").json["budgets"]) == 2
    gone = client.put("budgets", {"scope": "tenant", "hard": None, "soft": None})
    assert gone.json["budget"] is None
    assert [each["scope"] for each in client.get("budgets").json["budgets"]] == ["collection:shelf"]


def test_a_limit_that_is_not_named_stays_as_it_is(client):
    """Setting the soft limit leaves the hard one in force, and the other way round; null removes just one."""
    client.put("budgets", {"scope": "tenant", "hard": 5})
    soft = client.put("budgets", {"scope": "tenant", "soft": 2}).json["budget"]
    assert (soft["hard"], soft["soft"]) == (5, 2)
    raised = client.put("budgets", {"scope": "tenant", "hard": 6}).json["budget"]
    assert (raised["hard"], raised["soft"]) == (6, 2)
    crossed = client.put("budgets", {"scope": "tenant", "hard": 1})
    assert (crossed.status, crossed.code) == (400, "bad_budget")  # the soft limit of 2 would never warn
    removed = client.put("budgets", {"scope": "tenant", "hard": None}).json["budget"]
    assert (removed["hard"], removed["soft"]) == (None, 2)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"scope": "collection:nowhere", "hard": 1}, 404, "unknown_collection"),
        ({"scope": "planet", "hard": 1}, 400, "bad_budget"),
        ({"scope": "collection:", "hard": 1}, 400, "bad_budget"),
        ({"scope": "tenant", "hard": -1}, 400, "bad_request"),
        ({"scope": "tenant", "hard": 1e30}, 400, "bad_request"),
        ({"scope": "tenant", "hard": "much"}, 400, "bad_request"),
        ({"scope": "tenant", "hard": 1, "soft": 2}, 400, "bad_budget"),
        ({"hard": 1}, 400, "bad_request"),
        ({"scope": "tenant"}, 400, "bad_budget"),
        ({"scope": "tenant", "hard": 1, "period": "week"}, 400, "bad_request"),
    ],
)
def test_a_senseless_budget_is_refused(small, body, status, code):
    """And nothing is changed."""
    said = small.client.put("budgets", body)
    assert (said.status, said.code) == (status, code)
    assert small.client.get("budgets").json["budgets"] == []


def test_a_tenant_without_the_scope_admin_cannot_raise_its_own_limit(install):
    """Reading is free."""
    writer = install.key("acme", "write")
    assert writer.get("budgets").status == 200
    assert writer.put("budgets", {"scope": "tenant", "hard": 1}).code == "scope_missing"
    stranger = install.key("other", "admin")
    stranger.put("budgets", {"scope": "tenant", "hard": 1})
    assert writer.get("budgets").json["budgets"] == []


def test_crossing_the_soft_limit_is_noted_once(install, client):
    """In the journal, in the status and with the bill; a new limit may be crossed anew."""
    client.put("budgets", {"scope": "tenant", "soft": 1 * CENTS})
    client.indexed("Some words that cost more than that.")
    client.indexed("And some more of them.")
    (noted,) = verbs(install, "warn")
    assert noted.reason == "soft_limit:tenant"
    (over,) = client.get("status").json["budgets"]
    assert (over["over_soft"], over["over_hard"]) == (True, False)
    client.put("budgets", {"scope": "tenant", "soft": 1.0})
    assert client.get("status").json["budgets"] == []
    client.put("budgets", {"scope": "tenant", "soft": 1 * CENTS})
    assert len(verbs(install, "warn")) == 2  # the new limit is crossed as it is set


def test_at_the_hard_limit_work_waits_visibly_and_goes_on_when_it_is_raised(install, client, meter):
    """A running document stops before the next order; new requests are refused; raising resumes at once."""
    client.put("budgets", {"scope": "tenant", "hard": 3 * CENTS})
    response = client.text("Far more words than three tokens could ever pay for.")
    install.work()
    (task,) = waiting(install)
    assert (task.waiting_for, meter.totals().charges) == ("budget", 0)
    why = client.get(f"documents/{response['id']}/why").json
    assert why["generations"][0]["tasks"][0]["waiting_for"] == "budget"
    client.put("budgets", {"scope": "tenant", "hard": 0})
    refused = client.post("collections/shelf/documents", {"text": "Another document."})
    assert (refused.status, refused.code) == (402, "over_budget")
    install.sender.lanes.clear()
    said = client.put("budgets", {"scope": "tenant", "hard": 1})
    assert (said.json["resumed"], dict(install.sender.lanes)) == (1, {"interactive": 1})
    install.work()
    shown = client.get(f"documents/{response['id']}").json
    assert (shown["index_status"], meter.totals().charges) == ("success", 1)
    assert client.get("budgets").json["budgets"][0]["spent"] == shown["cost"]["paid"]


def test_a_collection_and_its_tenant_both_hold(install, client, meter):
    """An order needs room in both; raising one wakes what waits, and the other still holds it back."""
    client.collection("shelf")
    client.put("budgets", {"scope": "tenant", "hard": 1})
    client.put("budgets", {"scope": "collection:shelf", "hard": 1 * CENTS})
    client.text("These words do not fit into it.")
    client.text("But those of another collection do.", to="other")
    install.work()
    assert (len(waiting(install)), meter.totals().charges) == (1, 1)
    assert client.put("budgets", {"scope": "tenant", "hard": 2}).json["resumed"] == 1
    install.work()
    assert (len(waiting(install)), meter.totals().charges) == (1, 1)
    assert client.put("budgets", {"scope": "collection:other", "hard": 2}).json["resumed"] == 0
    assert client.put("budgets", {"scope": "collection:shelf", "hard": None}).json["resumed"] == 1
    install.work()
    assert (waiting(install), meter.totals().charges) == ([], 2)
    spent = {each["scope"]: each["spent"] for each in client.get("budgets").json["budgets"]}
    assert spent["tenant"] > spent["collection:other"] > 0


def test_the_command_line_sets_what_the_api_shows(install, client, monkeypatch, capsys):
    """`holdfast budget set`, and the list of all tenants."""
    monkeypatch.setattr("holdfast.cli.context.loaded", lambda: install.settings)
    money.set_budget("default", None, hard=2.5, soft=None, as_json=True)
    assert json.loads(capsys.readouterr().out)["budget"]["hard_limit"] == 2_500_000_000
    money.set_budget("default", "anything", hard=None, soft=1.0, as_json=False)
    money.budgets(None, as_json=False)
    output = capsys.readouterr().out
    assert "default: tenant: spent $0.00, reserved $0.00, hard limit $2.50" in output
    assert "default: collection:anything" in output
    assert client.get("budgets").json["budgets"][1]["hard"] == 2.5


def test_the_command_line_removes_a_limit_only_when_it_is_told_to(install, monkeypatch, capsys):
    """`--soft` leaves the hard limit in force; `--no-hard` takes it away; neither is a mistake."""
    monkeypatch.setattr("holdfast.cli.context.loaded", lambda: install.settings)
    runner = CliRunner()

    def limits(*arguments):
        assert runner.invoke(app, ["budget", "set", *arguments]).exit_code == 0
        (each,) = json.loads(runner.invoke(app, ["budget", "--json"]).stdout)
        return each["hard_limit"], each["soft_limit"]

    assert limits("--hard", "3") == (3_000_000_000, None)
    assert limits("--soft", "2") == (3_000_000_000, 2_000_000_000)
    assert limits("--no-hard") == (None, 2_000_000_000)
    assert runner.invoke(app, ["budget", "set"]).exit_code != 0
    assert runner.invoke(app, ["budget", "set", "--hard", "1", "--no-hard"]).exit_code != 0


def test_a_budget_of_a_day_starts_anew_at_midnight(install, client, meter):
    """What was spent yesterday does not count today; the total still has it, and the day's end is told."""
    client.put("budgets", {"scope": "tenant", "period": "day", "hard": 15 * CENTS})
    client.put("budgets", {"scope": "tenant", "hard": 1})
    client.indexed("Words that are worth ten tokens or so.")
    client.text("And others for which today has no room left.")
    install.work()
    assert (len(waiting(install)), meter.totals().charges) == (1, 1)
    days = {
        "window_start": budget_table.c.window_start - 86_400,
        "window_end": budget_table.c.window_end - 86_400,
    }
    install.runtime.db.write("test", lambda tx: tx.execute(update(budget_table).values(**days)))
    shown = {each["period"]: each for each in client.get("budgets").json["budgets"]}
    assert (shown["day"]["spent"], shown["day"]["over_hard"]) == (0, False)
    assert shown["day"]["resets_at"].endswith("T00:00:00Z")
    assert (shown["total"]["spent"] > 0, shown["total"]["resets_at"]) == (True, None)


def test_a_model_without_a_price_is_shown_as_such_everywhere(client, meter):
    """Cost null and not 0, counts that are true; under a hard limit it is refused before anything is sent."""
    client.post("collections", {"id": "odd", "options": {"model": "nobody-knows"}})
    body = client.post("estimate", {"collection": "odd", "text": "Some words."}).json
    assert (body["cost"], body["unpriced_calls"], body["calls"]) == (None, 1, 1)
    shown = client.indexed("Some words.", to="odd")
    cost = shown["cost"]
    assert (cost["paid"], cost["unpriced_calls"], cost["paid_calls"]) == (None, 1, 1)
    (line,) = client.get("bill").json["lines"]
    assert (line["paid"], line["unpriced_calls"], line["tokens"] > 0) == (None, 1, True)
    client.put("budgets", {"scope": "tenant", "hard": 100})
    refused = client.post("collections/odd/documents", {"text": "Other words."})
    assert (refused.status, refused.code, meter.totals().charges) == (402, "unpriced", 1)


def test_a_lost_answer_leaves_one_note(install):
    """The transaction is tried again after its COMMIT was answered by silence."""
    lost = []

    def lose(point):
        if point == "set_budget.committed" and not lost:
            lost.append(point)
            raise exc.OperationalError("COMMIT", {}, sqlite3.OperationalError("database is locked"))

    with faults.armed(lose):
        budgets.set_budget(install.runtime.db, "default", "tenant", hard=1)
    assert len(verbs(install, "set_budget")) == len(lost) == 1
