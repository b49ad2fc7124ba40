"""A process that has loaded everything a worker needs and forks programs from itself on request.

Loading takes most of the time that a worker needs to begin; a suite that starts dozens of them pays for it
once. What runs is the same `holdfast` command, in a session of its own. One JSON object a line comes in
(words, environment, log), and the process id goes out; the exit code of each is left beside its log.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import sys

MODULES = (
    "celery.apps.worker",
    "celery.concurrency.prefork",
    "celery.worker.autoscale",
    "holdfast.bootstrap",
    "holdfast.cli.commands_write",
    "holdfast.cli.worker_command",
    "kombu.transport.filesystem",
    "kombu.transport.pyamqp",
    "kombu.transport.redis",
    "psycopg",
    "tests.worker.kinds",
)


def main() -> None:
    """Fork on request until nobody asks any more."""
    for name in MODULES:
        importlib.import_module(name)
    logs: dict[int, str] = {}
    while True:
        ready, _, _ = select.select([sys.stdin], [], [], 0.02)
        if ready:
            line = sys.stdin.readline()
            if not line:
                return
            body = json.loads(line)
            pid = os.fork()
            if pid == 0:
                _become(body)
            logs[pid] = body["log"]
            print(pid, flush=True)
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                text = f"{logs.pop(ended[0])}.code"
                with open(f"{text}.new", "w") as out:  # noqa: PTH123 - nothing more is loaded here
                    out.write(str(os.waitstatus_to_exitcode(ended[1])))
                os.rename(f"{text}.new", text)  # noqa: PTH104 - as above


def _become(asked: dict[str, object]) -> None:
    os.setsid()
    out = os.open(str(asked["log"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, target in ((0, nothing), (1, out), (2, out)):
        os.dup2(target, number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the standard streams, anew
    sys.stdout = sys.__stdout__ = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(asked["environment"])  # type: ignore[call-overload]
    sys.argv = ["holdfast", *asked["words"]]  # type: ignore[misc]
    code = 1
    try:
        from holdfast import cli  # noqa: PLC0415 - only now, as the program itself would

        cli.main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
