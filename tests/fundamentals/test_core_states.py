"""The states, and every transition there is. What is not in this list does not exist."""

import pytest

from holdfast.core import states
from holdfast.core.states import CallState, Lane, Status, TaskState, Verb

# One line per verb: from (several, or) → to (several, if the rows decide).
EDGES = {
    "head": """
        request idle|queued|running|success|failed -> queued
        claim   queued|running -> running
        publish running -> success
        fail    queued|running -> failed
        cancel  queued|running -> idle|success
        delete  idle|queued|running|success|failed -> idle
    """,
    "run": """
        claim     queued|running -> running
        publish   running -> success
        fail      queued|running -> failed
        cancel    queued|running -> cancelled
        supersede queued|running -> superseded
        delete    queued|running -> superseded
    """,
    "task": """
        claim    queued|running|waiting -> running
        renew    running -> running
        release  running -> queued
        put_back running -> waiting
        expire   running -> queued|waiting
        fall_due waiting -> queued
        plan     running -> done
        finish   running -> done
        fail     running -> failed
        close    queued|running|waiting -> closed
    """,
    "call": """
        intend  void -> intent
        send    intent -> sent
        settle  in_doubt|parked|sent|void -> settled
        void    intent|sent|in_doubt -> void
        doubt   sent -> in_doubt
        resend  in_doubt -> sent
        park    in_doubt -> parked
        resolve parked|in_doubt -> in_doubt|void
    """,
}
STATES = {"head": Status, "run": Status, "task": TaskState, "call": CallState}
BIRTH = {"head": Status.IDLE, "run": Status.QUEUED, "task": TaskState.QUEUED, "call": CallState.INTENT}
# Statuses are shared by heads and runs; each has some that the other never shows.
NEVER = {"head": {Status.CANCELLED, Status.SUPERSEDED}, "run": {Status.IDLE}}
FINAL = {
    "head": set(),
    "run": states.ENDED,
    "task": {TaskState.DONE, TaskState.FAILED, TaskState.CLOSED},
    "call": {CallState.SETTLED},
}
MACHINES = sorted(EDGES)


def parse(what):
    """{(from, verb): {to, …}} of the list above."""
    result = {}
    for line in EDGES[what].strip().splitlines():
        verb, sources, _arrow, targets = line.split()
        result |= {(source, verb): set(targets.split("|")) for source in sources.split("|")}
    return result


@pytest.mark.parametrize("what", MACHINES)
def test_every_transition_is_in_the_list_and_nothing_else(what):
    """The table of the code and the list above are the same."""
    table = {
        (str(state), str(verb)): set(map(str, to)) for (state, verb), to in states.TRANSITIONS[what].items()
    }
    assert table == parse(what)


@pytest.mark.parametrize("what", MACHINES)
def test_may_and_sources_say_what_the_list_says(what):
    """`may` answers for every state and verb; `sources` gathers the same answer, sorted."""
    known = parse(what)
    for verb in Verb:
        allowed = [state for state in STATES[what] if states.may(what, state, verb)]
        assert set(allowed) == {state for state, name in known if name == verb}
        assert states.sources(what, verb) == tuple(sorted(allowed))


@pytest.mark.parametrize("what", MACHINES)
def test_every_state_can_be_reached_and_every_end_is_an_end(what):
    """From birth, verbs lead to each state; from the final ones no verb leads on."""
    reached, edges = {BIRTH[what]}, states.TRANSITIONS[what]
    for _ in STATES[what]:
        reached |= {target for (state, _verb), to in edges.items() if state in reached for target in to}
    assert reached == set(STATES[what]) - NEVER.get(what, set())
    assert {state for state in reached if not any(source is state for source, _verb in edges)} == FINAL[what]


@pytest.mark.g1
def test_a_run_that_ended_never_lives_again():
    """No verb leads from an ended status anywhere, nor from a live one back to the queue."""
    assert {state for state, _verb in states.RUN} == states.LIVE
    assert all(Status.QUEUED not in to for to in states.RUN.values())


@pytest.mark.g5
def test_a_settled_call_stays_settled_and_only_unsettled_ones_hold_money():
    """What was paid for is kept; everything that may still cost is counted as reserved."""
    assert all(state is not CallState.SETTLED for state, _verb in states.CALL)
    assert set(CallState) - states.UNSETTLED == {CallState.SETTLED, CallState.VOID}


def test_live_ended_and_idle_are_all_there_is():
    """Every status is exactly one of: live, ended, idle."""
    assert states.LIVE | states.ENDED | {Status.IDLE} == set(Status)
    assert not states.LIVE & states.ENDED


def test_lanes_are_served_in_the_order_of_their_definition():
    """interactive, then bulk, then follow-up."""
    assert sorted(Lane, key=lambda lane: states.LANE_RANK[lane]) == ["interactive", "bulk", "follow-up"]


@pytest.mark.parametrize(
    ("kind", "status", "word"),
    [
        ("index", Status.IDLE, "not_indexed"),
        ("index", Status.RUNNING, "indexing"),
        ("index", Status.SUCCESS, "success"),
        ("qa", Status.IDLE, "idle"),
        ("qa", Status.RUNNING, "running"),
    ],
)
def test_people_are_shown_the_word_that_fits_the_kind(kind, status, word):
    """A document is being *indexed*; any other work is *running*."""
    assert states.shown(kind, status) == word
