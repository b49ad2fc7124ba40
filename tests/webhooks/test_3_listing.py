"""What people and machines see of all deliveries: lists by state, and metrics."""

import pytest

from holdfast.api.metrics import Counting
from holdfast.core import retry
from holdfast.core.records import Landed
from holdfast.kinds import webhook
from holdfast.service.operations import Operations
from holdfast.store.features import open_database
from holdfast.store.follow_ups import delivery_attempts
from holdfast.store.protocol import requests
from holdfast.store.views import event_counts
from tests.webhooks.conftest import Office

NEVER = retry.Backoff(first=1000.0, factor=1.0, most=1000.0)


@pytest.fixture
def office(database_url):
    """Whoever does not take an event at once is not asked again for a long time."""
    db = open_database(database_url)
    yield Office(db, webhook.DeliveryRules(seconds=10.0, backoff=NEVER, allow_private=True))
    db.close()


@pytest.fixture
def posted(office, receiver):
    """Eight events: two of each state, one of them sent again and cancelled after it had arrived."""
    office.hook(receiver.url)
    acts = {"delivered": 200, "failed": 410, "cancelled": 500, "pending": 500}
    created = {}
    for number, (state, act) in enumerate([*acts.items(), *acts.items()]):
        receiver.script = [act]
        office.ask(subject=f"document:{number}")
        office.engine.work_off()
        created.setdefault(state, []).append(office.sent()[0])
    for each in created["cancelled"]:
        assert requests.cancel(office.db, each.head_id) == Landed()
    again = created["delivered"][0]
    assert delivery_attempts.resend(office.db, "default", again.id, run_id=office.db.token()) == Landed()
    assert requests.cancel(office.db, again.head_id) == Landed()
    return {state: [each.id for each in reversed(each)] for state, each in created.items()}


def test_each_state_has_its_list_the_newest_first(office, posted):
    """Together they are all there is; one that arrived and was sent again in vain has arrived."""
    for state, ids in posted.items():
        result = delivery_attempts.page(office.db, "default", state=state, limit=10)
        assert [(each.id, each.state) for each in result] == [(one, state) for one in ids]
        assert delivery_attempts.page(office.db, "another", state=state, limit=10) == []
    assert len(office.sent()) == sum(map(len, posted.values()))


def test_a_list_goes_on_where_its_page_ended(office, posted):
    """By state as well as without."""
    for state, ids in [*posted.items(), (None, [each.id for each in office.sent()])]:
        seen, before = [], delivery_attempts.FROM_THE_END
        while page := delivery_attempts.page(office.db, "default", state=state, before=before, limit=1):
            seen, before = [*seen, page[0].id], page[0].head_id
        assert seen == ids


def test_deliveries_are_counted_by_what_became_of_them(office, receiver, monkeypatch):
    """Sent, failed and waiting, with the age of the oldest; each once, however often it is looked."""
    monkeypatch.setattr(event_counts, "HOLD_BACK", -1.0)
    counting = Counting(Operations(office.db))
    scrape(counting)
    office.hook(receiver.url)
    receiver.script = [200, 410, 500]
    for number in range(3):
        office.ask(subject=f"document:{number}")
    office.engine.work_off()
    for _ in range(2):
        metrics = scrape(counting)
        assert metrics["holdfast_deliveries_total", "sent"] == 1
        assert metrics["holdfast_deliveries_total", "failed"] == 1
        assert metrics["holdfast_deliveries_total", "cancelled"] == 0
        assert metrics["holdfast_deliveries_waiting",] == 1
        assert metrics["holdfast_deliveries_oldest_seconds",] > 0
        assert metrics["holdfast_decisions_total", "put_back", "delivery"] == 1


def scrape(counting):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in counting.collect()
        for sample in family.samples
    }
