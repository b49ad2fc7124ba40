"""Why a job failed or waits, in a category that a person can act on."""

import dataclasses

from sqlalchemy import insert, update

from holdfast.core import categories
from holdfast.core.retry import Backoff
from holdfast.store.base.schema import budgets, tasks, throttles
from tests.jobs.install import ask, done, job, paragraphs, results


def refusal(status, code="refused", **more):
    body = f'{{"error": {{"message": "The server says {code}.", "code": "{code}"}}}}'
    return {"do": "fail", "status": status, "charge": False, "times": 99, "body": body, **more}


REFUSALS = [
    (refusal(401), "provider_auth", "auth"),
    (refusal(403), "provider_auth", "auth"),
    (refusal(402), "provider_quota", "quota"),
    (refusal(429, "insufficient_quota"), "provider_quota", "quota"),
    (refusal(400, "content_filter"), "provider_rejected", "content"),
]


def test_a_provider_that_refuses_for_good(small):
    """The job fails with its category and the provider's words; nothing was charged."""
    small.shelf(paragraphs("alpha", 2))
    for script, code, category in REFUSALS:
        small.meter.plan(script=[script])
        finished = done(small)
        assert (finished["state"], finished["error"]["code"], finished["error"]["category"]) == (
            "failed",
            code,
            category,
        )
        assert "The server says" in finished["error"]["message"]
        assert (small.paid, finished["cost"]["paid"]) == (0, 0.0)


def test_a_job_that_failed_tells_what_it_paid(install):
    """What was paid before the refusal is counted in calls and in money, as in the provider's own book."""
    install.shelf(paragraphs("alpha", 12))
    install.meter.plan(script=[{"do": "answer", "times": 4}, refusal(401)])
    finished = done(install, per_chunk=1, limit=12)
    assert (finished["state"], install.paid) == ("failed", 4)
    assert finished["cost"]["paid_calls"] == 4
    assert finished["cost"]["paid"] > 0
    body = install.client.get(f"runs/{finished['job_id']}/log").json
    assert body["cost"] == finished["cost"]


def test_a_job_that_was_cancelled_tells_what_it_paid_and_reused(install):
    """Calls that the ledger had are told as reused, those of the cancelled run as paid."""
    install.shelf(paragraphs("alpha", 12))
    done(install, per_chunk=1, limit=4)
    before = install.paid
    install.meter.plan(script=[{"do": "answer", "times": 4}, "rate_limit"], retry_after=30.0)
    said = ask(install.client, per_chunk=1, limit=12)
    install.work()
    install.client.post(f"jobs/{said.json['job_id']}/cancel")
    finished = job(install.client, said.json["job_id"])
    assert (finished["state"], finished["cost"]["paid_calls"]) == ("cancelled", install.paid - before)
    assert finished["cost"]["reused_calls"] > 0


def test_one_input_that_is_refused_does_not_bar_the_others(install):
    """It is counted; the rest is asked, paid once and kept."""
    install.shelf(paragraphs("alpha", 3))
    refused = refusal(400, "content_filter", times=1)
    # A call that was refused in a group is tried once more alone; then it is left out.
    install.meter.plan(script=[refused, "answer", "answer", refused])
    finished = done(install, limit=1000)
    assert finished["state"] == "success"
    assert install.meter.totals().excess == 0
    assert finished["counters"]["refused"] <= 1
    assert len(results(install.client, finished["job_id"])) == finished["results"] > 0


def test_an_answer_that_the_filter_withheld(small):
    """A paid answer without content is content's fault, not the provider's."""
    small.shelf(paragraphs("alpha", 1))
    body = (
        '{"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}],'
        ' "usage": {"prompt_tokens": 1, "completion_tokens": 1}}'
    )
    small.meter.plan(script=[{"do": "answer", "times": 99, "body": body}])
    finished = done(small)
    assert (finished["error"]["code"], finished["error"]["category"]) == ("content_filtered", "content")


def test_a_provider_that_is_too_busy_is_waited_for(install):
    """The job shows what it waits for, is still live (409), and then ends well, paid once."""
    install.shelf(paragraphs("alpha", 1))
    install.meter.plan(retry_after=30.0, script=["rate_limit"])
    said = ask(install.client)
    install.work()
    finished = job(install.client, said.json["job_id"])
    assert (finished["state"], finished["waiting"]["reason"], finished["waiting"]["category"]) == (
        "running",
        "rate",
        "rate_limit",
    )
    assert ask(install.client).code == "duplicate"
    pass_time(install, 60.0)
    install.worker.engine.sweep()
    install.work()
    assert job(install.client, said.json["job_id"])["state"] == "success"
    assert install.meter.totals().excess == 0


def pass_time(install, seconds):
    def body(tx):
        for column in (tasks.c.due_at, throttles.c.not_before):
            tx.execute(update(column.table).where(column > seconds).values({column: column - seconds}))

    install.runtime.db.write("by_hand", body)


def test_a_provider_that_only_fails(small, monkeypatch):
    """After the last try the job fails as `provider_down`; its orders stay in doubt, shown and priced."""
    monkeypatch.setattr(small.worker.engine.ledger, "_policy", quick(small.worker.engine.ledger._policy))
    small.shelf(paragraphs("alpha", 1))
    small.meter.plan(fail=1.0)
    finished = done(small, limit=1)
    assert (finished["state"], finished["error"]["code"], finished["error"]["category"]) == (
        "failed",
        "provider_unavailable",
        "provider_down",
    )
    assert len(small.client.get("orders").json["orders"]) == 1


def quick(policy):
    return dataclasses.replace(policy, most_sends=2, backoff=Backoff(first=0.01, most=0.02))


def test_a_budget_that_is_used_up(install):
    """402 before anything is queued."""
    install.shelf(paragraphs("alpha", 1))
    exhaust(install)
    said = ask(install.client)
    assert (said.status, said.code) == (402, "over_budget")
    assert install.paid == 0


def exhaust(install):
    row = {"tenant": "default", "scope": "tenant", "hard_limit": 0, "spent": 0, "reserved": 0}
    install.runtime.db.write("by_hand", lambda tx: tx.execute(insert(budgets), row))


def test_every_category_has_a_way_to_come_about():
    """And what has none is internal."""
    ways = {*categories.OF_CODE.values(), *categories.OF_WAIT.values(), categories.of_code("work_raised")}
    assert ways == set(categories.CATEGORIES)
