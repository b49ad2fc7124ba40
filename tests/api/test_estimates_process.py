"""Estimates in a real process of the API: a hostile text costs its sender time, and nobody else any."""

import concurrent.futures
import contextlib
import json
import os
import select
import signal
import subprocess
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.api.install import PREFIX
from tests.api.test_process import call, environment, holdfast, process  # noqa: F401 - fixtures

HOSTILE = {
    "comments": "<!---->" * 40 + "x",
    "many comments": "<!---->" * 140_000 + "x",
    "brackets": "# x\n\n- y\n\n" + "[" * 60_000,
    "heading": "# x" + " " * 900_000 + "y",
    "rule": "a|b\n" + " " * 900_000 + "x",
    "title": "---\ntitle: x" + " " * 900_000 + "y\n---\ntext",
    "marks": "a" + "\u0300\u0316" * 200_000,
    "table": "|" + "h" * 100_000 + "|b|\n|-|-|\n" + "|1|2|\n" * 3000,
    "sentences": ". " * 500_000,
}


def estimate(port, key, text, **more):
    body = json.dumps({"text": text, **more})
    headers = {"Content-Type": "application/json", **({"X-API-Key": key} if key else {})}
    status, answer = call(port, "POST", f"{PREFIX}/estimate", body, headers)
    return status, json.loads(answer)


def parsing(owner):
    """The processes that read texts for the API."""
    result = subprocess.run(["pgrep", "-P", str(owner)], capture_output=True, text=True, check=False)
    return {int(pid) for pid in result.stdout.split()}


@pytest.fixture
def keys(holdfast):  # noqa: F811
    """Keys of two tenants."""
    names = ("acme", "other")
    return [
        holdfast("keys", "create", name, "--tenant", name, "--scope", "read")[1].strip() for name in names
    ]


@pytest.fixture
def patient(environment):  # noqa: F811
    """Estimates may take longer than a busy machine needs to start a process."""
    environment["HOLDFAST_ESTIMATE_SECONDS"] = "20"


@pytest.mark.usefixtures("patient")
def test_hostile_texts_are_estimated(process):  # noqa: F811
    """Each of them once stopped the process, or took it from 200 MB to more than a gigabyte."""
    running, port = process
    for name, text in HOSTILE.items():
        status, output = estimate(port, None, text)
        assert status == 200, (name, output)
        assert call(port, "GET", "/healthz")[0] == 200
    status = Path(f"/proc/{running.pid}/status").read_text()
    assert int(status.split("VmHWM:")[1].split()[0]) < 500 * 1024


@pytest.mark.usefixtures("patient")
def test_a_text_that_does_not_end_holds_up_nobody_else(keys, process):  # noqa: F811
    """Its sender is told after the time is up; another tenant is answered meanwhile, and so is `/healthz`."""
    running, port = process
    first, second = keys
    assert estimate(port, first, "one")[0] == 200
    for child in parsing(running.pid):
        os.kill(child, signal.SIGSTOP)
    with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=60)) as stuck:
        headers = {"Content-Type": "application/json", "X-API-Key": first}
        stuck.request("POST", f"{PREFIX}/estimate", json.dumps({"text": "two"}), headers)  # before the others
        assert call(port, "GET", "/healthz")[0] == 200
        assert estimate(port, second, "three")[0] == 200
        assert not select.select([stuck.sock], [], [], 0)[0]
        response = stuck.getresponse()
        output = json.load(response)
    assert (response.status, output["error"]["code"]) == (422, "estimate_timeout")
    assert estimate(port, first, "four")[0] == 200


@pytest.mark.usefixtures("patient")
def test_a_text_that_does_not_end_does_not_keep_the_process_from_ending(keys, process):  # noqa: F811
    """SIGTERM ends the API, and its children with it."""
    running, port = process
    assert estimate(port, keys[0], "one")[0] == 200
    children = parsing(running.pid)
    for child in children:
        os.kill(child, signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        stuck = pool.submit(estimate, port, keys[0], "two")
        time.sleep(0)
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0
        stuck.exception()
    assert all(not Path(f"/proc/{child}").exists() for child in children)
