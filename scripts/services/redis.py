"""A private Redis that keeps what it is told (append-only file) and evicts nothing."""

import secrets
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from scripts.services.packages import program
from scripts.services.process import Process, StartError, alive, exchange, free_ports, spawn, stop, wait_until
from scripts.services.state import Entry

NAME = "redis"
CONFIGURATION = """
bind 127.0.0.1
port {port}
requirepass {password}
dir {data}
appendonly yes
save ""
maxmemory-policy noeviction
databases 64
daemonize no
"""


def healthy(entry: Entry) -> bool:
    """Whether the server lets us in."""
    return _answers(entry["port"], entry["password"])


def end(process: Process) -> None:
    """Redis writes what it holds, and leaves."""
    stop(process, signal.SIGTERM)


def remove(folder: Path) -> None:
    """The data is gone; the log stays."""
    shutil.rmtree(folder / "data", ignore_errors=True)


def start(folder: Path, record: Callable[[Entry], None]) -> Entry:
    """The running server's entry."""
    server = program("redis-server")
    data, conf, log = folder / "data", folder / "redis.conf", folder / "server.log"
    data.mkdir(exist_ok=True)
    for _ in range(3):
        [port] = free_ports(1)
        password = secrets.token_hex(16)
        conf.touch(mode=0o600)
        conf.write_text(CONFIGURATION.format(port=port, password=password, data=f'"{data}"'))
        process = spawn([server, str(conf)], log)
        entry = {
            "url": f"redis://:{password}@127.0.0.1:{port}",
            "port": port,
            "password": password,
            "log": str(log),
            "pid": process.pid,
            "born": process.born,
        }
        record(entry)
        wait_until(lambda: _answers(port, password) or not alive(process), 30)  # noqa: B023  ends within the turn
        if alive(process) and healthy(entry):
            return entry
        end(process)
    raise StartError(f"did not start; see {log}")


def _answers(port: int, password: str) -> bool:
    return exchange(port, f"AUTH {password}\r\nPING\r\n".encode(), b"+OK")
