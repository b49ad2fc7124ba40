"""A type checker sees the public surface as a reader of its page does."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "tests/typing/public_surface.py"


def test_mypy_accepts_what_is_right_and_refuses_what_is_wrong():
    """Under --strict every line that is marked is the error it says, and no other line is one."""
    lines = (ROOT / PROGRAM).read_text().splitlines()
    marked = {
        (number, mark[1]) for number, line in enumerate(lines, 1) if (mark := re.search(r"# E: (\S+)$", line))
    }
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", PROGRAM]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = re.findall(r"^\S+?:(\d+): error: .* \[(\S+)\]$", checked.stdout, re.MULTILINE)
    assert {(int(number), code) for number, code in errors} == marked, checked.stdout + checked.stderr
