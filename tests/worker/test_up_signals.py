"""`holdfast up` is told to stop a second time while it is being told the first."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from holdfast.cli import component_logs
from holdfast.cli.exit_codes import Exit
from holdfast.cli.supervisor import Component, Supervisor

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["holdfast.cli.supervisor"])
HANDLER = Supervisor._told_to_stop.__code__
DEADLINE = 30.0
NOT_REACHED = 99
MOST_MOMENTS = 200


def _interrupting(moment: int, met: list[int]) -> Callable[[FrameType, str, Any], Any]:
    """Sends SIGINT at this line of the handler, counted through all that it calls."""

    def trace(frame: FrameType, event: str, _arg: Any) -> Any:
        result: FrameType | None = frame
        while result is not None and result.f_code is not HANDLER:
            result = result.f_back
        if result is None:
            return None
        if event == "line":
            met[0] += 1
            if met[0] == moment:
                signal.raise_signal(signal.SIGINT)
        return trace

    return trace


def _live(moment: int) -> None:
    """The life of a process that supervises one part and is told to stop twice; its exit code tells."""
    with subprocess.Popen(["sleep", "60"]) as part:
        supervisor = Supervisor([Component("part", (), process=part)], component_logs.TextLines())
        teller = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM))
        met = [0]
        sys.settrace(_interrupting(moment, met))
        teller.start()
        code = supervisor.run()
        sys.settrace(None)
        ended = part.poll() is not None
    os._exit(NOT_REACHED if met[0] < moment else code if ended else 1)


def ended_with(moment: int) -> int | None:
    """The exit code of such a process; None when it did not come to an end."""
    process = CONTEXT.Process(target=_live, args=(moment,), daemon=True)
    process.start()
    process.join(DEADLINE)
    code = process.exitcode
    process.kill()
    process.join()
    return code


def test_a_second_signal_at_any_moment_of_the_first_ends_it() -> None:
    """At each line that is carried out for the first signal the second one comes: there is nothing there
    that the second would have to wait for.
    """
    codes = []
    while NOT_REACHED not in codes and len(codes) < MOST_MOMENTS:
        codes.append(ended_with(len(codes) + 1))
        assert codes[-1] is not None, f"it hangs when the second comes at moment {len(codes)} of the first"
    assert len(codes) > 2
    assert codes[:-1] == [Exit.OK] * (len(codes) - 1)
