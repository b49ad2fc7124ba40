"""One worker, many hardships: time limits, unknown kinds, processes that die. Its neighbours go on."""

import contextlib
import os
import re
import shutil
import signal

import pytest

from holdfast.chaos.waiting import until
from holdfast.core.records import Ask
from holdfast.core.states import Status, TaskState


@pytest.fixture(scope="module")
def worker(shared):
    """Three processes, a lease of a second and a half, and two tries; they let others go first a little."""
    return shared.worker("-c", "3", lease_ttl="1.5", attempt_cap="2", sweep_interval="0.2", worker_nice="1")


def children(worker):
    return {each["pid"] for each in worker.health("/healthz")[1]["processes"]}


def test_processes_step_back_as_far_as_they_are_told_to(worker):
    """What carries out tasks lets others go first; what looks after it does not."""
    above = os.getpriority(os.PRIO_PROCESS, worker.pid)
    assert {os.getpriority(os.PRIO_PROCESS, pid) - above for pid in children(worker)} == {1}


def test_past_its_soft_limit_a_run_fails_cleanly(shared, worker):
    """The next check ends it with the code `time_limit`, and the process goes on."""
    before = children(worker)
    run = shared.done(shared.ask("late", "document:late", seconds=60))
    assert (run.status, run.error_code) == (Status.FAILED, "time_limit")
    assert children(worker) == before


@pytest.mark.g4
def test_a_hang_is_killed_and_its_neighbours_go_on(shared, worker):
    """Past its hard limit a process that checks nothing is killed; the task is tried again, then given up."""
    before = children(worker)
    hung = shared.ask("stuck", "document:stuck")
    until(lambda: "exceeded the hard time limit" in str(worker.health("/readyz")[1]), 10, "readyz is silent")
    neighbour = shared.ask("nap", "document:neighbour", seconds=0.3)
    assert shared.done(neighbour).status is Status.SUCCESS
    run = shared.done(hung)
    assert (run.status, run.error_code) == (Status.FAILED, "abandoned")
    assert ("expire", "overran") in shared.journal(hung)
    worker.says("killing process [0-9]+: task [0-9]+ exceeded its hard time limit")
    until(lambda: len(children(worker) - before) == 2, 15, "the killed ones are not replaced")
    until(lambda: worker.health("/readyz")[0] == 200, 10, "it does not become ready again")
    assert re.search(r"worker_killed_total 2\.0", worker.health("/metrics")[1])
    assert shared.done(shared.ask("nap", "document:after")).status is Status.SUCCESS


def test_a_process_that_stands_still_in_a_task_is_a_fault_until_it_goes_on(shared, worker):
    """Frozen, or in code that lets no other thread run: a ping would be green, and health tells of it."""
    requested = shared.ask("nap", "document:frozen", seconds=1)
    busy = until(
        lambda: [each for each in worker.health("/healthz")[1]["processes"] if each["task"]], 10, "not begun"
    )
    pid = busy[0]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        _status, output = until(
            lambda: (answer := worker.health("/healthz"))[0] == 503 and answer, 30, "it is not noticed"
        )
    finally:
        os.kill(pid, signal.SIGCONT)
    assert any(f"process {pid} has not reported for" in each for each in output["problems"])
    until(lambda: worker.health("/healthz")[0] == 200, 30, "it is not healthy again")
    assert shared.done(requested).status is Status.SUCCESS


@pytest.mark.g7
def test_a_killed_process_is_replaced_and_its_task_done(shared, worker):
    """Kill -9 of one process: another one does the task, and the worker stays as large as it was."""
    requested = shared.ask("nap", "document:killed", seconds=1)
    busy = until(
        lambda: [each for each in worker.health("/healthz")[1]["processes"] if each["task"]], 10, "not begun"
    )
    os.kill(busy[0]["pid"], signal.SIGKILL)
    assert shared.done(requested).status is Status.SUCCESS
    until(lambda: len(children(worker)) == 3, 10, "it is not replaced")


@pytest.mark.g7
def test_idle_processes_that_are_killed_take_nobody_with_them(shared, worker):
    """The memory killer ends one after another while they wait; their successors hear of the next work."""
    for pid in children(worker):
        with contextlib.suppress(ProcessLookupError):  # one that was killed before may still have been there
            os.kill(pid, signal.SIGKILL)
        until(lambda gone=pid: gone not in children(worker), 10, "it is not gone")
    until(lambda: len(children(worker)) == 3, 10, "they are not replaced")
    assert shared.done(shared.ask("nap", "document:survivor"), 10).status is Status.SUCCESS


@pytest.mark.g4
def test_a_broker_folder_that_is_deleted_is_made_again(shared, worker):
    """Somebody tidied up: nothing is lost, for the database knows what is due."""
    shutil.rmtree(shared.data_dir / "broker")
    requested = shared.ask("nap", "document:tidied")
    assert shared.done(requested, 10).status is Status.SUCCESS
    assert worker.health("/healthz")[0] == 200


@pytest.mark.g4
def test_a_kind_nobody_here_knows_waits_for_one_who_does(shared, worker):
    """It stays queued, the ignorant worker stays healthy, and a worker that knows it does it."""
    with shared.engine(kinds="tests.worker.kinds:OTHER_ONLY") as engine:
        requested = engine.request(Ask(kind="other", subject="document:other", content="a"))
    done = shared.ask("nap", "document:known")
    assert shared.done(done).status is Status.SUCCESS
    assert [task.state for task in shared.tasks(requested)] == [TaskState.QUEUED]
    assert worker.health("/healthz")[0] == 200
    knowing = shared.worker("-c", "1", kinds="tests.worker.kinds:OTHER_ONLY")
    assert shared.done(requested).status is Status.SUCCESS
    knowing.tell()
    assert knowing.ended(12)[0] == 0
