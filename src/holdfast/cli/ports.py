"""Ports in use: by which process, as far as this user may know."""

import contextlib
import socket
from pathlib import Path

from holdfast.api import server
from holdfast.core.errors import NotReadyError

LISTENS = "0A"


def bound(host: str, port: int) -> socket.socket:
    """A listening socket; NotReadyError names who has the port, and what to do."""
    try:
        return server.bound(host, port)
    except NotReadyError as error:
        raise NotReadyError(f"{error.message}{_holder_note(port)}", code=error.code) from error


def _holder_note(port: int) -> str:
    who = holder(port)
    return f"; it is held by {who}" if who else ""


def holder(port: int) -> str | None:
    """The process that listens on the port of this machine; None where that cannot be seen."""
    inodes = {f"socket:[{inode}]" for inode in _listeners(port)}
    for process in Path("/proc").glob("[0-9]*") if inodes else ():
        with contextlib.suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(descriptor.readlink()) in inodes:
                        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                        return f"process {process.name} ({' '.join(words).strip()[:80]})"
    return None


def _listeners(port: int) -> list[str]:
    """The inodes of the sockets that listen on the port."""
    inodes: list[str] = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                cells = line.split()
                if cells[3] == LISTENS and int(cells[1].rpartition(":")[2], 16) == port:
                    inodes.append(cells[9])
    return inodes
