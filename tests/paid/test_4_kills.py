"""Callers killed at every point of a paid call, with official clients and a provider that keeps a book."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import func, select

from holdfast.store.base.schema import charges, orders
from holdfast.testing.meter import Meter
from tests.paid import kills, sdks
from tests.paid.application import PayingApp

ROOT = Path(__file__).resolve().parents[2]
DOUBTED = select(func.count()).where(charges.c.sort == "in_doubt")
SENDS = select(func.sum(orders.c.sends), func.count())
# Of the callers that died there, the request was, or may have been, at the provider.
IN_FLIGHT = {"send.begun", "send.piece", "send.answered", "send.heard", "settle.commit"}
MOST = 1800

pytestmark = pytest.mark.g5


def killed(url, meter, sdk, *, keyed, number):
    """How often a caller died at each point."""
    command = [
        sys.executable,
        "-m",
        "tests.paid.kills",
        url,
        meter.url,
        sdk,
        "keyed" if keyed else "",
        str(number),
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=MOST, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


def holds(url, *, sdk, keyed, number, least):
    """Every prompt was answered; what was charged twice was in flight at a death, and is in doubt."""
    with Meter(honour_keys=keyed) as meter:
        died = killed(url, meter, sdk, keyed=keyed, number=number)
        meter.wait_idle()
        totals = meter.totals()
    app = PayingApp(url)
    doubted = app.db.read(lambda tx: tx.execute(DOUBTED).scalar_one())
    sends, _ = app.db.read(lambda tx: tx.execute(SENDS).one())
    states = {state for state, _ in app.orders()}
    app.close()
    expected = {point for plan in kills.plans(sdk.endswith("stream")) for point in plan}
    assert {point for point in expected if died.get(point, 0) < least} == set()
    assert sum(died.values()) >= number
    assert states <= {"settled", "void"}
    in_flight = sum(times for point, times in died.items() if point in IN_FLIGHT)
    assert totals.excess == 0 if keyed else totals.excess <= in_flight
    assert totals.excess <= doubted
    assert totals.exchanges <= sends + 1  # one more to warm up


@pytest.mark.parametrize(
    ("database", "sdk", "keyed"),
    [("sqlite_url", "openai", False), ("postgresql_url", "anthropic-stream", True)],
    ids=["unkeyed", "keyed"],
)
def test_a_caller_killed_at_any_point_pays_for_what_was_in_flight_at_most(request, database, sdk, keyed):
    """One death at each point; with idempotency keys nothing is charged twice."""
    number = sum(map(len, kills.plans(sdk.endswith("stream"))))
    holds(request.getfixturevalue(database), sdk=sdk, keyed=keyed, number=number, least=1)


@pytest.mark.long
@pytest.mark.timeout(MOST + 60)
@pytest.mark.parametrize("keyed", [False, True], ids=["unkeyed", "keyed"])
@pytest.mark.parametrize("sdk", [each.name for each in (*sdks.OPENAI, *sdks.ANTHROPIC)])
def test_two_hundred_callers_killed(sqlite_url, sdk, keyed):
    """At least five deaths at each point, for each client, whole, asynchronous and streamed."""
    holds(sqlite_url, sdk=sdk, keyed=keyed, number=200, least=5)


@pytest.mark.parametrize(
    ("point", "sends", "doubts"),
    [("send.first_byte", 2, 1), ("send.answered", 3, 1), ("settle.committed", 2, 0)],
)
def test_a_run_that_dies_goes_on_with_what_it_has_paid_for(sqlite_url, meter, point, sends, doubts):
    """Its first answer is free when it starts over; the second is paid twice at most if it was in flight."""

    def execute(at):
        command = [sys.executable, "-m", "tests.paid.killed_run", sqlite_url, meter.url, at]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    assert execute(point).returncode == -signal.SIGKILL
    second = execute("")
    assert second.returncode == 0, second.stderr[-3000:]
    assert len(json.loads(second.stdout.splitlines()[-1])) == 2
    assert len(meter.log()) == meter.totals().charges == sends
    app = PayingApp(sqlite_url)
    doubted = app.db.read(lambda tx: tx.execute(DOUBTED).scalar_one())
    app.close()
    assert doubted == doubts
