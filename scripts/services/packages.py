"""Debian packages, installed on demand when root, without ever starting the servers they bring."""

import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from scripts.services.process import StartError

WANTED = {
    "redis-server": "redis-server",
    "rabbitmq-server": "/usr/lib/rabbitmq/bin/rabbitmq-server",
    "chromium": "chromium",
    "pgbouncer": "pgbouncer",
    "tesseract-ocr-eng": "/usr/share/tesseract-ocr/5/tessdata/eng.traineddata",
    "tesseract-ocr-osd": "/usr/share/tesseract-ocr/5/tessdata/osd.traineddata",
    "tesseract-ocr-deu": "/usr/share/tesseract-ocr/5/tessdata/deu.traineddata",
}
LANGUAGES = tuple(name for name in WANTED if name.startswith("tesseract-ocr-"))
POLICY = Path("/usr/sbin/policy-rc.d")

_once = threading.Lock()


def found(package: str) -> str | None:
    """Where the program or the file of the package is; None when it is not installed."""
    if package in LANGUAGES:
        return WANTED[package] if Path(WANTED[package]).is_file() else None
    return shutil.which(WANTED[package], path=_path())


def program(package: str) -> str:
    """Where the program or the file of the package is; installed first if missing, when root on Debian."""
    with _once:
        if (where := found(package)) is None:
            _install([name for name in WANTED if found(name) is None])
            where = found(package)
    if where is None:
        raise StartError(f"{package} was installed, but {WANTED[package]} is not there")
    return where


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def _install(names: list[str]) -> None:
    if os.geteuid() != 0 or shutil.which("apt-get", path=_path()) is None:
        raise StartError(f"not installed; as root: apt-get install {' '.join(names)}")
    print(f"services: installing {', '.join(names)}", flush=True)
    with _no_autostart():
        _apt("update", "-qq")
        _apt("install", "-y", "-qq", "--no-install-recommends", *names)


def _apt(*arguments: str) -> None:
    done = _call_apt(arguments)
    end = time.monotonic() + 300
    # The lock timeout of apt covers the installation, not the package lists.
    while done.returncode and "Could not get lock" in done.stderr and time.monotonic() < end:
        time.sleep(3)
        done = _call_apt(arguments)
    if done.returncode:
        raise StartError(f"apt-get {arguments[0]} failed: {(done.stderr or done.stdout).strip()[-400:]}")


def _call_apt(arguments: tuple[str, ...]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["apt-get", "-o", "DPkg::Lock::Timeout=300", *arguments],
        env={**os.environ, "PATH": _path(), "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@contextlib.contextmanager
def _no_autostart() -> Iterator[None]:
    """Debian starts a server as soon as it is installed, unless policy-rc.d says no (101)."""
    if POLICY.exists():
        yield  # Somebody has a policy already; containers commonly forbid every start, as we would.
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)
