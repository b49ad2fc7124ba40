"""What needs attention is said with what to do about it, and only while it is true."""

import html
import re
from urllib.request import urlopen

import pytest
from sqlalchemy import update

from holdfast.store.base.schema import tasks
from tests.webhooks.receiver import Receiver


@pytest.fixture
def seen(install):
    """`seen(path)` is what a page says, without its marks."""

    def text(path):
        with urlopen(f"http://127.0.0.1:{install.port}{path}", timeout=30) as said:
            main = said.read().decode().partition("<main")[2]
        return " ".join(html.unescape(re.sub("<[^>]*>", " ", main)).split())

    return text


def test_a_lease_that_nobody_takes_is_told_with_its_document(install, seen):
    """Its holder is said not to respond, by the document as well; after the work there is nothing to say."""
    document = install.client.text("Anchors hold.", title="Anchors")
    install.begun()
    working = seen(f"/documents/{document['id']}").partition("Technical details")[0]
    assert "Status somebody is working on it." in working
    assert "lease" not in working
    late = update(tasks).values(lease_until=tasks.c.lease_until - 160.0)
    install.runtime.db.write("late", lambda tx: tx.execute(late))
    output = seen("/operations")
    assert "1 task lost its worker and no other worker has taken over. Start a worker" in output
    assert re.search(r"Anchors somebody interactive 1 0 expired \d\.\d min ago", output)
    output = seen(f"/documents/{document['id']}")
    assert re.search(
        r"Why is it waiting\? somebody stopped responding more than \d\.\d min ago, and no worker", output
    )
    assert "somebody (lease expired)" in output.partition("Technical details")[2]
    install.worker.engine.run_until_idle(patience=30.0)
    assert "Needs attention" not in seen("/operations")
    assert "Ready. Version 1 is searchable." in seen(f"/documents/{document['id']}")


def test_a_budget_is_told_when_it_is_used_up_and_not_before(install, seen):
    """A removed one is not told of any more."""
    install.client.collection()
    for hard, output in ((5, False), (0, True), (None, False)):
        assert install.client.put("budgets", {"scope": "collection:shelf", "hard": hard}).status == 200
        assert ("The budget for collection shelf is used up. Raise it" in seen("/operations")) is output


def test_events_that_did_not_arrive_are_told(install, seen):
    """With what the receiver said, and the way to send them again."""
    client = install.client
    client.collection()
    with Receiver() as receiver:
        receiver.script = [410]
        response = client.post(
            "collections/shelf/actions", {"sort": "webhook", "params": {"url": receiver.url}}
        )
        client.post(f"collections/shelf/actions/{response.json['action']['id']}/test")
        install.work()
    output = seen("/operations")
    assert "1 webhook delivery failed permanently: the URL returned status 410. Fix the receiver" in output
    assert re.search(r"webhook\.test .* Failed HTTP 410 Send again", output)


def test_the_same_refusal_many_times_is_one_line(install, seen):
    """With how often, and what all of them would have cost."""
    document = install.client.text("Anchors hold.", title="Anchors")
    for _ in range(3):
        assert install.client.post(f"documents/{document['id']}/index", {}).status == 409
    for path in ("/", "/operations", f"/documents/{document['id']}"):
        output = seen(path)
        assert output.lower().count("rejected as a duplicate") == 1
        assert "3\N{MULTIPLICATION SIGN}" in output
