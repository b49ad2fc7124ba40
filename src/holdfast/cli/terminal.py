"""How things look on a terminal, and in a pipe: the same words, without colours."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.theme import Theme

THEME = Theme(
    {
        "head": "bold",
        "quiet": "dim",
        "good": "green",
        "bad": "bold red",
        "care": "yellow",
        "name": "cyan",
    }
)
PIPE_WIDTH = 200


def console(*, plain: bool = False, quiet: bool = False) -> Console:
    """The console for standard output. In a pipe lines are long, so that none is broken in two."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(theme=THEME, width=width, highlight=False, no_color=plain or None, quiet=quiet)


def show_json(value: object) -> None:
    """`value` on standard output as one JSON document."""
    plainly = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    sys.stdout.write(json.dumps(plain(value), indent=2, ensure_ascii=plainly) + "\n")


def plain(value: Any) -> Any:
    """`value` as JSON knows it: records as objects, states as text, bytes left out."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items() if not isinstance(each, bytes)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(each) for each in value]
    return value


def moment(at: float | None) -> str:
    """A database time as people write it, in UTC."""
    return "-" if not at else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def table(*columns: str, numbers: Sequence[str] = ()) -> Table:
    """A table without frames; the columns named in `numbers` stand to the right."""
    made = Table(box=None, pad_edge=False, header_style="quiet", padding=(0, 3, 0, 0))
    for name in columns:
        made.add_column(name, justify="right" if name in numbers else "left")
    return made


def cells(*values: object) -> list[str]:
    """Values as the cells of a row, safe from being read as markup."""
    return [escape(str(value)) for value in values]


def complain(message: str, code: str) -> None:
    """One line on standard error."""
    sys.stderr.write(f"holdfast: {' '.join(message.split())} [{code}]\n")


class Notices:
    """Says what is wrong while a command waits: at once, then now and then, and when it is over."""

    def __init__(self, console: Console, every: float = 15.0) -> None:
        self._console = console
        self._every = every
        self._again_at = 0.0
        self._known = False

    def tell(self, sentence: str | None) -> None:
        """The sentence was said, unless that was a moment ago; None when all is well."""
        if sentence is None:
            if self._known:
                self._console.print("it goes on", style="quiet")
            self._known, self._again_at = False, 0.0
        elif time.monotonic() >= self._again_at:
            self._console.print(one_line(sentence), style="care", markup=False)
            self._known, self._again_at = True, time.monotonic() + self._every


def one_line(text: str) -> str:
    """Text of others, as a terminal may have it: a file's name may hold line breaks and escape codes."""
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)
