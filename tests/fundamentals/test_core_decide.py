"""Every decision as a table: what becomes of a request, a write, an expired lease and a delivery."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import decide
from holdfast.core.records import Ask, Claim, Fenced, Head, Landed, RunRecord, Task
from holdfast.core.states import (
    LIVE,
    CallState,
    Disposition,
    GoneBy,
    Lane,
    Loss,
    RelayState,
    Skip,
    Status,
    TaskState,
)

NOW = 1_000_000.0
PATIENCE = decide.SilenceLimits(queued=600.0, running=2700.0)
ASK = Ask(kind="index", subject="document:42", content="a", options={"size": 512}, pipeline="p1")
OTHER = dataclasses.replace(ASK, content="b")
QUIET = decide.Life(0.0, live_lease=False, last_sign_at=0.0)

HEAD = Head(
    id=1,
    tenant="default",
    kind="index",
    subject="document:42",
    collection=None,
    generation=3,
    status=Status.RUNNING,
    run_id="run",
    fingerprint=ASK.fingerprint,
    published_generation=2,
    visible=True,
    deleted=False,
)
RUN = RunRecord(
    id="run",
    head_id=1,
    tenant="default",
    kind="index",
    subject="document:42",
    generation=3,
    status=Status.RUNNING,
    disposition=Disposition.ACCEPTED,
    lane=Lane.BULK,
    priority=5,
    pipeline="p1",
    slices=2,
    queued_at=NOW - 1.0,
    started_at=NOW - 1.0,
    finished_at=None,
    error_code=None,
    error_message=None,
)
TASK = Task(
    id=7,
    run_id="run",
    head_id=1,
    generation=3,
    ordinal=1,
    state=TaskState.RUNNING,
    epoch=5,
    token="mine",
    owner="worker",
    lease_until=NOW + 10,
    attempts=0,
    due_at=0.0,
    waiting_for=None,
)
CLAIM = Claim(
    task_id=7,
    run_id="run",
    head_id=1,
    tenant="default",
    kind="index",
    subject="document:42",
    collection=None,
    generation=3,
    ordinal=1,
    epoch=5,
    token="mine",
    owner="worker",
    lane=Lane.BULK,
    priority=5,
    pipeline="p1",
    content="a",
    options={},
    payload={},
    attempts=0,
    lease_until=NOW + 10,
)


def asked(ask=ASK, head=HEAD, run=RUN, life=QUIET):
    verdict = decide.request(ask, head, run, life, PATIENCE, NOW)
    return str(verdict.disposition), verdict.reason


def ended(status):
    return dataclasses.replace(RUN, status=status)


def run_since(status, ago):
    return dataclasses.replace(RUN, status=status, queued_at=NOW - ago, started_at=NOW - ago)


@pytest.mark.g6
@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ({"head": None, "run": None}, ("accepted", "never_done")),
        ({"run": None}, ("accepted", "never_done")),
        ({}, ("duplicate", "in_progress")),
        ({"run": ended(Status.QUEUED)}, ("duplicate", "in_progress")),
        ({"run": ended(Status.SUCCESS)}, ("unchanged", "same_content_and_options")),
        ({"run": ended(Status.FAILED)}, ("accepted", "after_failed")),
        ({"run": ended(Status.CANCELLED)}, ("accepted", "after_cancelled")),
        ({"run": ended(Status.SUPERSEDED)}, ("accepted", "after_superseded")),
        ({"run": run_since(Status.QUEUED, 601)}, ("takeover", "stuck_queued")),
        ({"run": run_since(Status.RUNNING, 2701)}, ("takeover", "stuck_running")),
        ({"ask": dataclasses.replace(ASK, expect_generation=2)}, ("refused", "generation_mismatch")),
        ({"ask": dataclasses.replace(ASK, expect_generation=3)}, ("duplicate", "in_progress")),
    ],
)
def test_what_becomes_of_a_request(case, answer):
    """Each state of the work has one answer, with its reason."""
    assert asked(**case) == answer


@pytest.mark.g1
@pytest.mark.parametrize("status", [status for status in Status if status is not Status.IDLE])
def test_changed_content_wins_at_once_whatever_runs(status):
    """Compared with what was last requested: a change supersedes a fresh, a stuck and an ended run alike."""
    for run in (ended(status), run_since(status, 1e5)):
        assert asked(OTHER, run=run) == ("superseding", "changed")


@pytest.mark.parametrize(
    "change", [{"content": "b"}, {"options": {"size": 256}}, {"options": {}}, {"pipeline": "p2"}]
)
def test_content_options_and_pipeline_all_count_as_change(change):
    """Whatever changes what would be done is a change."""
    assert asked(dataclasses.replace(ASK, **change))[0] == "superseding"


@pytest.mark.parametrize(
    "change", [{"priority": 0}, {"lane": Lane.INTERACTIVE}, {"actor": "b"}, {"force": True}]
)
def test_urgency_and_asker_are_no_change(change):
    """Asking again, in more of a hurry, is a duplicate while the work runs; `force` does not restart it."""
    assert asked(dataclasses.replace(ASK, **change)) == ("duplicate", "in_progress")


def test_force_repeats_only_what_succeeded():
    """`force` overrides `unchanged`, and nothing else."""
    forced = dataclasses.replace(ASK, force=True)
    assert asked(forced, run=ended(Status.SUCCESS)) == ("accepted", "forced")
    assert asked(forced, run=ended(Status.FAILED)) == ("accepted", "after_failed")
    assert asked(dataclasses.replace(OTHER, force=True), run=ended(Status.SUCCESS)) == (
        "superseding",
        "changed",
    )


def test_a_deleted_subject_starts_afresh():
    """After a deletion the same content is new work, though its generation goes on counting."""
    deleted = dataclasses.replace(HEAD, deleted=True)
    assert asked(head=deleted, run=ended(Status.SUCCESS)) == ("accepted", "never_done")
    mismatch = dataclasses.replace(ASK, expect_generation=0)
    assert asked(mismatch, head=deleted, run=ended(Status.SUCCESS)) == ("refused", "generation_mismatch")


@pytest.mark.g1
@pytest.mark.parametrize("generation", [0, 1, 2, 3, 4])
def test_an_expected_generation_is_tested_before_anything_else(generation):
    """A wrong expectation is refused whatever else holds, a right one changes nothing; no head is 0."""
    expecting = dataclasses.replace(OTHER, expect_generation=generation, force=True)
    assert (asked(expecting)[0] == "refused") == (generation != 3)
    assert (asked(expecting, head=None, run=None)[0] == "refused") == (generation != 0)


@pytest.mark.g7
@pytest.mark.parametrize(
    ("run", "life", "stuck"),
    [
        # Queued: stuck only if the whole lane is silent.
        (run_since(Status.QUEUED, 600), QUIET, None),
        (run_since(Status.QUEUED, 601), QUIET, "stuck_queued"),
        (run_since(Status.QUEUED, 1e6), decide.Life(NOW - 600, live_lease=False, last_sign_at=0.0), None),
        (
            run_since(Status.QUEUED, 1e6),
            decide.Life(NOW - 601, live_lease=False, last_sign_at=0.0),
            "stuck_queued",
        ),
        (run_since(Status.QUEUED, 1e6), decide.Life(0.0, live_lease=False, last_sign_at=NOW - 600), None),
        # Running: a live lease, a sign, or a fresh start.
        (run_since(Status.RUNNING, 2700), QUIET, None),
        (run_since(Status.RUNNING, 2701), QUIET, "stuck_running"),
        (run_since(Status.RUNNING, 1e6), decide.Life(0.0, live_lease=True, last_sign_at=0.0), None),
        (run_since(Status.RUNNING, 1e6), decide.Life(0.0, live_lease=False, last_sign_at=NOW - 2700), None),
        (
            run_since(Status.RUNNING, 1e6),
            decide.Life(0.0, live_lease=False, last_sign_at=NOW - 2701),
            "stuck_running",
        ),
        # Another claim in the lane is no sign by itself; the store counts it while a slice is queued.
        (
            run_since(Status.RUNNING, 1e6),
            decide.Life(NOW, live_lease=False, last_sign_at=0.0),
            "stuck_running",
        ),
    ],
)
def test_only_silence_is_stuck(run, life, stuck):
    """A saturated lane, a live lease and a sign of any task are all alive."""
    assert decide.silence(run, life, PATIENCE, NOW) == stuck


@pytest.mark.parametrize("status", sorted(LIVE))
def test_a_wait_is_a_sign_of_life_for_ever(status):
    """Waiting for budget, rate or a person is told by the store as an endless sign."""
    waiting = decide.Life(math.inf, live_lease=True, last_sign_at=math.inf)
    assert asked(run=run_since(status, 1e6), life=waiting) == ("duplicate", "in_progress")


def test_a_running_run_without_a_start_counts_from_the_queue():
    """A missing start time is no reason to be taken over at once."""
    run = dataclasses.replace(RUN, started_at=None, queued_at=NOW - 5)
    assert decide.silence(run, QUIET, PATIENCE, NOW) is None


@pytest.mark.g2
@pytest.mark.parametrize(
    ("claim", "head", "status", "task", "reason"),
    [
        ({}, {}, Status.SUCCESS, {}, "run_success"),
        ({}, {}, Status.FAILED, {}, "run_failed"),
        ({}, {}, Status.CANCELLED, {}, "run_cancelled"),
        ({}, {}, Status.SUPERSEDED, {}, "run_superseded"),
        ({}, {"generation": 4}, Status.RUNNING, {}, "stale_generation"),
        ({"generation": 4}, {}, Status.RUNNING, {}, "stale_generation"),
        ({}, {}, Status.RUNNING, {"epoch": 6}, "stale_epoch"),
        ({"epoch": 6}, {}, Status.RUNNING, {}, "stale_epoch"),
        ({}, {}, Status.RUNNING, {"token": "theirs"}, "stale_epoch"),
        ({}, {}, Status.RUNNING, {"token": None}, "stale_epoch"),
        *(
            ({}, {}, Status.RUNNING, {"state": state}, f"task_{state}")
            for state in TaskState
            if state is not TaskState.RUNNING
        ),
    ],
)
def test_each_way_to_be_fenced_out(claim, head, status, task, reason):
    """One thing wrong is enough, and the first that is wrong is named."""
    verdict = decide.fence(
        dataclasses.replace(CLAIM, **claim),
        dataclasses.replace(HEAD, **head),
        status,
        dataclasses.replace(TASK, **task),
    )
    assert verdict == Fenced(reason)


@pytest.mark.g2
@pytest.mark.parametrize("status", sorted(LIVE))
def test_the_latest_holder_of_a_live_current_run_may_write(status):
    """Everything right is the only way to land; an expired lease alone is no reason to refuse."""
    stale_lease = dataclasses.replace(TASK, lease_until=0.0)
    assert decide.fence(CLAIM, HEAD, status, stale_lease) == Landed()


def lost(loss, attempts=0, losses=0, *, advanced=False, only_waited=False):
    return decide.expire(decide.Lost(loss, attempts, losses, advanced, only_waited), decide.Caps(3, 20))


@pytest.mark.parametrize("loss", [Loss.PROCESS_DIED, Loss.OVERRAN])
def test_the_death_of_the_one_process_that_ran_it_is_an_attempt(loss):
    """The third with nothing to show for it abandons the run; losses of whole workers do not count along."""
    assert lost(loss, 0, 19) == decide.Expiry(1, 19)
    assert lost(loss, 1) == decide.Expiry(2, 0)
    assert lost(loss, 2) == decide.Expiry(3, 0, abandoned=True)


@pytest.mark.parametrize("loss", [Loss.LEASE_EXPIRED, Loss.WORKER_DIED])
def test_the_loss_of_a_whole_worker_says_little(loss):
    """The first three cost no wait, the next ones a growing one, and only the twentieth in a row ends it."""
    waits = [lost(loss, 2, losses).delay for losses in range(19)]
    assert waits == [0.0, 0.0, 0.0, 2.0, 4.0, 8.0, 16.0, 32.0, *[60.0] * 11]
    assert [lost(loss, 2, losses).abandoned for losses in (18, 19)] == [False, True]
    assert lost(loss, 2, 5).attempts == 2


@pytest.mark.parametrize("loss", list(Loss))
def test_progress_makes_it_bad_luck_and_a_mere_wait_says_nothing(loss):
    """Whoever settled or advanced something shows that the task is sound; whoever only waited, nothing."""
    assert lost(loss, 2, 19, advanced=True) == decide.Expiry(2, 0)
    assert lost(loss, 2, 19, only_waited=True) == decide.Expiry(2, 19)


@pytest.mark.g4
@given(st.lists(st.tuples(st.sampled_from(Loss), st.booleans()), max_size=60), st.integers(1, 10))
def test_a_task_that_dies_for_ever_is_abandoned_after_cap_barren_deaths(deaths, cap):
    """However losses with and without progress are mixed, the cap of either sort ends it, and none before."""
    attempts = losses = 0
    for loss, advanced in deaths:
        expiry = decide.expire(decide.Lost(loss, attempts, losses, advanced), decide.Caps(cap, 2 * cap))
        mine = loss in {Loss.PROCESS_DIED, Loss.OVERRAN}
        attempts += mine and not advanced
        losses = 0 if advanced else losses + (not mine)
        assert (expiry.attempts, expiry.losses) == (attempts, losses)
        assert expiry.abandoned == (attempts >= cap or losses >= 2 * cap)
        if expiry.abandoned:
            return


WAITS = decide.RivalWaits(settle=30.0, silent=2.0)


def recovered(state=CallState.SENT, **facts):
    order = {"keyed": False, "cheap": True, "held": False, "overdue": -60.0, "silence": -1.0}
    verdict = decide.recover(decide.Carriage(state, **order | facts), WAITS)
    return None if verdict is None else verdict.state


@pytest.mark.g5
@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({}, None),
        ({"keyed": True}, None),
        ({"overdue": 29.0}, None),
        ({"overdue": 31.0}, CallState.IN_DOUBT),
        ({"died": True}, CallState.IN_DOUBT),
        ({"silence": 1.0}, None),
        ({"silence": 3.0}, CallState.IN_DOUBT),
        ({"silence": 1.0, "keyed": True}, CallState.IN_DOUBT),
        ({"silence": 3.0, "cheap": False}, None),
        ({"silence": 3.0, "cheap": False, "overdue": 1.0}, CallState.IN_DOUBT),
        ({"silence": 3.0, "grace": True}, None),
        ({"overdue": 31.0, "grace": True}, None),
        ({"died": True, "grace": True}, CallState.IN_DOUBT),
        ({"silence": None, "held": False}, None),
        ({"silence": None, "held": False, "keyed": True}, CallState.IN_DOUBT),
        ({"silence": None, "held": True, "keyed": True}, None),
        ({"silence": None, "overdue": 31.0}, CallState.IN_DOUBT),
    ],
)
def test_a_sent_order_is_in_doubt_only_when_its_carrier_will_not_end_it(facts, state):
    """Alive: left alone, also after its task was let go of. Dead: at once. Silent: by key, price and time."""
    assert recovered(**facts) is state


@pytest.mark.g5
@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({"held": True}, None),
        ({"held": False}, CallState.VOID),
        ({"held": True, "overdue": 1.0}, CallState.VOID),
        ({"held": True, "died": True}, CallState.VOID),
        ({"held": True, "silence": 99.0, "grace": True}, None),
    ],
)
def test_an_unsent_order_is_void_when_nobody_may_send_it_any_more(facts, state):
    """Nothing was spent, so its keys are free at once."""
    assert recovered(CallState.INTENT, **facts) is state


@pytest.mark.parametrize("state", [CallState.SETTLED, CallState.VOID, CallState.IN_DOUBT, CallState.PARKED])
def test_an_order_that_has_ended_or_is_known_to_be_in_doubt_is_left_alone(state):
    """There is nothing to put right."""
    assert recovered(state, died=True, overdue=99.0) is None


def delivered(task, status=Status.RUNNING, current=3, alive=False, cap=3):
    result = dataclasses.replace(TASK, **task) if task is not None else None
    return decide.deliver(decide.NamedDelivery(result, status, current, alive, cap), NOW)


@pytest.mark.g6
@pytest.mark.parametrize(
    ("case", "skip"),
    [
        ({"task": None}, Skip.UNKNOWN),
        ({"task": {}, "status": Status.CANCELLED}, Skip.CANCELLED),
        ({"task": {}, "status": Status.CANCELLED, "current": 4}, Skip.CANCELLED),
        ({"task": {}, "current": 4}, Skip.STALE_GENERATION),
        ({"task": {}, "status": Status.SUPERSEDED}, Skip.STALE_GENERATION),
        ({"task": {}, "status": Status.SUCCESS}, Skip.FINISHED),
        ({"task": {}, "status": Status.FAILED}, Skip.FINISHED),
        ({"task": {"state": TaskState.DONE}}, Skip.FINISHED),
        ({"task": {"state": TaskState.FAILED}}, Skip.FINISHED),
        ({"task": {"state": TaskState.CLOSED}}, Skip.FINISHED),
        ({"task": {}, "alive": True}, Skip.LOCK_HELD),
        ({"task": {"attempts": 3}, "alive": True}, Skip.LOCK_HELD),
        ({"task": {"attempts": 3}}, Skip.EXHAUSTED),
        ({"task": {"state": TaskState.WAITING, "due_at": NOW + 1}}, Skip.NOT_DUE),
        ({"task": {"state": TaskState.WAITING, "due_at": NOW}}, None),
        ({"task": {"state": TaskState.QUEUED}}, None),
        ({"task": {"state": TaskState.QUEUED}, "status": Status.QUEUED}, None),
        ({"task": {"state": TaskState.QUEUED}, "alive": True}, None),
        ({"task": {}}, None),
        ({"task": {"attempts": 2}}, None),
    ],
)
def test_what_becomes_of_a_delivery_that_names_its_task(case, skip):
    """Each reason to skip, in order; what is due, or held by a dead worker, may be claimed."""
    assert delivered(**case) is skip


def test_unsupported_is_the_only_skip_that_the_worker_decides():
    """Every other reason can come from the decision table above."""
    assert set(Skip) - {Skip.UNSUPPORTED} == {
        Skip.UNKNOWN,
        Skip.CANCELLED,
        Skip.STALE_GENERATION,
        Skip.FINISHED,
        Skip.LOCK_HELD,
        Skip.EXHAUSTED,
        Skip.NOT_DUE,
    }


@pytest.mark.g3
@pytest.mark.parametrize(("visible", "status"), [(True, Status.SUCCESS), (False, Status.IDLE)])
def test_after_a_cancel_the_head_shows_what_is_published(visible, status):
    """What answered before goes on answering; if nothing did, nothing was done."""
    assert decide.after_cancel(dataclasses.replace(HEAD, visible=visible)) is status


@pytest.mark.g3
@pytest.mark.parametrize(
    ("others_open", "goes_on", "continuation"),
    [(True, False, "wait"), (True, True, "wait"), (False, True, "next_phase"), (False, False, "publish")],
)
def test_the_last_task_of_a_phase_decides_what_becomes_of_its_run(others_open, goes_on, continuation):
    """While another is open nothing does; then the next phase is planned, or the run is published."""
    assert decide.after_task(others_open=others_open, goes_on=goes_on) == continuation


@pytest.mark.parametrize(
    ("relay", "facts", "state"),
    [
        ("present", {"died": True, "held": False, "silence": 99.0, "keyed": True, "overdue": 59.0}, None),
        ("present", {"overdue": 61.0}, "in_doubt"),
        ("present", {"overdue": 61.0, "grace": True}, None),
        ("dead", {"grace": True}, "in_doubt"),
        ("lost", {"keyed": True}, "in_doubt"),
        ("lost", {"cheap": True}, "in_doubt"),
        ("lost", {"cheap": True, "grace": True}, None),
        ("lost", {"cheap": False, "overdue": -1.0}, None),
        ("lost", {"cheap": False, "overdue": 1.0}, "in_doubt"),
    ],
)
def test_an_order_that_a_relay_carries_is_judged_by_the_relay_alone(relay, facts, state):
    """Its worker may be dead, silent or gone: only the relay can still end it."""
    order = {"keyed": False, "cheap": False, "held": True, "overdue": -1.0, "silence": None}
    carriage = decide.Carriage(CallState.SENT, **order | facts, relay=decide.CarryingRelay(relay))
    verdict = decide.recover(carriage, WAITS)
    assert (verdict and verdict.state) == (state and CallState(state))


@pytest.mark.parametrize(
    ("state", "gone_by", "known"),
    [("up", None, "present"), ("draining", None, "present"), ("gone", "lease", "lost")]
    + [("gone", by, "dead") for by in ("lock", "itself")],
)
def test_a_relay_that_is_gone_is_dead_unless_only_its_lease_says_so(state, gone_by, known):
    """A lease cannot tell a dead relay from one that was frozen with the response in hand."""
    by = gone_by and GoneBy(gone_by)
    assert decide.relay_of(RelayState(state), by) is decide.CarryingRelay(known)


@pytest.mark.parametrize(
    ("facts", "burial"),
    [
        ({}, "leave"),
        ({"silence": 1.0}, "suspect"),
        ({"silence": 1.0, "suspected": 4.9}, "leave"),
        ({"silence": 1.0, "suspected": 5.0}, "bury"),
        ({"suspected": 99.0}, "leave"),
        ({"silence": 99.0, "suspected": 99.0, "grace": True}, "leave"),
        ({"proven": True, "grace": True}, "bury"),
    ],
)
def test_a_relay_is_buried_at_the_second_look_or_with_proof(facts, burial):
    """An expired lease alone says little: the renewal may be on its way."""
    usual = {"silence": -1.0, "suspected": None, "proven": False, "grace": False, "wait": 5.0}
    assert decide.bury(**usual | facts) is decide.Burial(burial)
