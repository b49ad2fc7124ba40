"""Eight processes, each killed at a point of its own: each (action, document, generation) fires once."""

import signal
from collections import Counter

import pytest
from sqlalchemy import select

from holdfast.core.records import Ask
from holdfast.core.states import Status
from holdfast.store import reads
from holdfast.store.database import Database
from holdfast.store.schema import runs
from holdfast.store.schema_follow_ups import actions, deliveries, follow_ups
from tests.actions import cast
from tests.webhooks.receiver import Receiver

DOCUMENTS = 4
DEADLINE = 120
# Around the commits of what fires and of what delivers, and between a receiver's answer and its writing down.
# The number is of those that are met for certain, whoever is quicker.
ROUNDS = {
    "firing": 2,
    "delivering": 1,
}
POINTS = {
    "firing": (
        ("add_action.commit", 1),
        ("add_action.committed", 2),
        ("visit.commit", 1),
        ("visit.committed", 2),
        ("visited.commit", 1),
        ("finish.commit", 1),
        ("finish.committed", 1),
        ("finish.committed", 3),
    ),
    "delivering": (
        ("claim.committed", 2),
        ("trying.commit", 1),
        ("trying.committed", 1),
        ("post.answered", 1),
        ("post.answered", 2),
        ("missed.commit", 1),
        ("put_back.committed", 1),
        ("finish.commit", 4),
    ),
}


@pytest.fixture
def world(database_url):
    """Documents of two tenants: some ready, some asked for, one of them a second time."""
    db = Database(database_url)
    boss = cast.engine(database_url)
    for tenant in cast.TENANTS:
        for number in range(DOCUMENTS):
            boss.request(ask(tenant, number, "a"))
            if number == 1:
                boss.work_off()
    for tenant in cast.TENANTS:
        boss.request(ask(tenant, 0, "b"))
    yield db
    boss.db.close()
    db.close()


def ask(tenant, number, content):
    subject = f"document:{number}"
    return Ask("index", subject, content=content, tenant=tenant, collection="books", actor="test")


class Witness:
    """Looks, at each arrival, whether what is told is true already."""

    def __init__(self, db):
        self.db = db
        self.untrue = []

    def __call__(self, came):
        tenant, told = came.path.rpartition("/")[2], came.event["document"]
        head = reads.head(self.db, tenant, "index", f"document:{told['id']}")
        if head is None or not head.visible or head.published_generation < told["generation"]:
            self.untrue.append(told)


@pytest.mark.g4
@pytest.mark.timeout(400)  # nine processes are started, however busy the machine is
@pytest.mark.parametrize("round_of", ROUNDS)
def test_each_event_fires_once_and_arrives_at_least_once_whoever_dies(world, database_url, round_of):
    """No follow-up is missing or doubled; every event arrives under its one id, none before its commit."""
    with Receiver() as receiver:
        receiver.look = Witness(world)
        receiver.script = [500, "cut", 503]
        go = cast.CONTEXT.Barrier(len(POINTS[round_of]))
        victims = [cast.started(database_url, receiver.url, go, at, nth) for at, nth in POINTS[round_of]]
        for victim in victims:
            victim.join(DEADLINE)
        deaths = Counter(victim.exitcode for victim in victims)
        survivor = cast.started(database_url, receiver.url)
        survivor.join(DEADLINE)
        assert survivor.exitcode == 0
    assert set(deaths) <= {-signal.SIGKILL, 0}
    assert deaths[-signal.SIGKILL] >= ROUNDS[round_of], deaths
    fired_once(world)
    arrived(world, receiver)


def fired_once(db):
    """Both actions of both tenants have one follow-up for the published generation of each document."""
    made = db.read(lambda tx: tx.all(select(follow_ups, actions.c.tenant, actions.c.kind).join(actions)))
    assert len({(row.action_id, row.head_id, row.generation) for row in made}) == len(made)
    latest = Counter((row.tenant, row.kind) for row in made if _is_published(db, row))
    assert latest == {(t, k): DOCUMENTS for t in cast.TENANTS for k in ("webhook", "note")}
    owners = db.read(lambda tx: tx.all(select(runs).where(runs.c.kind == "note")))
    assert {row.id for row in owners} == {row.run_id for row in made if row.kind == "note"}
    ended = Counter(row.status for row in owners)
    assert set(ended) <= {Status.SUCCESS, Status.SUPERSEDED}
    assert ended[Status.SUCCESS] >= 2 * DOCUMENTS


def _is_published(db, row):
    head = reads.head_by_id(db, row.head_id)
    return head.published_generation == row.generation


def arrived(db, receiver):
    """Every event arrived; a second arrival has the same id and the same bytes; nothing else came."""
    kept = db.read(lambda tx: tx.all(select(deliveries)))
    bodies = {row.id: bytes(row.body) for row in kept}
    assert {came.id for came in receiver.came} == set(bodies)
    assert all(came.body == bodies[came.id] for came in receiver.came)
    assert all(row.delivered_at is not None for row in kept)
    assert receiver.look.untrue == []
    for row in kept:
        assert row.url.endswith(f"/{row.tenant}")
