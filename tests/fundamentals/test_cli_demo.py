"""The demonstration keeps its promises with real processes, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.demo.narration import Narrator
from holdfast.cli.demo.processes import ended_like_interrupted

MAIN = [sys.executable, "-c", "from holdfast.cli import main; main()", "demo"]


def started(folder):
    """The demonstration as a process of its own, with its temporary folder inside `folder`."""
    return subprocess.Popen(
        MAIN,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )


def processes_of(folder):
    """The command lines that mention the folder, or a meter of it: what the demonstration has started."""
    items = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TMPDIR={folder}".encode() in path.read_bytes().split(b"\0"):
                items.append((path.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return items


@pytest.mark.g2
@pytest.mark.g5
@pytest.mark.g7
@pytest.mark.slow
@pytest.mark.chaos
def test_the_demonstration_keeps_every_promise(tmp_path):
    """It ends with 0, in plain text when piped, and neither a file nor a process is left."""
    demo = started(tmp_path)
    output, complaint = demo.communicate(timeout=110)
    assert (demo.returncode, complaint) == (0, ""), output
    assert "Every promise was kept" in output
    assert "\x1b" not in output
    assert list(tmp_path.iterdir()) == []
    assert processes_of(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_demonstration_ends_everything_that_it_started(tmp_path, number):
    """Ctrl-C, SIGTERM or a closed terminal in the middle: exit code 130, no file, no process."""
    demo = started(tmp_path)
    for line in demo.stdout:
        if "worker-A" in line:
            break
    demo.send_signal(number)
    demo.communicate(timeout=60)
    assert demo.returncode == 130
    assert list(tmp_path.iterdir()) == []
    assert processes_of(tmp_path) == []


class Forgotten:
    """An object that meets a signal while it is cleaned up."""

    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interruption_that_python_ignores_is_heard_at_the_next_line():
    """What a signal raises in the middle of a cleaning-up goes nowhere."""
    narrator = Narrator(silent=True)
    with ended_like_interrupted(narrator):
        Forgotten()
        assert narrator.interrupted
        with pytest.raises(KeyboardInterrupt):
            narrator.line("the story goes on")
