"""How the demonstration is told: chapters, lines with the time, and promises that were kept or not."""

import time
from dataclasses import dataclass

from rich.markup import escape
from rich.table import Table

from holdfast.cli import terminal

MARGIN = 8


@dataclass(frozen=True, slots=True)
class IncidentCost:
    """What an incident cost at the provider: charges, and the distinct inputs they were for."""

    incident: str
    inputs: int
    charges: int


class Narrator:
    """Tells, and remembers whether every promise was kept."""

    def __init__(self, *, plain: bool = False, silent: bool = False) -> None:
        self.console = terminal.console(plain=plain, quiet=silent)
        fits = (self.console.encoding or "").lower().startswith("utf")
        self._marks = ("✓", "✗") if fits else ("kept:", "BROKEN:")
        self._began = time.monotonic()
        self.broken: list[str] = []
        self.interrupted = False

    @property
    def seconds(self) -> float:
        """Seconds since the story began."""
        return time.monotonic() - self._began

    def chapter(self, number: int, title: str) -> None:
        """A new part."""
        self.console.print(f"\n[head]{number}  {escape(title)}[/head]")

    def line(self, text: str, style: str = "") -> None:
        """Something happened. KeyboardInterrupt, once, when nobody wants to hear it any more."""
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt
        self._row(
            f"[quiet]{self.seconds:.1f} s[/quiet]", f"[{style}]{escape(text)}[/]" if style else escape(text)
        )

    def promise(self, text: str, *, held: bool) -> None:
        """A promise was tested."""
        if not held:
            self.broken.append(text)
        mark, style = (self._marks[0], "good") if held else (self._marks[1], "bad")
        self._row(f"[{style}]{mark}[/]", escape(text))

    def _row(self, left: str, text: str) -> None:
        row = Table.grid(padding=(0, 2, 0, 0))
        row.add_column(justify="right", width=MARGIN)
        row.add_column()
        row.add_row(left, text)
        self.console.print(row)

    def print(self, *things: object, style: str | None = None) -> None:
        """Print as it is."""
        self.console.print(*things, style=style)
