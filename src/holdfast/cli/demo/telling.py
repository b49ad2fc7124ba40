"""How the demonstration is told: chapters, lines with the time, and promises that were kept or not."""

import sys
import time
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape

from holdfast.cli import terminal


@dataclass(frozen=True, slots=True)
class Count:
    """What an incident cost at the provider: charges, and the distinct inputs they were for."""

    incident: str
    inputs: int
    charges: int


class Narrator:
    """Tells, and remembers whether every promise was kept."""

    def __init__(self, *, plain: bool = False, silent: bool = False) -> None:
        self.console = Console(
            theme=terminal.THEME,
            highlight=False,
            no_color=plain or None,
            soft_wrap=not sys.stdout.isatty(),
            quiet=silent,
        )
        fits = (self.console.encoding or "").lower().startswith("utf")
        self._marks = ("✓", "✗") if fits else ("kept:", "BROKEN:")
        self._began = time.monotonic()
        self.broken: list[str] = []

    @property
    def seconds(self) -> float:
        """Seconds since the story began."""
        return time.monotonic() - self._began

    def chapter(self, number: int, title: str) -> None:
        """A new part."""
        self.console.print(f"\n[head]{number}  {escape(title)}[/head]")

    def line(self, text: str, style: str = "") -> None:
        """Something happened."""
        self.console.print(f"[quiet]{self.seconds:7.1f} s[/quiet]  {escape(text)}", style=style)

    def promise(self, text: str, *, kept: bool) -> None:
        """A promise was tested."""
        if not kept:
            self.broken.append(text)
        mark, style = (self._marks[0], "good") if kept else (self._marks[1], "bad")
        self.console.print(f"[{style}]{mark:>9}[/{style}]  {escape(text)}")

    def print(self, *things: object, style: str | None = None) -> None:
        """Print as it is."""
        self.console.print(*things, style=style)
