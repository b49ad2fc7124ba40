"""A measured number, the bound it should keep, and how both are shown."""

import datetime as dt
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

BEGIN, END = "<!-- numbers: written by bench.core --page -->", "<!-- end of numbers -->"


@dataclass(frozen=True, slots=True)
class Bound:
    """The number that was promised."""

    value: float
    least: bool

    def holds(self, measured: float) -> bool:
        """Whether `measured` keeps the promise."""
        return measured >= self.value if self.least else measured <= self.value

    def __str__(self) -> str:
        return f"{'≥' if self.least else '≤'} {self.value:g}"


def at_least(value: float) -> Bound:
    """More is better."""
    return Bound(value, least=True)


def at_most(value: float) -> Bound:
    """Less is better."""
    return Bound(value, least=False)


@dataclass(frozen=True, slots=True)
class Result:
    """One row: the median of the samples (one per repeat), or the one number that there is."""

    part: str
    name: str
    unit: str
    samples: tuple[float, ...]
    bound: Bound | None = None
    note: str = ""

    @property
    def measured(self) -> float:
        """The median."""
        return statistics.median(self.samples)

    @property
    def verdict(self) -> str:
        """`ok`, `miss`, or nothing where nothing was promised."""
        if self.bound is None:
            return ""
        return "ok" if self.bound.holds(self.measured) else "miss"

    @property
    def shown(self) -> tuple[str, str, str, str, str, str]:
        """The row as text."""
        low, high = min(self.samples), max(self.samples)
        spread = f" ({_number(low)}-{_number(high)})" if len(self.samples) > 1 else ""
        target = str(self.bound) if self.bound else ""
        return (self.part, self.name, _number(self.measured) + spread, self.unit, target, self.verdict)


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


@dataclass(slots=True)
class Report:
    """Everything one run measured."""

    command: str
    results: list[Result] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    software: dict[str, str] = field(default_factory=dict)
    when: str = field(default_factory=lambda: dt.datetime.now(dt.UTC).strftime("%Y-%m-%d"))

    def add(self, *found: Result) -> None:
        """Keep these rows."""
        self.results += found

    def say(self, note: str) -> None:
        """Keep a sentence that a reader of the numbers must know, and say it now."""
        self.notes.append(note)
        Console(stderr=True).print(f"[bold yellow]{note}[/]")

    @property
    def machine(self) -> str:
        """What it ran on, and whether others used it."""
        most = max(self.busy, default=0.0)
        others = "quiet" if most < 0.08 else f"shared: others used up to {most:.0%} of it between repeats"
        return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}; {others}"

    def print(self) -> None:
        """Show the table."""
        table = Table(title=f"Holdfast core, {self.when}, {self.machine}")
        for heading in ("part", "what", "measured", "unit", "target", ""):
            table.add_column(heading, justify="right" if heading in {"measured", "target"} else "left")
        colours = {"ok": "green", "miss": "bold red", "": ""}
        for result in self.results:
            table.add_row(*result.shown, style=None if not result.verdict else colours[result.verdict])
        console = Console(width=None if os.isatty(1) else 140)
        console.print(table)
        for note in self.notes:
            console.print(f"note: {note}")

    def write_json(self, path: Path) -> None:
        """The same for programs."""
        rows: list[dict[str, Any]] = [
            asdict(each) | {"measured": each.measured, "verdict": each.verdict} for each in self.results
        ]
        about = {"when": self.when, "machine": self.machine, "command": self.command, "notes": self.notes}
        text = json.dumps(about | {"software": self.software, "busy": self.busy, "results": rows}, indent=1)
        path.write_text(text + "\n", encoding="utf-8")

    def write_page(self, path: Path) -> None:
        """The numbers stand between the two marks of the page."""
        before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
        _, _, after = rest.partition(END)
        software = ", ".join(f"{name} {version}" for name, version in self.software.items())
        lines = [f"Measured on {self.when} with `{self.command}`. Machine: {self.machine}. {software}.", ""]
        lines += ["| part | what | measured | unit | target | |", "|---|---|---|---|---|---|"]
        lines += ["| " + " | ".join(result.shown) + " |" for result in self.results]
        lines += ["", *(f"- {note}" for note in self.notes)]
        text = f"{before}{BEGIN}\n\n" + "\n".join(lines).rstrip() + f"\n\n{END}{after}"
        path.write_text(text, encoding="utf-8")


def percentile(samples: Iterable[float], share: float) -> float:
    """The value that `share` (0 to 1) of the samples do not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    """Repeat by repeat, for the two of one repeat met the same weather."""
    return tuple(mine / other for mine, other in zip(ours, theirs, strict=True))


def timed(body: Callable[[], object]) -> float:
    """Milliseconds that `body` took."""
    started = time.perf_counter()
    body()
    return (time.perf_counter() - started) * 1000
