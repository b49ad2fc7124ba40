"""G4: what was accepted ends, wherever a process dies and whichever answer of the database is lost."""

import contextlib
import socket
import threading
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest
from sqlalchemy import exc

from holdfast import faults
from holdfast.core.records import Ask
from holdfast.core.states import Disposition, Status
from holdfast.engine import wakeups
from holdfast.store.protocol import duties
from tests.races import actor
from tests.races.arena import SUBJECT

pytestmark = pytest.mark.g4

# Every fault point that a run passes on its way; `test_the_list_of_points_is_complete` compares it.
POINTS = [
    *("keep.commit", "keep.committed", "claim.commit", "claim.committed", "plan.commit", "plan.committed"),
    *("intend.commit", "intend.committed", "send.commit", "send.committed"),
    *("send.first_byte", "send.begun", "send.answered", "send.heard", "settle.commit", "settle.committed"),
    *("stage.commit", "stage.committed", "advance.commit", "advance.committed"),
    *("finish.commit", "finish.committed"),
    *("enrol.commit", "enrol.committed", "win.commit", "win.committed"),
    *("note_success.commit", "note_success.committed"),
    *("recompute.commit", "recompute.committed", "prune.commit", "prune.committed"),
]
COMMITS = [point for point in POINTS if point.endswith(".commit")]
COMMITTED = [point for point in POINTS if point.endswith(".committed")]
IN_FLIGHT = [
    "send.committed",
    "send.first_byte",
    "send.begun",
    "send.answered",
    "send.heard",
    "settle.commit",
]


@contextmanager
def worker(arena, meter, **fields):
    """An engine of this process, working for the meter."""
    values = {"url": arena.url, "base_url": meter.base_url, "keyed": meter.honour_keys, "owner": "survivor"}
    part = actor.Part(**values | fields)
    with closing(actor.client(part)) as provider:
        engine = actor.engine(part, provider)
        try:
            yield engine
        finally:
            engine.db.close()


def accepted(arena, word="word"):
    """A request of two slices and three words that nobody has paid for yet."""
    subject = f"document:{word}"
    arena.set("duties", {"next_at": 0.0, "succeeded_at": 0.0})
    slices = [[f"{word} one", f"{word} two"], [f"{word} three"]]
    assert arena.ask(subject=subject, pipeline="index@1", options={"slices": slices}).created
    return subject


def check_whole(arena, meter, subject, point=""):
    """The run ended well: nothing is missing, doubled or left over."""
    head, word = arena.head(subject), subject.removeprefix("document:")
    assert (head.status, head.published_generation) == (Status.SUCCESS, 1), point
    assert arena.texts(subject) == [f"1:{word} {n}:128" for n in ("one", "two", "three")], point
    assert {row.state for row in arena.rows("tasks", head_id=head.id)} == {"done"}, point
    assert [reason for verb, reason in arena.verbs(head.id) if verb == "publish"] == ["all_slices_done"], (
        point
    )
    assert all(meter.charges_of(f"{word} {n}") for n in ("one", "two", "three")), point


def bury(arena):
    """The leases of the dead have run out."""
    for task in arena.rows("tasks", state="running"):
        arena.set("tasks", {"lease_until": 1.0}, id=task.id)
    make_duties_due(arena)


def make_duties_due(arena):
    """Whoever sweeps next does every duty, and says so."""
    arena.set("duties", {"next_at": 0.0, "succeeded_at": 0.0})


def test_the_list_of_points_is_complete(arena, keyed_meter):
    """A run in peace passes exactly the points at which the tests below kill."""
    subject = accepted(arena)
    passed = []
    with worker(arena, keyed_meter) as engine, faults.armed(passed.append):
        engine.run_until_idle()
    check_whole(arena, keyed_meter, subject)
    assert set(passed) == set(POINTS)


@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.timeout(600)  # dozens of processes are started, however busy the machine is
def test_a_worker_killed_at_any_point_loses_nothing(arena, keyed_meter):
    """One victim for every fault point; another process finishes, and each word costs once."""
    with worker(arena, keyed_meter) as survivor:
        for point in POINTS:
            subject = accepted(arena, point)
            make_duties_due(arena)
            victim = actor.Process(actor.Part(arena.url, keyed_meter.base_url, at=point)).go()
            assert victim.expect("at") == point
            victim.dies()
            bury(arena)
            survivor.run_until_idle()
            check_whole(arena, keyed_meter, subject, point)
    assert keyed_meter.totals().excess == 0
    assert {row.state for row in arena.rows("calls")} == {"settled"}
    assert arena.largest("tasks", "attempts") <= 1


@pytest.mark.chaos
@pytest.mark.parametrize("moment", ["request.commit", "request.committed"])
def test_a_request_is_lost_only_while_nobody_was_told_that_it_was_accepted(arena, keyed_meter, moment):
    """Killed before its commit it never was. Killed after it nobody was woken, and it ends all the same."""
    ask = Ask(
        kind="index", subject="document:word", options={"slices": [["word one", "word two"], ["word three"]]}
    )
    asker = actor.Process(actor.Part(arena.url, ask=ask, at=moment)).go()
    asker.expect("at")
    asker.dies()
    with worker(arena, keyed_meter) as engine:
        engine.run_until_idle()
    if moment == "request.commit":
        assert arena.count("runs") == 0
    else:
        check_whole(arena, keyed_meter, "document:word")


@pytest.mark.chaos
@pytest.mark.parametrize("moment", ["expire.commit", "expire.committed"])
def test_a_sweeper_killed_in_the_middle_of_its_duty_leaves_the_duty_to_the_next(arena, keyed_meter, moment):
    """A worker died, and then the one that was burying it."""
    subject = accepted(arena)
    for point in ("stage.committed", moment):
        victim = actor.Process(actor.Part(arena.url, keyed_meter.base_url, at=point)).go()
        victim.expect("at")
        victim.dies()
        bury(arena)
    with worker(arena, keyed_meter) as engine:
        engine.run_until_idle()
    check_whole(arena, keyed_meter, subject)
    assert keyed_meter.totals().excess == 0


def once(point, harm):
    """A handler that does harm the first time the point is met."""
    left = [point]

    def handler(met):
        if left and met == point:
            left.clear()
            harm()

    return handler


def test_a_server_that_cuts_every_session_before_a_commit_undoes_nothing_and_loses_nothing(
    pg_arena, keyed_meter, postgresql_url
):
    """All sessions end while a transaction stands before its commit, once for each sort of transaction."""
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    address = urlsplit(postgresql_url)

    def cut_all():
        with psycopg.connect(address._replace(path="/postgres").geturl(), autocommit=True) as server:
            server.execute(cut, [address.path.removeprefix("/")])

    for point in COMMITS:
        subject = accepted(pg_arena, point)
        with worker(pg_arena, keyed_meter) as engine, faults.armed(once(point, cut_all)):
            engine.run_until_idle()
        check_whole(pg_arena, keyed_meter, subject, point)
    assert keyed_meter.totals().excess == 0
    assert pg_arena.largest("tasks", "attempts") == 0


def test_a_lost_answer_to_any_commit_has_the_effect_of_one_commit(arena, keyed_meter):
    """The commit happened and its answer is lost: the second try recognises the first, for each sort."""

    def lose():
        raise exc.OperationalError(
            "COMMIT", None, OSError("the answer was lost"), connection_invalidated=True
        )

    for point in COMMITTED:
        subject = accepted(arena, point)
        with worker(arena, keyed_meter) as engine, faults.armed(once(point, lose)):
            engine.run_until_idle(patience=10.0)
        check_whole(arena, keyed_meter, subject, point)
        claimed = [row.epoch for row in arena.rows("journal", verb="claim", head_id=arena.head(subject).id)]
        assert claimed == [1, 1, 1], point
    assert keyed_meter.totals().excess == 0
    assert keyed_meter.totals().replays == 0


class Wire:
    """Stands between a client and PostgreSQL, and swallows the answer to every other COMMIT."""

    def __init__(self, address):
        self._server = (address.hostname, address.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.commits = self.lost = 0
        self._lock = threading.Lock()
        self._threads = []
        self._spawn(self._accept)

    def _spawn(self, target, *args):
        self._threads.append(threading.Thread(target=target, args=args, daemon=True))
        self._threads[-1].start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._server)
                cut = threading.Event()
                self._spawn(self._carry, near, far, True, cut)
                self._spawn(self._carry, far, near, False, cut)

    def _carry(self, source, target, sends, cut):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if sends and b"COMMIT\0" in data and self._swallows():
                    cut.set()
                if not sends and cut.is_set():
                    break  # the server has done it; nobody will hear of it
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()

    def _swallows(self):
        with self._lock:
            self.commits += 1
            self.lost += self.commits % 2
            return self.commits % 2 == 1

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(20)


def test_a_network_that_swallows_every_other_answer_to_a_commit_loses_and_doubles_nothing(
    pg_arena, keyed_meter, postgresql_url
):
    """The bytes of COMMIT reach the server and its answer never comes back: a whole run on such a wire."""
    address = urlsplit(postgresql_url)
    with closing(Wire(address)) as wire:
        user = address.netloc.rpartition("@")[0]
        url = address._replace(netloc=f"{user}@127.0.0.1:{wire.port}").geturl()
        subject = accepted(pg_arena)
        with worker(pg_arena, keyed_meter, url=url) as engine:
            engine.run_until_idle()
    assert wire.lost > 10
    check_whole(pg_arena, keyed_meter, subject)
    assert keyed_meter.totals().excess == 0
    claimed = [row.epoch for row in pg_arena.rows("journal", verb="claim")]
    assert claimed == [1, 1, 1]


def test_a_run_left_without_an_open_task_is_ended_by_the_sweep(arena):
    """Whatever took its tasks away, a live run does not stay so for ever."""
    claim = arena.taken()
    arena.set("tasks", {"state": "closed"}, id=claim.task_id)
    assert duties.mend_stranded(arena.db, lambda _kind: False) == 1
    assert arena.head().status is Status.FAILED
    assert arena.status(claim.run_id) == "failed"
    assert arena.ask().disposition is Disposition.ACCEPTED


class Witness(wakeups.Recorder):
    """A sender that looks, from a connection of its own, whether there is anything to be woken for."""

    def __init__(self, arena):
        super().__init__()
        self._arena, self.due = arena, []

    def wake(self, lane):
        """Note how many tasks another process would find now."""
        super().wake(lane)
        self.due.append(self._arena.count("tasks", state="queued"))


def test_nobody_is_woken_before_the_work_can_be_seen(arena, keyed_meter):
    """Each wake-up comes after its commit: whoever it wakes finds the task from another connection."""
    witness = Witness(arena)
    part = actor.Part(arena.url, keyed_meter.base_url)
    with closing(actor.client(part)) as provider:
        engine = actor.engine(part, provider, sender=witness)
        engine.request(Ask(kind="index", subject=SUBJECT, options={"slices": [["one"], ["two"]]}))
        assert witness.due == [1]
        engine.work_off(most=1)
        assert witness.due[1:] == [2, 2]
        engine.db.close()


def test_a_broker_that_loses_every_message_only_delays(arena, keyed_meter):
    """No wake-up ever arrives; the sweep finds what is due and says so."""
    subject = accepted(arena)
    with worker(arena, keyed_meter) as engine:
        swept = engine.sweep()
        assert swept.due == {"bulk": 1}
        engine.run_until_idle()
    check_whole(arena, keyed_meter, subject)
