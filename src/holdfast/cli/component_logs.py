"""The logs of all components in one stream: lines for people, or one JSON object per line."""

import json
import sys
import threading
from datetime import UTC, datetime
from typing import Protocol

from rich.markup import escape

from holdfast.cli import terminal


class Lines(Protocol):
    """Where the lines of all parts go, each whole."""

    def write(self, part: str, line: str) -> None:
        """The line is out, with the name of the part that said it."""


class TextLines:
    """The name of the part in front of each line."""

    def __init__(self) -> None:
        self._console = terminal.console()
        self._lock = threading.Lock()

    def write(self, part: str, line: str) -> None:
        """See `Lines.write`."""
        with self._lock:
            self._console.print(f"[name]{part:>8}[/name] {escape(line)}", soft_wrap=True)


class JsonLines:
    """What is a JSON object stays one, and gets the name of its part; what is none becomes one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def write(self, part: str, line: str) -> None:
        """See `Lines.write`."""
        entry = {"part": part} | _entry(line)
        with self._lock:
            sys.stdout.write(json.dumps(entry, ensure_ascii=False) + "\n")
            sys.stdout.flush()


def _entry(line: str) -> dict[str, object]:
    try:
        parsed = json.loads(line)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict):
        return parsed
    at = datetime.now(UTC).isoformat()
    return {"at": at, "level": "info", "logger": "holdfast.up", "message": line}
