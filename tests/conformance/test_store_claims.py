"""Claim, renew, release, put back: who should be working, in which order."""

import pytest
from hypothesis import HealthCheck, given, settings, strategies
from sqlalchemy import insert, select

from holdfast.core.records import Claim, Fenced, Landed, Skipped, Slice, Spent
from holdfast.core.states import Lane, Skip, Status, TaskState
from holdfast.store.base.schema import heads, orders, runs, tasks, turns
from holdfast.store.protocol import claims, duties, requests
from holdfast.store.protocol import tasks as fenced
from tests import fairness

RULES = claims.LockHeld(attempt_cap=3, delay=15.0, times=2)
HELD = {"pipelines": [""], "owner": "other", "ttl": 60.0, "rules": RULES}


def named(world, claim, token="t2", **changes):
    return claims.claim_named(world.db, claim.task_id, token=token, **{**HELD, **changes})


def test_a_claim_moves_task_run_and_head_to_running(world):
    """The first claim of a run starts it; the claim carries what was asked for."""
    claim = world.start(options={"size": 3})
    task = world.task(claim)
    assert (task.state, task.epoch, task.token, task.owner) == (TaskState.RUNNING, 1, claim.token, "worker")
    assert (claim.content, claim.options, claim.generation) == ("a", {"size": 3}, 1)
    assert world.head().status is Status.RUNNING
    assert world.row(select(runs.c.started_at)).started_at is not None


@pytest.mark.g2
def test_two_claims_never_hold_the_same_task(world):
    """What is held is not due: the second worker finds nothing."""
    world.start()
    assert world.claim() is None


def test_a_worker_claims_only_its_lanes_and_pipelines(world):
    """Another lane's task and a pipeline this worker does not know are left alone."""
    world.request(lane=Lane.INTERACTIVE)
    world.request(subject="document:2", pipeline="v2")
    assert world.claim(lanes=(Lane.BULK,)) is None
    assert world.claim(lanes=(Lane.INTERACTIVE,)) is not None


POPULATION = strategies.lists(
    strategies.tuples(
        strategies.sampled_from(list(Lane)),
        strategies.sampled_from(["ann", "bob", "cid"]),
        strategies.integers(0, 2),
        strategies.integers(1, 5),
    ),
    max_size=9,
)
LANES = strategies.sets(strategies.sampled_from(list(Lane)), min_size=1)
SERVED = strategies.dictionaries(
    strategies.tuples(strategies.sampled_from(list(Lane)), strategies.sampled_from(["ann", "bob", "cid"])),
    strategies.integers(1, 5).map(float),
)


def settle_down(world, population, served):
    """Queued tasks of running runs, as the population says."""

    def body(tx):
        for number, (lane, tenant, priority, age) in enumerate(population):
            common = {
                "tenant": tenant,
                "generation": 1,
                "lane": lane.value,
                "priority": priority,
                "pipeline": "",
            }
            head = {"kind": "index", "subject": f"document:{number}"}
            status = {"status": "running", "run_id": str(number), "fingerprint": "", "updated_at": 0.0}
            created = (
                insert(heads).values(tenant=tenant, generation=1, **head, **status).returning(heads.c.id)
            )
            ids = {"head_id": tx.one(created).id}
            rest = {"disposition": "accepted", "reason": "", "actor": "", "content": "", "options": {}}
            run = {"id": str(number), "status": "running", "queued_at": 0.0}
            tx.execute(insert(runs).values(**common, **head, **ids, **rest, **run))
            task = {"run_id": str(number), "ordinal": 0, "payload": {}, "state": "queued", "due_at": 0.0}
            tx.execute(insert(tasks).values(**common, **ids, **task, age=float(age)))
        for lane, tenant in {(lane, tenant) for lane, tenant, _, _ in population}:
            values = {"lane": lane.value, "tenant": tenant, "last_served": served.get((lane, tenant), 0.0)}
            tx.execute(insert(turns).values(**values))

    world.db.write("by_hand", body)


def expected(world, lanes):
    """What the rule would serve next, given the tables as they are."""
    queued = world.rows(select(tasks).where(tasks.c.state == "queued"))
    waiting = [fairness.Waiting(row.id, row.lane, row.tenant, row.priority, row.age) for row in queued]
    served = {(row.lane, row.tenant): row.last_served for row in world.rows(select(turns))}
    best = fairness.best(waiting, served, lanes)
    return best.task_id if best else None


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    population=POPULATION,
    served=SERVED,
    lanes=strategies.sets(strategies.sampled_from(list(Lane)), min_size=1),
)
def test_the_order_of_service_is_the_rule(world, population, served, lanes):
    """Claim after claim, the store serves exactly what the rule says."""
    world.wipe()
    settle_down(world, population, served)
    while (task_id := expected(world, lanes)) is not None:
        assert world.claim(lanes=tuple(lanes)).task_id == task_id
    assert world.claim(lanes=tuple(lanes)) is None


@pytest.mark.g7
def test_a_renewal_extends_a_living_lease(world):
    """The lease now runs for the new time from now."""
    claim = world.start()
    assert claims.renew(world.db, claim, 600.0)
    assert world.task(claim).lease_until > claim.lease_until + 500


@pytest.mark.g2
@pytest.mark.parametrize("lost", ["expired", "released", "taken", "superseded", "done"])
def test_a_renewal_never_reacquires(world, lost):
    """Once the lease is gone, for whatever reason, renewing it changes nothing."""
    claim = world.start()
    if lost == "expired":
        world.lapse(claim)
    elif lost == "released":
        claims.release(world.db, claim, "drain")
    elif lost == "taken":
        claims.release(world.db, claim, "drain")
        world.claim()
    elif lost == "superseded":
        world.request(content="b")
    else:
        fenced.finish(world.db, claim, spent=Spent())
    before = world.task(claim)
    assert not claims.renew(world.db, claim, 600.0)
    assert world.task(claim) == before


@pytest.mark.g7
def test_a_released_task_is_due_at_once_and_counts_no_attempt(world):
    """Another worker continues with the next epoch."""
    claim = world.start()
    assert claims.release(world.db, claim, "drain") == Landed()
    again = world.claim(owner="next")
    assert (again.task_id, again.epoch, again.attempts) == (claim.task_id, claim.epoch + 2, 0)


@pytest.mark.g2
@pytest.mark.parametrize("move", ["release", "put_back"])
def test_whoever_lost_the_task_cannot_hand_it_back(world, move):
    """A stale holder's release does not touch the new holder's task."""
    stale = world.start()
    world.lapse(stale)
    duties.expire(world.db, cap=3)
    world.claim(owner="next")
    before = world.task(stale)
    if move == "release":
        outcome = claims.release(world.db, stale, "drain")
    else:
        outcome = claims.put_back(world.db, stale, reason="rate", delay=1.0)
    assert outcome == Fenced("stale_epoch")
    assert world.task(stale) == before


@pytest.mark.g4
def test_a_task_that_was_put_back_falls_due_when_its_wait_is_over(world):
    """Until then nobody can claim it; then it is queued again and no attempt was counted."""
    claim = world.start()
    assert claims.put_back(world.db, claim, reason="rate", delay=60.0) == Landed()
    waiting = world.task(claim)
    assert (waiting.state, waiting.waiting_for) == (TaskState.WAITING, "rate")
    assert duties.fall_due(world.db) == {}
    assert world.claim() is None
    world.set_task(claim, due_at=1.0)
    assert duties.fall_due(world.db) == {Lane.BULK: 1}
    assert world.claim().attempts == 0


def test_a_named_delivery_claims_its_own_task(world):
    """The message names the task: it is claimed whatever else is due."""
    world.request(lane=Lane.INTERACTIVE, subject="document:9")
    answer = world.request()
    task_id = world.row(select(tasks.c.id).where(tasks.c.run_id == answer.run_id)).id
    claim = claims.claim_named(world.db, task_id, token="t", **HELD)
    assert isinstance(claim, Claim)
    assert (claim.run_id, claim.epoch) == (answer.run_id, 1)


@pytest.mark.g6
@pytest.mark.parametrize(
    ("story", "reason"),
    [
        ("gone", Skip.UNKNOWN),
        ("held", Skip.LOCK_HELD),
        ("done", Skip.FINISHED),
        ("cancelled", Skip.CANCELLED),
        ("superseded", Skip.STALE_GENERATION),
        ("waiting", Skip.NOT_DUE),
        ("exhausted", Skip.EXHAUSTED),
        ("unsupported", Skip.UNSUPPORTED),
    ],
)
def test_a_delivery_that_must_not_run_is_skipped_with_its_reason(world, story, reason):
    """Nothing about the task's holder changes, and the journal says why."""
    claim = world.start()
    task_id = claim.task_id
    match story:
        case "gone":
            task_id = 999_999
        case "done":
            fenced.finish(world.db, claim, spent=Spent())
        case "cancelled":
            requests.cancel(world.db, claim.head_id)
        case "superseded":
            world.request(content="b")
        case "waiting":
            claims.put_back(world.db, claim, reason="rate", delay=60.0)
        case "exhausted":
            world.set_task(claim, lease_until=1.0, losses=19)
        case "unsupported":
            claims.release(world.db, claim, "drain")
    pipelines = ["v9"] if story == "unsupported" else [""]
    before = world.task(claim)
    skipped = claims.claim_named(world.db, task_id, token="t2", **{**HELD, "pipelines": pipelines})
    assert isinstance(skipped, Skipped)
    assert skipped.reason is reason
    after = world.task(claim)
    assert (after.state, after.epoch, after.token) == (before.state, before.epoch, before.token)
    assert story == "gone" or world.journal("skip") == [("skip", reason)]


def test_a_held_lock_is_looked_at_again_a_limited_number_of_times(world):
    """Due time and count are kept in the database; the live run is never marked failed."""
    claim = world.start()
    assert [named(world, claim, f"t{n}").retry_in for n in range(3)] == [15.0, 15.0, None]
    assert duties.look_again(world.db) == {}
    world.set_task(claim, look_again_at=1.0)
    assert duties.look_again(world.db) == {claim.task_id: claim.lane}
    assert duties.look_again(world.db) == {}
    assert world.head().status is Status.RUNNING


@pytest.mark.g7
def test_a_named_delivery_takes_over_an_expired_lease_and_counts_a_loss(world):
    """Nothing was done since the claim, so the loss of its holder counts."""
    claim = world.start()
    world.lapse(claim)
    taken = named(world, claim)
    assert (taken.epoch, taken.attempts, world.task(claim).losses) == (2, 0, 1)
    assert named(world, claim).epoch == 2  # the same token again is the same claim


@pytest.mark.g7
@pytest.mark.parametrize("shown", ["progress", "settled", "nothing"])
def test_only_a_loss_with_nothing_to_show_counts(world, shown):
    """Progress or a settled call since the claim makes it bad luck, not poison."""
    claim = world.start()
    if shown == "progress":
        fenced.advance(world.db, claim, fenced.Report(1, 2))
    if shown == "settled":
        settle_an_order(world, claim)
    world.lapse(claim)
    duties.expire(world.db, cap=3)
    assert (world.task(claim).attempts, world.task(claim).losses) == (0, 1 if shown == "nothing" else 0)


def settle_an_order(world, claim):
    text = dict.fromkeys(["provider", "endpoint", "model", "holder", "idempotency_key", "id"], "x")
    values = {"state": "settled", "call_keys": [], "weights": [], "body": b"", "keyed": True, "scopes": []}
    about = {"tenant": "default", "run_id": claim.run_id, "task_id": claim.task_id, "estimate": 0}
    times = {"created_at": 0.0, "deadline": 1.0, "deadline_at": 1.0, "settled_at": 9e9}
    world.write(insert(orders).values(**text, **values, **about, **times))


@pytest.mark.g1
def test_slices_of_a_superseded_run_are_not_claimable(world):
    """Whoever ends a run closes its tasks in that transaction, so a claim looks at the task alone."""
    plan = world.start()
    fenced.plan(world.db, plan, [Slice()] * 3, Spent())
    world.request(content="b")
    assert world.claim().generation == 2
    assert world.claim() is None
