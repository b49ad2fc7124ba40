"""A guarded task that asks the same thing twice, executed here, perhaps to its death.

    python -m tests.paid.killed_run DATABASE METER POINT

The process dies at the second time that it reaches the point; without one it prints what the task answered.
"""

import json
import os
import signal
import sys
import time
from typing import Any

from celery.exceptions import Ignore

from holdfast import faults
from tests.paid import sdks
from tests.paid.application import PayingApp
from tests.paid.kills import Served


def main(database: str, meter: str, point: str) -> None:
    """The task was executed; a run whose last execution died is waited for."""
    application = PayingApp(database, lease=1.0)
    reached = []

    def die(name: str) -> None:
        if name == point:
            reached.append(name)
        if len(reached) > 1:
            os.kill(os.getpid(), signal.SIGKILL)

    def twice() -> list[str]:
        return [sdks.OPENAI[0].ask(application.guard, Served(meter), "a cat") for _ in range(2)]  # type: ignore[arg-type]

    task: Any = application.guard.task(name="twice")(twice)
    faults.arm(die)
    give_up = time.monotonic() + 30
    while True:
        result = task.apply(task_id="run")
        if not isinstance(result.result, Ignore) or time.monotonic() > give_up:
            break
        time.sleep(0.2)  # the lease of the execution that died has not expired yet
    print(json.dumps(result.get()))


if __name__ == "__main__":
    main(*sys.argv[1:])
