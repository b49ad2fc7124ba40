"""How-to pages as programs: every `sh` block of a page, in order, in one shell, in an empty folder.

Three comments of Markdown steer it, and readers of the page do not see them:

- `<!-- given` … `-->`: shell lines that make what the page takes for granted (files, a running installation).
- `<!-- file: PATH -->` before a block: the block is the content of that file.
- `<!-- not run: REASON -->` before a block: the block needs something that no test machine has.
"""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs/how-to").glob("*.md"))
PORT = "8642"
# The last two are set while statements are recorded, those of the commands on the page too.
INHERITED = ("HOME", "LANG", "TMPDIR", "RECORD_STATEMENTS", "PYTHONPATH")
# A refusal of the API fails the page; what the page starts in the background ends with it.
PREAMBLE = """\
set -euo pipefail
trap 'code=$?; trap - EXIT; set +e; kill $(jobs -p) 2>/dev/null; wait; exit $code' EXIT
curl() { command curl --fail-with-body --show-error "$@"; }
PS4='+ '
set -x
"""
_PIECE = re.compile(
    r"<!-- given\n(?P<given>.*?)-->"
    r"|<!-- (?P<word>file|not run): (?P<about>[^\n]+?) -->"
    r"|^(?P<indent> *)```(?P<language>[a-z]*)\n(?P<block>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its language, its text, and what the comment before it says."""

    language: str
    text: str
    word: str | None = None
    about: str = ""


def blocks(page: str) -> list[Block]:
    """The blocks of a page in order; what a page takes for granted is a block of the language `given`."""
    items: list[Block] = []
    word, about = None, ""
    for piece in _PIECE.finditer(page):
        if piece["given"] is not None:
            items.append(Block("given", piece["given"]))
        elif piece["word"]:
            word, about = piece["word"], piece["about"]
        else:
            lines = piece["block"].splitlines(keepends=True)
            text = "".join(line.removeprefix(piece["indent"]) for line in lines)
            items.append(Block(piece["language"], text, word, about))
            word, about = None, ""
    return items


def script(page: str) -> str:
    """The page as a program for bash."""
    lines = [PREAMBLE]
    for block in blocks(page):
        if block.word == "file":
            path = shlex.quote(block.about)
            lines.append(
                f"mkdir -p $(dirname {path})\ncat >{path} <<'END-OF-FILE'\n{block.text}END-OF-FILE\n"
            )
        elif block.language in {"given", "sh"} and block.word != "not run":
            lines.append(block.text)
    return "\n".join(lines)


def run(page: str, folder: Path, environment: dict[str, str], seconds: float) -> tuple[int, str]:
    """The exit code of the page and all that it printed; nothing that it started is left."""
    port = _free_port()
    program = script(page).replace(f":{PORT}", f":{port}")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    log = folder / "page.log"
    with log.open("wb") as out:
        shell = subprocess.Popen(
            ["bash", "-c", program],
            cwd=folder,
            env={
                **inherited,
                "XDG_DATA_HOME": str(folder),
                "PATH": path,
                "HOLDFAST_PORT": str(port),
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            code = shell.wait(seconds)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            _end(shell.pid)
    return code, log.read_text(errors="replace")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _end(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
