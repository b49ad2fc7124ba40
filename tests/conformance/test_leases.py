"""Whoever keeps the leases, these hold: in the database on both dialects, and in Redis."""

import dataclasses
import importlib.util
import itertools
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from holdfast.core import decide
from holdfast.core.errors import BadRequestError
from holdfast.core.records import Ask, Claim, Landed, Skipped
from holdfast.core.states import Lane, Skip
from holdfast.leases import base
from holdfast.leases import redis as redis_leases
from holdfast.leases.sql import SqlLeases
from holdfast.store.base.schema import tasks
from holdfast.store.features import open_database
from holdfast.store.protocol import claims, duties, requests

LONG, SHORT = 60.0, 0.3
RULES = claims.LockHeld(attempt_cap=9)


def terms(ttl):
    return base.LeaseTerms(ttl, renew_every=ttl / 3, margin=ttl / 4)


def eventually(predicate, seconds=10.0):
    """Poll until the server says so; the deadline only ends a test that fails."""
    deadline = time.monotonic() + seconds
    while not predicate():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


class Bench:
    """One database, one keeper of leases, and the few moves of the stories below."""

    def __init__(self, db, keep, nowhere):
        self.db, self.keep, self.nowhere = db, keep, nowhere
        self.numbers = itertools.count(1)

    def leases(self, ttl=LONG):
        return self.keep(terms(ttl))

    def queue(self):
        ask = Ask(kind="index", subject=f"document:{next(self.numbers)}")
        assert requests.request(self.db, ask, run_id=self.db.token(), patience=decide.SilenceLimits()).created

    def claim(self, leases, owner="worker"):
        """The only queued task, claimed and leased."""
        claim = claims.claim_best(
            self.db,
            lanes=list(Lane),
            pipelines=[""],
            owner=owner,
            token=self.db.token(),
            ttl=leases.terms.ttl,
        )
        assert claim is None or leases.open(claim)
        return claim

    def take(self, leases):
        self.queue()
        return self.claim(leases)

    def let_go(self, leases, claim):
        outcome = claims.release(self.db, claim, "test")
        leases.close(claim)
        return outcome

    def sweep(self, leases):
        """True when the sweep found a lease that had run out."""
        return bool(duties.expire(self.db, cap=9, alive=None if leases.kept_in_database else leases.alive))


def alive(leases, claim):
    return leases.alive([(claim.task_id, claim.token)]) == {claim.task_id}


@pytest.fixture
def closed_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def opened(closed_port):
    """Databases by address, closed afterwards."""
    items = []

    def database(url, **options):
        items.append(open_database(url, **options))
        return items[-1]

    yield database
    for db in items:
        db.close()


@pytest.fixture
def redis_bench(opened, sqlite_url, redis_url, closed_port):
    db = opened(sqlite_url)
    client = redis_leases.connect(redis_url)
    far = redis_leases.connect(f"redis://127.0.0.1:{closed_port}")
    yield Bench(
        db,
        lambda wanted: redis_leases.RedisLeases(client, wanted),
        lambda: redis_leases.RedisLeases(far, terms(LONG)),
    )
    client.close()
    far.close()


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgresql", marks=pytest.mark.postgresql),
        "redis",
    ]
)
def bench(request, opened, tmp_path, closed_port):
    if request.param == "redis":
        return request.getfixturevalue("redis_bench")
    db = opened(request.getfixturevalue(f"{request.param}_url"))
    far = {
        "sqlite": f"sqlite:///{tmp_path}/no/such/folder/holdfast.db",
        "postgresql": f"postgresql://nobody@127.0.0.1:{closed_port}/none",
    }[request.param]
    return Bench(
        db, lambda wanted: SqlLeases(db, wanted), lambda: SqlLeases(opened(far, patience=0.0), terms(LONG))
    )


@pytest.mark.g7
def test_a_lease_that_nobody_renews_runs_out_and_one_that_is_renewed_does_not(bench):
    """When a lease of the same length has run out, the one that was renewed still lives."""
    short, long = bench.leases(1.0), bench.leases(LONG)
    saved = bench.take(short)
    assert long.renew(saved)
    forgotten = bench.take(short)
    eventually(lambda: not alive(short, forgotten))
    assert alive(short, saved)


@pytest.mark.g2
def test_a_renewal_after_expiry_does_not_re_acquire(bench):
    """Once run out, a lease is gone for good, even while nobody else wants the task."""
    leases = bench.leases(SHORT)
    claim = bench.take(leases)
    eventually(lambda: not alive(leases, claim))
    assert not leases.renew(claim)
    assert not alive(leases, claim)


def test_a_renewal_after_letting_go_does_not_re_acquire(bench):
    """Who let go of a task cannot renew it, and the next claim gets a lease of its own."""
    leases = bench.leases()
    first = bench.take(leases)
    assert bench.let_go(leases, first) == Landed()
    assert not leases.renew(first)
    assert not alive(leases, first)
    second = bench.claim(leases)
    assert (second.task_id, second.epoch) == (first.task_id, first.epoch + 2)
    assert alive(leases, second)


@pytest.fixture
def taken_over(bench):
    """A holder whose lease ran out, and its successor: (leases, old, new)."""
    short, long = bench.leases(SHORT), bench.leases(LONG)
    old = bench.take(short)
    eventually(lambda: bench.sweep(short))
    return long, old, bench.claim(long, owner="successor")


@pytest.mark.g2
def test_a_renewal_after_another_took_over_changes_nothing(taken_over):
    """The thawed holder is told that it lost; the successor's lease is as it was."""
    leases, old, new = taken_over
    assert not leases.renew(old)
    assert not alive(leases, old)
    assert alive(leases, new)
    assert leases.renew(new)


@pytest.mark.g2
def test_letting_go_ends_only_the_lease_of_its_owner(bench, taken_over):
    """A thawed holder that lets go does not let go of its successor's lease."""
    leases, old, new = taken_over
    assert bench.let_go(leases, old) != Landed()
    assert alive(leases, new)
    assert leases.renew(new)


def test_closing_before_letting_go_leaves_the_row_to_its_holder(bench):
    """Closing says nothing to the task row: its holder may still release it."""
    leases = bench.leases()
    claim = bench.take(leases)
    leases.close(claim)
    assert claims.release(bench.db, claim, "test") == Landed()


def test_a_lease_lives_only_under_its_very_token(bench):
    """Neither another token nor another task's token makes a task look alive."""
    leases = bench.leases()
    one, two = bench.take(leases), bench.take(leases)
    assert leases.alive([(one.task_id, one.token), (two.task_id, two.token)]) == {one.task_id, two.task_id}
    assert leases.alive([(one.task_id, two.token), (two.task_id, one.token)]) == set()
    assert leases.alive([(one.task_id, "other"), (two.task_id, two.token)]) == {two.task_id}
    assert leases.alive([(987654, one.token)]) == set()
    assert leases.alive([]) == set()


@pytest.mark.g7
@pytest.mark.parametrize("skew", [-1e8, 1e8])
def test_a_wrong_local_clock_neither_ends_nor_prolongs_a_lease(bench, monkeypatch, skew):
    """Three years fast or slow: a long lease lives on, a short one runs out, by the server's clock."""
    monkeypatch.setattr(time, "time", lambda real=time.time: real() + skew)
    short, long = bench.leases(SHORT), bench.leases(LONG)
    saved, lost = bench.take(long), bench.take(short)
    eventually(lambda: not alive(short, lost))
    assert not short.renew(lost)
    assert alive(long, saved)
    assert long.renew(saved)


@pytest.mark.g2
def test_the_holder_stops_believing_before_the_server_stops_granting(bench):
    """When the trust window of a claim ends, its lease still lives; so no instant has two believers."""
    leases = bench.keep(base.LeaseTerms(3.0, renew_every=0.2, margin=2.7))
    sent_at = time.monotonic()
    claim = bench.take(leases)
    eventually(lambda: time.monotonic() >= leases.terms.trusted_until(sent_at))
    assert alive(leases, claim)
    assert not bench.sweep(leases)


@pytest.mark.g1
def test_of_two_claimers_at_once_one_wins(bench):
    """Two workers reach for one task at the same moment: one holds it with a lease, the other has nothing."""
    leases = bench.leases()
    for _ in range(5):
        bench.queue()
        gate = threading.Barrier(2)

        def reach(owner, gate=gate):
            gate.wait(timeout=10)
            return bench.claim(leases, owner)

        with ThreadPoolExecutor(2) as pool:
            winners = [claim for claim in pool.map(reach, ["one", "two"]) if claim is not None]
        assert [alive(leases, claim) for claim in winners] == [True]


def test_a_keeper_that_is_away_is_an_error_not_an_answer(bench):
    """No answer is neither "lost" nor "renewed": the holder may trust what it had, and no longer."""
    claim = bench.take(bench.leases())
    away = bench.nowhere()
    with pytest.raises(base.LeaseBackendError) as caught:
        away.renew(claim)
    assert caught.value.code == "lease_backend_unavailable"
    with pytest.raises(base.LeaseBackendError):
        away.alive([(claim.task_id, claim.token)])


@pytest.mark.parametrize(
    "wrong",
    [(12, 6, 2), (12, 7, 2), (12, 0, 2), (12, -1, 2), (12, 4, 0), (12, 4, 12), (12, 4, -1), (0, 0, 0)],
)
def test_terms_that_could_not_keep_a_lease_are_refused(wrong):
    """A lease needs two renewals in its time, and a margin inside it."""
    with pytest.raises(BadRequestError) as caught:
        base.LeaseTerms(*wrong)
    assert caught.value.code == "bad_lease_terms"


@pytest.mark.parametrize("known", [base.DATABASE_TERMS, base.REDIS_TERMS])
def test_the_default_terms_renew_twice_while_trusted(known):
    """One renewal may be lost without the holder having to stop."""
    assert known.trusted_until(100.0) == 100.0 + known.ttl - known.margin
    assert 2 * known.renew_every <= known.trusted_until(0.0) < known.ttl


class TestRedisOnly:
    """What the rows of a database give for nothing, and Redis has to be asked for."""

    def test_a_claim_of_the_same_or_an_older_epoch_does_not_open_over_another(self, redis_bench):
        """The first to open has it; a claimer that was frozen before `open` comes too late."""
        leases = redis_bench.leases()
        claim = dataclasses.replace(redis_bench.take(leases), task_id=77, epoch=5)
        assert leases.open(claim)
        assert not leases.open(dataclasses.replace(claim, token="other"))
        assert not leases.open(dataclasses.replace(claim, token="other", epoch=4))
        assert alive(leases, claim)

    def test_a_newer_claim_opens_over_the_key_of_an_older_one(self, redis_bench):
        """A holder that died between letting go and closing does not shut out its successor."""
        leases = redis_bench.leases()
        old = redis_bench.take(leases)
        claims.release(redis_bench.db, old, "test")
        new = redis_bench.claim(leases)
        leases.close(old)
        assert not leases.renew(old)
        assert alive(leases, new)

    def test_opening_again_after_a_lost_answer_is_harmless(self, redis_bench):
        """The same claim may open twice; it is one lease."""
        leases = redis_bench.leases()
        claim = redis_bench.take(leases)
        assert leases.open(claim)
        leases.close(claim)
        assert not alive(leases, claim)

    def test_a_server_that_forgot_its_scripts_is_taught_again(self, redis_bench, redis_url):
        """SCRIPT FLUSH, a restart or another server behind the same name costs one more round trip."""
        leases = redis_bench.leases()
        claim = redis_bench.take(leases)
        redis_leases.connect(redis_url).script_flush()
        assert leases.renew(claim)

    def test_a_server_that_forgot_a_lease_has_lost_it(self, redis_bench, redis_url):
        """After FLUSHDB a renewal answers no; it does not write the key again."""
        leases = redis_bench.leases()
        claim = redis_bench.take(leases)
        redis_leases.connect(redis_url).flushdb()
        assert not leases.renew(claim)
        assert not alive(leases, claim)

    def test_answers_as_text_are_understood(self, redis_bench, redis_url):
        """A client that decodes its answers may be handed in."""
        client = redis_leases.redis.Redis.from_url(redis_url, decode_responses=True)
        leases = redis_leases.RedisLeases(client, terms(LONG), prefix="other:")
        claim = redis_bench.take(leases)
        assert alive(leases, claim)
        assert not alive(redis_bench.leases(), claim)
        client.close()

    def test_without_the_client_the_message_says_what_to_install(self, monkeypatch):
        """The module can be imported; making leases says which extra is missing."""
        monkeypatch.setitem(sys.modules, "redis", None)
        spec = importlib.util.spec_from_file_location("leases_without_redis", redis_leases.__file__)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with pytest.raises(BadRequestError, match=r'pip install "holdfast\[redis\]"') as caught:
            module.RedisLeases("redis://localhost")
        assert caught.value.code == "driver_missing"


class TestBesideTheDatabase:
    """With the lease in Redis, the row's own lease runs out while the work goes on."""

    @pytest.fixture
    def outlived(self, redis_bench):
        """A claim whose database lease has run out and whose Redis lease lives: (leases, claim)."""
        leases = redis_bench.leases()
        redis_bench.queue()
        claim = claims.claim_best(
            redis_bench.db, lanes=[Lane.BULK], pipelines=[""], owner="one", token="one", ttl=0.05
        )
        assert leases.open(claim)
        by_row = SqlLeases(redis_bench.db)
        eventually(lambda: not alive(by_row, claim))
        return leases, claim

    def named(self, bench, claim, asked):
        return claims.claim_named(
            bench.db,
            claim.task_id,
            pipelines=[""],
            owner="two",
            token="two",
            ttl=LONG,
            rules=RULES,
            alive=asked,
        )

    @pytest.mark.g7
    def test_a_named_delivery_meets_lock_held_while_the_token_lives(self, redis_bench, outlived):
        """The database lease has run out, but the holder is alive: the delivery must not run."""
        leases, claim = outlived
        assert self.named(redis_bench, claim, leases.alive) == Skipped(Skip.LOCK_HELD, RULES.delay)
        assert not redis_bench.sweep(leases)

    def test_a_named_delivery_takes_over_once_the_token_is_dead(self, redis_bench, outlived):
        """Neither keeper knows the holder any more: the delivery claims over the expired lease."""
        leases, claim = outlived
        leases.close(claim)
        taken = self.named(redis_bench, claim, leases.alive)
        assert isinstance(taken, Claim)
        assert (taken.epoch, taken.token) == (claim.epoch + 1, "two")

    def test_a_sign_of_life_is_written_by_the_holder_only(self, redis_bench, outlived):
        """The holder's sign moves `signed_at`; that of anybody else does not."""
        _leases, claim = outlived
        query = select(tasks.c.signed_at).where(tasks.c.id == claim.task_id)
        signed_at = lambda: redis_bench.db.read(lambda tx: tx.one(query)).signed_at
        before = signed_at()
        claims.sign(redis_bench.db, dataclasses.replace(claim, token="other"))
        claims.sign(redis_bench.db, dataclasses.replace(claim, epoch=claim.epoch + 1))
        assert signed_at() == before
        claims.sign(redis_bench.db, claim)
        assert signed_at() > before
