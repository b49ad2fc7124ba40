"""Processes told apart by id and time of birth, so that a reused id is never taken for ours."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc/self/stat").exists()


@dataclass(frozen=True)
class Process:
    """One process: its id, and when it was born in whatever unit the system tells."""

    pid: int
    born: str


class StartError(Exception):
    """A service could not be started; the message says why and what to do."""


def identify(pid: int) -> Process | None:
    """The live process with this id, or None if there is none.

    A zombie is dead: a container's init may never reap it.
    """
    if not PROC:
        told = subprocess.run(
            ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
        ).stdout.split(maxsplit=1)
        return Process(pid, told[1].strip()) if len(told) == 2 and not told[0].startswith("Z") else None
    try:
        # The name in parentheses may hold spaces; what follows the last ")" is state, parent, ..., and
        # birth as 20th.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else Process(pid, fields[19])


def alive(process: Process) -> bool:
    """Whether this very process still runs."""
    return identify(process.pid) == process


def mentions(pid: int, text: str) -> bool:
    """Whether the command line of this process holds the text; False where it cannot be read."""
    try:
        return text.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def spawn(command: Sequence[str], log: Path, env: dict[str, str] | None = None) -> Process:
    """A process started in a session of its own, with its output in the log; it outlives the caller."""
    with log.open("ab") as out:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=env,
            cwd=log.parent,
            start_new_session=True,
        )
    found = identify(child.pid)
    child.returncode = 0  # It is not ours to reap: without this, Popen complains when it is forgotten.
    if found is None:
        raise StartError(f"{command[0]} ended at once; see {log}")
    return found


def stop(process: Process, *signals: signal.Signals, patience: float = 10) -> None:
    """The process is gone: asked by each signal in turn, with patience, and killed at the end."""
    for number in (*signals, signal.SIGKILL):
        if not alive(process):
            return
        os.kill(process.pid, number)
        wait_until(lambda: not alive(process), patience)


def wait_until(true: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition came true within that time."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def free_ports(count: int) -> list[int]:
    """Different loopback ports that nobody listens on now.

    Another may take one before it is used: callers retry.
    """
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def exchange(port: int, request: bytes, expected: bytes) -> bool:
    """Whether the server on the port answers the request with the expected first bytes."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(request)
            return connection.recv(len(expected)) == expected
    except OSError:
        return False
