"""Eight processes serve the same requests at once, each dies at a point of its own: there is one winner."""

from collections import Counter

import pytest
from sqlalchemy import select, update

from holdfast import faults
from holdfast.core.states import Status
from holdfast.store.base.schema import documents, heads, idempotency, journal, runs
from tests.api import callers

pytestmark = [pytest.mark.g1, pytest.mark.g6, pytest.mark.chaos]

CROWD = callers.CROWD
# Where the winner is decided: the bytes, the document, the run.
ASKING = {"keep", "add_documents", "ask_document", "request"}


def passed(install):
    """Every fault point that the requests pass in peace, refused ones and repeated ones among them."""
    met = {}
    install.client.indexed("A job needs something that can be read.")
    with faults.armed(met.setdefault):
        for _ in range(2):
            for step in callers.STEPS:
                callers.ask(install.client, step, -1, f"peace-{step}")
        for step in callers.STEPS:
            callers.ask(install.client, step, -1, f"later-{step}")
    return list(met)


@pytest.mark.timeout(600)  # dozens of processes are started, however busy the machine is
@pytest.mark.parametrize("where", ["asking", "anywhere"])
def test_of_eight_who_ask_at_once_one_is_taken_whoever_dies(install, database_url, tmp_path, where):
    """One document and one run for the same bytes; whoever was refused was told of that run, and is in the
    journal; whoever was not answered asks again with the same key and is.
    """
    points = passed(install)
    verbs = {point.partition(".")[0] for point in points}
    assert {"begin_once", "settle_once", *ASKING} <= verbs
    if where == "asking":
        points = [point for point in points if point.partition(".")[0] in ASKING]
    deaths, heard = len(points), []
    points += points[: -len(points) % CROWD]
    for first in range(0, len(points), CROWD):
        go = callers.CONTEXT.Barrier(CROWD)
        some = [
            callers.Caller(database_url, tmp_path / "data", go, first + position, at)
            for position, at in enumerate(points[first : first + CROWD])
        ]
        heard += [(each.number, each.end()) for each in some]
    items = [
        (step, round_no, *answer) for _, answers in heard for step, round_no, answer in answers if answer
    ]
    one_winner(install, items, deaths)
    asked_again(install, heard)
    install.work()
    install.work()
    rows = install.runtime.db.look(select(heads.c.status))
    assert {row.status for row in rows} == {Status.SUCCESS}


def one_winner(install, told, deaths):
    """All were told of the same run of the same work, and nothing is in the journal that did not happen."""
    db = install.runtime.db
    saved = {row.id: row for row in db.look(select(runs))}
    assert {row.generation for row in saved.values()} == {1}
    assert len({row.digest for row in db.look(select(documents.c.digest))}) == len(
        db.look(select(documents.c.id))
    )
    about = {}
    for step, round_no, _, run_id in told:
        about.setdefault("job" if step == "job" else round_no, set()).add(run_id)
    assert all(len(each) == 1 and each <= set(saved) for each in about.values())
    became = Counter(disposition for *_, disposition, _ in told)
    assert set(became) == {"accepted", "duplicate"}
    wins = Counter(run_id for *_, disposition, run_id in told if disposition == "accepted")
    assert set(wins.values()) == {1}
    noted = Counter(
        row.reason for row in db.look(select(journal.c.reason).where(journal.c.verb == "request"))
    )
    assert noted["accepted:never_done"] == len(saved)
    # Whoever died may have been accepted or refused without having heard of it.
    assert noted["duplicate:in_progress"] >= became["duplicate"]
    assert len(saved) <= became["accepted"] + deaths


def asked_again(install, heard):
    """Requests that nobody answered: the key is free when its time is up, and then answers once for all.

    A duplicate is no such answer: it is true as long as the work is under way.
    """
    install.runtime.db.write("test", lambda tx: tx.execute(update(idempotency).values(open_until=0.0)))
    for number, answers in heard:
        step, round_no, answer = answers[-1]
        assert answer is None
        key = f"{number}-{round_no}-{step}"
        first = callers.ask(install.client, step, round_no, key)
        assert first.status in {200, 202, 409}
        again = callers.ask(install.client, step, round_no, key)
        assert callers.told(again) == callers.told(first)
        assert ("idempotency-replayed" in again.headers) is (first.status < 300)
