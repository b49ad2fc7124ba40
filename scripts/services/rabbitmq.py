"""A private RabbitMQ with an Erlang port mapper of its own, so that it shares and ends nobody else's."""

import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

from scripts.services.packages import program
from scripts.services.process import (
    Process,
    StartError,
    alive,
    exchange,
    free_ports,
    identify,
    spawn,
    stop,
    wait_until,
)
from scripts.services.state import Entry

NAME = "rabbitmq"
# The protocol header of AMQP 0-9-1; a broker that is up answers with a method frame (1) on channel 0.
HELLO, START = b"AMQP\x00\x00\x09\x01", b"\x01\x00\x00"
CONFIGURATION = """
listeners.tcp.local = 127.0.0.1:{port}
management.tcp.ip = 127.0.0.1
management.tcp.port = {management}
default_user = holdfast
default_pass = {password}
vm_memory_high_watermark.absolute = 512MB
disk_free_limit.absolute = 200MB
"""
LOOPBACK = "-kernel inet_dist_use_interface {127,0,0,1}"


def healthy(entry: Entry) -> bool:
    """Whether the broker speaks AMQP."""
    return exchange(entry["port"], HELLO, START)


def end(process: Process) -> None:
    """Killed: an orderly stop takes five seconds, to save data that is removed next."""
    stop(process)


def remove(folder: Path) -> None:
    """The data is gone; the logs stay."""
    for name in ("mnesia", "home", "cfg"):
        shutil.rmtree(folder / name, ignore_errors=True)


def start(folder: Path, record: Callable[[Entry], None]) -> Entry:
    """The running broker's entry."""
    server = program("rabbitmq-server")
    mapper = shutil.which("epmd", path=os.environ.get("PATH", "") + ":/usr/bin:/usr/local/bin")
    if mapper is None:
        raise StartError("epmd, Erlang's port mapper, is not in PATH; reinstall erlang-base")
    for _ in range(3):
        if entry := _try(folder, server, mapper, record):
            return entry
    raise StartError(f"did not start; see {folder}/log")


def _try(folder: Path, server: str, mapper: str, record: Callable[[Entry], None]) -> Entry | None:
    # A node's name is part of its data, and the ports are new each time: it starts from nothing, also
    # after a crash.
    remove(folder)
    port, distribution, mapping, management = free_ports(4)
    password = secrets.token_hex(16)
    for name in ("home", "log", "cfg"):
        (folder / name).mkdir(exist_ok=True)
    conf = folder / "rabbitmq.conf"
    conf.touch(mode=0o600)
    conf.write_text(CONFIGURATION.format(port=port, management=management, password=password))
    (folder / "enabled_plugins").write_text("[rabbitmq_management].\n")
    pidfile = folder / "pid"
    pidfile.unlink(missing_ok=True)
    environment = _environment(folder, port, distribution, mapping)
    log = folder / "log" / "stdout.log"

    # In the foreground, so that its id is known; the broker finds it and starts none.
    companion = spawn([mapper, "-address", "127.0.0.1", "-port", str(mapping)], log, environment)
    entry: Entry = {
        "url": f"amqp://holdfast:{password}@127.0.0.1:{port}//",
        "management": f"http://holdfast:{password}@127.0.0.1:{management}",
        "port": port,
        "log": str(log),
        "companion": {"pid": companion.pid, "born": companion.born},
    }
    shell = spawn([server], log, environment)
    record({**entry, "pid": shell.pid, "born": shell.born})
    wait_until(lambda: healthy(entry) or not alive(shell), 90)
    broker = identify(int(pidfile.read_text())) if pidfile.exists() else None
    if broker is not None and healthy(entry):
        return {**entry, "pid": broker.pid, "born": broker.born}
    for process in (broker, shell, companion):
        if process is not None:
            end(process)
    return None


def _environment(folder: Path, port: int, distribution: int, mapping: int) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", "") + ":/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(folder / "home"),
        "LANG": "C.UTF-8",
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(mapping),
        "RABBITMQ_NODENAME": f"hf{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "cfg"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"{LOOPBACK} +S 2:2 +sbwt none",
        "RABBITMQ_CTL_ERL_ARGS": LOOPBACK,
    }
