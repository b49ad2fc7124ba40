"""Eight processes, each killed at a point of its own: each event fires once and arrives, after its commit."""

import ast
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import func, select

import holdfast
from holdfast.core.states import ENDED, LIVE, Status
from holdfast.kinds import webhook
from holdfast.store.base.schema import actions, deliveries, follow_ups, heads, journal, runs
from holdfast.store.features import open_database
from holdfast.store.follow_ups import deliveries as made
from holdfast.store.follow_ups import delivery_attempts
from holdfast.store.views import reads
from tests.actions import crash_processes
from tests.webhooks.receiver import Receiver

pytestmark = pytest.mark.g4

CROWD = 8
MISSES = (500, "cut", 503)
# Where a try is made and written down: a death between two of these is what makes an event arrive twice.
DELIVERING = ("trying", "post", "finish")
# Whatever these write or send has to do with a delivery.
SOURCES = ("store/follow_ups/delivery_attempts.py", "store/follow_ups/actions.py", "documents/http_post.py")
# A person's word, not the way of an event; what it stops in the middle is in tests/webhooks.
ELSEWHERE = {"move", "remove_action", "seen_to", "send_test"}


class Moody(Receiver):
    """Misses each event the first time; some addresses are gone for good. Looks whether what it is told is
    true already, signed and under its own key.
    """

    def __init__(self, db):
        super().__init__()
        self.db, self.faults, self.times = db, [], Counter()
        self.look, self.choose = self.inspect, self.moody
        self.guard = threading.Lock()

    def moody(self, came):
        with self.guard:
            self.times[came.id] += 1
            times = self.times[came.id]
        if came.path.endswith("/gone"):
            return 410
        return MISSES[int(came.id[:8], 16) % len(MISSES)] if times == 1 else 200

    def inspect(self, came):
        tenant = came.path.split("/")[2]
        at = int(came.headers["holdfast-signature"].partition(",")[0].removeprefix("t="))
        checks = {
            "committed": delivery_attempts.one(self.db, tenant, came.id) is not None,
            "signed": came.headers["holdfast-signature"]
            == webhook.signature(crash_processes.SECRET, came.body, at),
            "its own key": came.headers["idempotency-key"] == came.id == came.event["id"],
            "true": self.is_true(tenant, came.event),
        }
        self.faults += [(name, came.event) for name, holds in checks.items() if not holds]

    def is_true(self, tenant, event):
        """A ready document is published; a job that ended has ended, and holds its place no more."""
        if event["event"] == made.READY:
            head = reads.head(self.db, tenant, "index", f"document:{event['document']['id']}")
            return head is not None and head.published_generation >= event["document"]["generation"]
        job = event["job"]
        head = reads.head(self.db, tenant, "job", job["subject"])
        ended = self.db.look(select(runs.c.status).where(runs.c.id == job["id"]))
        released = head.run_id != job["id"] or head.status not in LIVE
        return released and [row.status for row in ended] == [job["status"]]


@pytest.fixture
def db(database_url):
    result = open_database(database_url, pool_size=10)
    yield result
    result.close()


@pytest.fixture
def receiver(db):
    with Moody(db) as opened:
        yield opened


def points_in(path):
    """The fault points that a module names: of its transactions, and of its own."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Attribute(attr="write"), args=[ast.Constant(value=str(name)), _]):
                yield from () if name in ELSEWHERE else (f"{name}.commit", f"{name}.committed")
            case ast.Call(func=ast.Attribute(attr="point"), args=[ast.Constant(value=str(name))]):
                yield name


def test_the_life_of_an_event_passes_every_point_there_is(db, receiver):
    """What a peaceful life passes is where the others die; a point that is new in these modules is on it."""
    source = Path(holdfast.__file__).parent
    named = {point for path in SOURCES for point in points_in(source / path)}
    met = crash_processes.passed(str(db.engine.url.render_as_string(hide_password=False)), receiver.url)
    assert named <= set(met)
    assert {f"{name}.commit" for name in ("request", "claim", "put_back", "cancel", "fail")} <= set(met)
    assert set(ending(db)) == set(made.ENDINGS.values())
    check(db, receiver)


def ending(db):
    rows = db.look(select(deliveries.c.event).where(deliveries.c.event != made.READY))
    return [row.event for row in rows]


@pytest.mark.chaos
@pytest.mark.timeout(600)  # dozens of processes are started, however busy the machine is
@pytest.mark.parametrize("where", ["delivering", "anywhere"])
def test_each_event_fires_once_and_arrives_at_least_once_whoever_dies(db, receiver, database_url, where):
    """No event is missing, doubled or early, whatever point of its life each of eight processes dies at."""
    points = crash_processes.passed(database_url, receiver.url)
    if where == "delivering":
        points = [point for point in points if point.partition(".")[0] in DELIVERING]
    points += points[: -len(points) % CROWD]
    for first in range(0, len(points), CROWD):
        kill(database_url, receiver, points[first : first + CROWD], 1 + first)
        check(db, receiver)
    assert {point.partition(".")[0] for point in points} >= set(DELIVERING)


def kill(url, receiver, points, number):
    """Eight processes at once, each dead at its point; then a ninth has brought all to its end."""
    go = crash_processes.CONTEXT.Barrier(len(points))
    victims = [
        crash_processes.started(url, receiver.url, go, at, number + position)
        for position, at in enumerate(points)
    ]
    for victim in victims:
        victim.join(crash_processes.DEADLINE)
    died = {at: victim.exitcode for at, victim in zip(points, victims, strict=True)}
    for victim in victims:
        victim.kill()
    assert set(died.values()) == {-signal.SIGKILL}, died
    survivor = crash_processes.started(url, receiver.url)
    survivor.join(crash_processes.DEADLINE)
    assert survivor.exitcode == 0


def check(db, receiver):
    """What there is to tell was told, and nothing else."""
    assert receiver.faults == []
    fired_once(db)
    called_back(db)
    arrived(db, receiver)


def fired_once(db):
    """Each action has one follow-up for the published generation of each document of its tenant."""
    result = db.read(lambda tx: tx.all(select(follow_ups, actions.c.tenant, actions.c.kind).join(actions)))
    assert len({(row.action_id, row.head_id, row.generation) for row in result}) == len(result)
    published = {
        row.id: row
        for row in db.look(select(heads).where(heads.c.kind == "index"))
        if row.visible and row.status == Status.SUCCESS
    }
    assert len(published) == len(db.look(select(heads.c.id).where(heads.c.kind == "index")))
    latest = {
        (row.action_id, row.head_id)
        for row in result
        if published[row.head_id].published_generation == row.generation
    }
    rows = db.look(select(actions))
    assert latest == {
        (each.id, row.id) for each in rows for row in published.values() if row.tenant == each.tenant
    }
    notes = db.look(select(runs).where(runs.c.kind == "note"))
    assert {row.id for row in notes} == {row.run_id for row in result if row.kind == "note"}
    assert {row.status for row in notes} <= {Status.SUCCESS, Status.SUPERSEDED}


def called_back(db):
    """Each job that anybody asked for has ended, and its end is one event."""
    jobs = {row.id: row for row in db.look(select(runs).where(runs.c.kind == "job"))}
    assert {row.status for row in jobs.values()} <= ENDED
    rows = db.look(select(deliveries.c.cause, deliveries.c.event).where(deliveries.c.event != made.READY))
    assert sorted((row.cause, row.event) for row in rows) == sorted(
        (row.id, made.ENDINGS[Status(row.status)]) for row in jobs.values()
    )


def arrived(db, receiver):
    """Every event arrived, each time with the same id and bytes, no more often than it was tried; and what is
    shown of it is what came of it.
    """
    rows = db.look(select(deliveries))
    shown = {
        each.id: each
        for tenant in crash_processes.TENANTS
        for each in delivery_attempts.page(db, tenant, state=None, limit=9999)
    }
    bodies = {row.id: bytes(row.body) for row in rows}
    assert {came.id for came in receiver.came} == set(bodies) == set(shown)
    assert all(came.body == bodies[came.id] for came in receiver.came)
    arrivals = Counter(came.id for came in receiver.came)
    claimed, expired = noted(db, "claim"), noted(db, "expire")
    for row in rows:
        gone, now = row.url.endswith("/gone"), shown[row.id]
        assert now.state == ("failed" if gone else "delivered")
        assert (now.last_status, now.error_code) == ((410, "webhook_gone") if gone else (200, None))
        assert (now.delivered_at is None) is gone
        assert row.url.split("/")[4] == row.tenant
        again = db.look(select(func.count().label("runs")).where(runs.c.head_id == row.head_id))[0].runs
        missed = 0 if gone else 1
        assert arrivals[row.id] <= claimed[row.head_id] <= missed + again + expired[row.head_id]


def noted(db, verb):
    """How often the journal has the verb, by head."""
    result = select(journal.c.head_id, func.count().label("times")).where(journal.c.verb == verb)
    return Counter({row.head_id: row.times for row in db.look(result.group_by(journal.c.head_id))})
