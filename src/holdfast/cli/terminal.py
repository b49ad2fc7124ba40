"""How things look on a terminal, and in a pipe: the same words, without colours.

Titles, names, passages and error messages are text of others. An escape code in one of them could clear the
screen, set the window's title or make a line look like another. So whatever is shown passes `harmless`: by
`console()` every piece of every line, by `say`, `complain` and `show_json` all of it.
"""

import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
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


# Control characters of both sets but line break and tab; what turns the direction of text round; half
# characters, which no stream can take.
_HARMFUL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def _visible(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def harmless(text: str) -> str:
    r"""The text with every character that would command the terminal written out, like `\x1b`."""
    return _HARMFUL.sub(_visible, text)


class _HarmlessConsole(Console):
    """A console on which only its own styles command the terminal, not the text it is given."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The segments of what is shown; those that are text cannot be anything else."""
        for segment in super().render(renderable, options):
            if segment.control or not _HARMFUL.search(segment.text):
                yield segment
            else:
                yield Segment(harmless(segment.text), segment.style)


def console(*, plain: bool = False, quiet: bool = False) -> Console:
    """The console for standard output. In a pipe lines are long, so that none is broken in two."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return _HarmlessConsole(theme=THEME, width=width, highlight=False, no_color=plain or None, quiet=quiet)


def show_json(value: object) -> None:
    """`value` on standard output as one JSON document."""
    plainly = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    written = json.dumps(plain(value), indent=2, ensure_ascii=plainly)
    sys.stdout.write(_HARMFUL.sub(lambda match: f"\\u{ord(match[0]):04x}", written) + "\n")


def say(text: str, *, err: bool = False) -> None:
    """One line of text, as it is, on standard output or standard error."""
    (sys.stderr if err else sys.stdout).write(harmless(text) + "\n")


def announce(line: str) -> None:
    """The line is on standard output at once, whatever the log level is: others wait for it."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


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
    frameless = Table(box=None, pad_edge=False, header_style="quiet", padding=(0, 3, 0, 0))
    for name in columns:
        frameless.add_column(name, justify="right" if name in numbers else "left")
    return frameless


def cells(*values: object) -> list[str]:
    """Values as the cells of a row, safe from being read as markup."""
    return [escape(str(value)) for value in values]


def complain(message: str, code: str) -> None:
    """One line on standard error."""
    say(f"holdfast: {' '.join(message.split())} [{code}]", err=True)


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
                self._console.print("work continues", style="quiet")
            self._known, self._again_at = False, 0.0
        elif time.monotonic() >= self._again_at:
            self._console.print(one_line(sentence), style="care", markup=False)
            self._known, self._again_at = True, time.monotonic() + self._every


def one_line(text: str) -> str:
    """Text of others, as a terminal may have it: a file's name may hold line breaks and escape codes."""
    return harmless(text).replace("\n", "\\x0a").replace("\t", "\\x09")
