"""The environment of the peers, made on demand; and what each peer is asked to do."""

import hashlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.places import ROOT

FOLDER = ROOT / ".venv-peers"
WANTED = Path(__file__).with_name("peers.txt")
PYTHON = FOLDER / "bin/python"
FOLDER_INDEXING = ROOT / ".venv-peers-indexing"
WANTED_INDEXING = Path(__file__).with_name("peers_indexing.txt")


class NoPeersError(Exception):
    """The peers cannot be installed here."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One way of running somebody else's queue."""

    name: str
    module: str
    processes: int = 1
    concurrency: int = 2

    def command(self, verb: str, *words: str) -> list[str]:
        """How to run the adapter's `verb` in the peers' environment."""
        return [str(PYTHON), "-m", self.module, verb, *words]


DBOS = Peer("DBOS", "bench.peer_dbos")
PROCRASTINATE = Peer("Procrastinate", "bench.peer_procrastinate")
PROCRASTINATE_TWO = Peer("Procrastinate, 2 processes", "bench.peer_procrastinate", processes=2, concurrency=1)
ALL = (DBOS, PROCRASTINATE, PROCRASTINATE_TWO)


def versions() -> dict[str, str]:
    """What `peers.txt` pins, without the drivers."""
    pinned = re.findall(r"^(dbos|procrastinate)==(\S+)$", WANTED.read_text(), re.MULTILINE)
    return dict(pinned)


def install() -> None:
    """`.venv-peers` holds what `peers.txt` names; raises NoPeersError where it cannot be fetched."""
    _install(FOLDER, WANTED)


def install_indexing() -> Path:
    """The interpreter of an environment with what `peers_indexing.txt` names; raises NoPeersError."""
    _install(FOLDER_INDEXING, WANTED_INDEXING)
    return FOLDER_INDEXING / "bin/python"


def _install(folder: Path, pinned: Path) -> None:
    stamp = folder / "installed"
    wanted = hashlib.sha256(pinned.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"bench: making {folder.name}", file=sys.stderr)
    environment = {"UV_SYSTEM_CERTS": "true", **os.environ}
    _run([sys.executable, "-m", "venv", "--clear", str(folder)], environment)
    (folder / ".gitignore").write_text("*\n")
    python = str(folder / "bin/python")
    try:
        uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--link-mode=copy", "--python", python]
        _run([*uv, "-r", str(pinned)], environment)
    except NoPeersError:
        _run([python, "-m", "pip", "install", "--quiet", "-r", str(pinned)], environment)
    stamp.write_text(wanted)


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoPeersError(done.stderr.strip()[-600:])
