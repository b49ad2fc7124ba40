"""Functions of the user's own as steps: called once, in a process of their own, within limits."""

import time
from pathlib import Path

import pytest

from holdfast.chaos.waiting import until
from holdfast.core.errors import WorkError
from holdfast.kinds.flows.function_process import FunctionLimits, FunctionProcesses
from holdfast.kinds.flows.functions import StepFunctions
from holdfast.kinds.flows.steps import Step
from tests.flows.install import FUNCTIONS, GIST, FlowsInstall, flow
from tests.jobs.install import paragraphs

SPLIT = "split: {size: 256}"


def step(name: str, more: str = "") -> str:
    return f'python: {{name: own, call: "harbour_steps:{name}", version: 1{more}}}'


def test_a_function_is_called_once_for_what_it_reads(install: FlowsInstall, tmp_path: Path) -> None:
    """Its output is kept by its input: another step, another version of the flow call it no more."""
    shout = step("shout", ', settings: {mark: "?"}')
    install.apply(flow(SPLIT, shout, "publish: {fields: [own]}"), to="shelf")
    document = install.client.indexed(paragraphs("tide", 3))
    assert [each["fields"]["own"] for each in install.chunks(document["id"])] == ["TIDE?"] * 3
    calls = tmp_path / "calls"
    assert calls.read_text().splitlines() == ["text"] * 3
    install.apply(flow(SPLIT, shout, GIST, "publish: {fields: [own, gist]}", version=2), to="shelf")
    install.work()
    assert len(calls.read_text().splitlines()) == 3
    assert "gist" in install.chunks(document["id"])[0]["fields"]
    install.apply(flow(SPLIT, shout.replace("version: 1", "version: 2"), version=3), to="shelf")
    install.work()
    assert len(calls.read_text().splitlines()) == 6


@pytest.mark.parametrize(
    ("name", "more", "says"),
    [
        ("fails", "", "harbour_steps:fails raised ValueError: no tide"),
        ("leaves", "", "raised SystemExit: 3"),
        ("strange", ", settings: {what: object}", "returned what is not JSON"),
        ("strange", ", settings: {what: nan}", "returned what is not JSON"),
        ("strange", ", settings: {what: deep}", "returned what is not JSON"),
        ("strange", ", settings: {what: long}", "returned 100,013 bytes; at most 65,536"),
        ("hangs", "", "took longer than 1 s and was stopped"),
        ("eats", "", "needed more than 256 MiB of memory"),
        ("dies", "", "ended its process by signal 9, perhaps for want of memory"),
    ],
)
def test_a_function_that_fails_costs_its_step_alone(functions: None, name: str, more: str, says: str) -> None:
    """Whatever it does, its caller gets an error in words, and the next function is called as ever."""
    limits = FunctionLimits(seconds=1.0, memory=256 * 1024**2)
    own = StepFunctions(FUNCTIONS, FunctionProcesses(limits))
    what = more.partition("what: ")[2].rstrip("}")
    params = {"call": f"harbour_steps:{name}", "name": "own", "settings": {"what": what}}
    good = {"call": "harbour_steps:shout", "name": "own"}
    inputs = {"key": {"text": "tide and more"}}
    try:
        own.outputs(Step("python", 1, 4, good), inputs, lambda: None)  # the time to start is not its own
        error = own.outputs(Step("python", 1, 4, params), inputs, lambda: None)["key"]
        assert isinstance(error, WorkError)
        assert (error.code, says in error.message) == ("step_failed", True), error.message
        assert own.outputs(Step("python", 1, 4, good), inputs, lambda: None) == {"key": "TIDE!"}
    finally:
        own.close()


def test_a_run_that_is_cancelled_does_not_wait_for_its_function(functions: None) -> None:
    """While a function takes long the work is asked whether it should go on; the process ends with it."""
    own = StepFunctions(FUNCTIONS, FunctionProcesses(FunctionLimits(seconds=60.0)))
    looks = []

    def check() -> None:
        looks.append(time.monotonic())
        if len(looks) > 2:
            raise WorkError("cancelled", code="cancelled")

    began = time.monotonic()
    with pytest.raises(WorkError, match="cancelled"):
        own.outputs(Step("python", 1, 4, {"call": "harbour_steps:hangs", "name": "own"}), {"key": {}}, check)
    assert time.monotonic() - began < 20
    own.close()


def test_a_process_ends_with_its_owner(functions: None) -> None:
    """Also while a function hangs in it: its standard input has ended."""
    process = FunctionProcesses()
    with process.lent() as running:
        child = running._process
        assert child.stdin is not None
        child.stdin.write(b'{"call": "harbour_steps:hangs", "fields": {}, "settings": {}}\n')
        child.stdin.close()
        until(lambda: child.poll() is not None, 30, "it lives on")


def test_a_failed_step_fails_the_document_or_is_skipped(install: FlowsInstall) -> None:
    """By default the run fails with its words; with `on_error: skip` the chunk has no such field."""
    install.apply(flow(SPLIT, step("fails")), to="shelf")
    document = install.client.indexed(paragraphs("tide", 2))
    assert document["index_status"] == "failed"
    assert document["error"]["code"] == "step_failed"
    assert "own: harbour_steps:fails raised ValueError: no tide" in document["error"]["message"]
    install.apply(flow(SPLIT, f"{step('fails')}\non_error: skip", version=2), to="shelf")
    install.work()
    document = install.client.get(f"documents/{document['id']}").json
    assert document["index_status"] == "success"
    assert install.chunks(document["id"])[0]["fields"] == {}


def test_what_no_database_can_store_is_replaced(install: FlowsInstall) -> None:
    """NUL and half characters of a function become U+FFFD; other values stay what they are."""
    install.apply(flow(SPLIT, step("odd"), "publish: {fields: [own], search: [text, own]}"), to="shelf")
    document = install.client.indexed(paragraphs("tide", 1))
    fields = install.chunks(document["id"])[0]["fields"]
    assert fields["own"] == {"a\ufffd": "b\ufffd\ufffd", "whole": [1, None, True, 0.5]}


def test_a_function_that_is_not_there_fails_whatever_the_step_says(small: FlowsInstall) -> None:
    """It is a fault of the installation and of no chunk, so that nothing is skipped."""
    small.apply(flow(SPLIT, f"{step('missing')}\non_error: skip"), to="shelf")
    document = small.client.indexed(paragraphs("tide", 2))
    assert document["error"]["code"] == "unknown_function"
    assert "harbour_steps:missing cannot be imported" in document["error"]["message"]
