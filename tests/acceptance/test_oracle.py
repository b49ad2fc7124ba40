"""The judge must be able to say no: each oracle is shown a world in which its promise was broken."""

import dataclasses

import pytest

from holdfast.chaos import kinds, oracle
from holdfast.chaos.evidence import Evidence
from holdfast.chaos.oracle import Kill, SentRequest
from holdfast.core.records import Ask, RequestResult
from holdfast.core.states import Disposition, Status
from holdfast.testing import meter_answers

ASK = Ask("paper", "document:1", "one", {"inputs": 1})
ACCEPTED = SentRequest(ASK, RequestResult(Disposition.ACCEPTED, "never_done", 1, "run", 1, Status.QUEUED))
DUPLICATE = SentRequest(ASK, RequestResult(Disposition.DUPLICATE, "in_progress", 1, "run", 1, Status.RUNNING))
[TEXT] = kinds.all_texts(ASK.content, ASK.options)
SEEN = kinds.chunk_text(TEXT, meter_answers.vector(kinds.MODEL, TEXT, oracle.DIMENSIONS))


def entry(number=1, key="key", **fields):
    shape = {"id": number, "client": "127.0.0.1:1", "idempotency_key": key, "endpoint": "embeddings"}
    shape |= {"model": kinds.MODEL, "inputs": (TEXT,), "charged": True, "arrived_at": 10.0}
    return shape | {"replied_at": 11.0, "cut": False} | fields


def run(**fields):
    shape = {"id": "run", "head_id": 1, "generation": 1, "status": "success"}
    return shape | {"error_code": None, "error_message": None} | fields


def order(**fields):
    shape = {"id": "order", "idempotency_key": "key", "doubts": 0, "state": "settled"}
    return shape | {"run_id": "run", "reason": None} | fields


def charge(send=1, sort="paid", *, cleared=False):
    return {"order_id": "order", "send": send, "sort": sort, "cleared": cleared}


def noted(number, verb, reason="due", **fields):
    shape = {"id": number, "at": float(number), "verb": verb, "reason": reason, "head_id": 1}
    return shape | {"run_id": "run", "task_id": 7, "epoch": number, "actor": "w1/1"} | fields


GOOD = Evidence(
    log=[entry()],
    runs=[run()],
    tasks=[{"id": 7, "run_id": "run", "state": "done", "owner": None}],
    chunks=[{"head_id": 1, "generation": 1, "slice": 0, "epoch": 1}],
    orders=[order()],
    charges=[charge()],
    journal=[noted(1, "claim")],
    visible={1: (1, (SEEN,))},
)


def but(**changes):
    return dataclasses.replace(GOOD, **changes)


def test_a_world_without_breach():
    """Nothing is said against a run that was accepted, paid once and published whole."""
    items = [ACCEPTED]
    assert not oracle.lost(GOOD, items)
    assert not oracle.wrong(GOOD, items)
    assert not oracle.overcharged(GOOD, exact=True)
    assert not oracle.unexplained(GOOD, items)
    assert not oracle.left_over(GOOD, {"holdfast.bulk": oracle.MOST_OUTSTANDING})


@pytest.mark.parametrize("runs", [[], [run(status="running")], [run(status="queued")]])
def test_a_lost_request(runs):
    """An accepted request without an ended run is lost."""
    assert oracle.lost(but(runs=runs), [ACCEPTED])


@pytest.mark.parametrize(
    "world",
    [
        but(runs=[run(status="failed", error_code="abandoned")]),
        but(visible={}),
        but(visible={1: (2, (SEEN,))}),
        but(visible={1: (1, ())}),
        but(visible={1: (1, (SEEN, SEEN))}),
        but(visible={1: (1, (f"{TEXT} of another price",))}),
        but(chunks=[{"head_id": 1, "generation": 1, "slice": 0, "epoch": epoch} for epoch in (1, 3)]),
    ],
    ids=["failed", "invisible", "other generation", "empty", "doubled", "other result", "two holders"],
)
def test_a_wrong_result(world):
    """A run that failed, and a reader who sees less, more or other than one whole generation, are noticed."""
    assert oracle.wrong(world, [ACCEPTED])


def test_a_failure_that_was_expected():
    """A run that had to fail with another code has not failed as it should."""
    world = but(runs=[run(status="failed", error_code="work_raised")], visible={})
    expected = dataclasses.replace(ACCEPTED, ends="failed", error="abandoned")
    assert oracle.wrong(world, [expected])


TWICE = [entry(), entry(2)]


@pytest.mark.parametrize(
    ("world", "exact"),
    [
        (but(log=TWICE, charges=[charge(), charge(2, "second")]), True),
        (but(log=TWICE, charges=[charge(), charge(2, "second")]), False),
        (but(log=TWICE, orders=[order(doubts=1)]), False),
        (
            but(log=TWICE, orders=[order(doubts=1)], charges=[charge(), charge(1, "in_doubt", cleared=True)]),
            False,
        ),
        (but(log=[entry(key="of somebody else")]), True),
        (but(charges=[]), True),
    ],
    ids=[
        "twice",
        "no doubt on record",
        "not in the bill",
        "doubt cleared",
        "unknown order",
        "free of charge",
    ],
)
def test_an_overcharge(world, exact):
    """A second charge without a doubt, a charge that the bill hides and one of no known order are noticed."""
    assert oracle.overcharged(world, exact=exact)


def test_a_second_charge_within_the_bound():
    """An order in doubt that was charged twice and is twice in the bill is within the bound of G5."""
    world = but(log=TWICE, orders=[order(doubts=1)], charges=[charge(2), charge(1, "in_doubt")])
    assert not oracle.overcharged(world, exact=False)
    assert oracle.overcharged(world, exact=True)


@pytest.mark.parametrize(
    ("log", "open_now"),
    [
        ([entry()], {1}),
        ([], {1}),
        ([entry(replied_at=None)], set()),
        ([entry(replied_at=None, inputs=())], {1}),
    ],
    ids=["answered before", "no log", "of another worker", "no order"],
)
def test_a_kill_that_proves_nothing(log, open_now):
    """A kill counts only if the meter had an order of the killed worker open at that moment."""
    kill = Kill(at=12.0, since_boot=12.0, worker="w1", held={}, open=open_now)
    assert oracle.unproven(log, [kill])
    assert not oracle.unproven([entry(replied_at=13.0)], [dataclasses.replace(kill, open={1})])


def test_a_recovery_that_never_came():
    """A task that nobody claimed after its holder was killed was not recovered."""
    kill = Kill(at=2.0, since_boot=2.0, worker="w1", held={7: 1})
    seconds, never = oracle.recoveries(GOOD, [kill])
    assert never
    assert not seconds


def test_a_recovery_that_came_late():
    """Recovery is counted from the kill to the next claim, and is late beyond its bound."""
    kill = Kill(at=2.0, since_boot=2.0, worker="w1", held={7: 1})
    world = but(journal=[noted(1, "claim"), noted(20, "claim", "over_expired")])
    seconds, never = oracle.recoveries(world, [kill])
    assert (seconds, never) == ([18.0], [])
    assert oracle.late(seconds, oracle.RECOVERED_WITHIN)
    assert not oracle.late([14.9], oracle.RECOVERED_WITHIN)


def test_a_refusal_without_a_reason():
    """Each refused request has its own line in the journal: one line for two refusals is not enough."""
    output = noted(2, "request", "duplicate:in_progress")
    world = but(journal=[*GOOD.journal, output])
    assert not oracle.unexplained(world, [ACCEPTED, DUPLICATE])
    assert oracle.unexplained(world, [ACCEPTED, DUPLICATE, DUPLICATE])
    assert oracle.unexplained(GOOD, [DUPLICATE])


def test_a_change_of_holder_without_a_reason():
    """A task that goes to another holder was let go or expired before; else two worked on it at once."""
    claims = [noted(1, "claim"), noted(3, "claim", actor="w2/2")]
    assert oracle.unexplained(but(journal=claims), [])
    assert not oracle.unexplained(but(journal=[*claims, noted(2, "release")]), [])


@pytest.mark.parametrize(
    ("world", "outstanding"),
    [
        (but(tasks=[{"id": 7, "run_id": "run", "state": "running", "owner": "w1/1"}]), {}),
        (but(orders=[order(state="sent")]), {}),
        (but(orders=[order(state="in_doubt")]), {}),
        (GOOD, {"holdfast.bulk": oracle.MOST_OUTSTANDING + 1}),
    ],
    ids=["a lease", "an order sent", "an order in doubt", "wake-ups"],
)
def test_something_left_over(world, outstanding):
    """A lease or an order of ended work, and wake-ups beyond their bound, are left over."""
    assert oracle.left_over(world, outstanding)
