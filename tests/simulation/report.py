"""What many seeds showed together: statistics, coverage as a table, and the failures."""

import statistics
from collections import Counter
from dataclasses import dataclass, field

from tests.simulation.runner import Result
from tests.simulation.scenario import POINTS

ENOUGH_CRASHES = 50
ENOUGH_STEPS = 150
ENOUGH_FAULTS = 2


@dataclass(slots=True)
class Report:
    """The sum of many results."""

    steps: list[int] = field(default_factory=list)
    fault_counts: list[int] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    crashes: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    dispositions: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    skips: Counter[str] = field(default_factory=Counter)
    recoveries: list[tuple[float, float]] = field(default_factory=list)
    failures: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """One more seed."""
        self.steps.append(result.steps)
        self.fault_counts.append(sum(result.faults.values()))
        self.faults.update(result.faults)
        self.seen.update(set(result.points))
        self.crashes.update(set(result.crashes))
        self.lost.update(set(result.lost))
        self.dispositions.update(result.dispositions)
        self.endings.update(result.endings)
        self.skips.update(result.skips)
        self.recoveries.extend(result.recoveries)
        if result.failure:
            self.failures.append(result)

    @property
    def seeds(self) -> int:
        """How many seeds were lived through."""
        return len(self.steps)

    def shallow(self) -> list[str]:
        """Why this many schedules would prove less than they should; empty when they are deep enough."""
        reasons = []
        if statistics.median(self.steps) < ENOUGH_STEPS:
            reasons.append(f"the median schedule has fewer than {ENOUGH_STEPS} steps")
        if statistics.median(self.fault_counts) < ENOUGH_FAULTS:
            reasons.append(f"the median schedule has fewer than {ENOUGH_FAULTS} faults")
        few = [point for point in sorted(self.seen) if self.crashes[point] < ENOUGH_CRASHES]
        if few and self.seeds >= 20_000:
            reasons.append(f"fewer than {ENOUGH_CRASHES} crashes at: {', '.join(few)}")
        return reasons

    def table(self, seconds: float) -> str:
        """The coverage, for people."""
        pace = self.seeds / seconds * 60 if seconds else 0.0
        steps, faults = statistics.median(self.steps), statistics.median(self.fault_counts)
        lines = [
            f"{self.seeds} seeds in {seconds:.0f} s ({pace:.0f} a minute), {sum(self.steps)} steps",
            f"median steps {steps:.0f}, most {max(self.steps)}; median faults {faults:.0f}",
            "",
            f"{'fault point':<24}{'reached in seeds':>18}{'crashed in seeds':>18}{'answer lost in':>16}",
        ]
        lines += [
            f"{point:<24}{self.seen[point]:>18}{self.crashes[point]:>18}{self.lost[point] or '':>16}"
            for point in sorted(set(self.seen) | set(POINTS))
        ]
        for name in ("dispositions", "endings", "skips", "faults"):
            counts: Counter[str] = getattr(self, name)
            lines += [
                "",
                f"{name}: " + ", ".join(f"{word} {number}" for word, number in counts.most_common()),
            ]
        if self.recoveries:
            took, beyond = zip(*self.recoveries, strict=True)
            what = f"recovery of {len(self.recoveries)} tasks with one fault and an idle worker"
            lines += [
                "",
                f"{what}: median {statistics.median(took):.1f} s, longest {max(took):.1f} s (virtual)",
            ]
            lines += [f"beyond lease time and one sweep: longest {max(beyond):.1f} s, for slow steps"]
        return "\n".join(lines)


def explain(result: Result) -> str:
    """A failure: the broken promise, how to see it again, and the end of its story."""
    return (
        f"\nseed {result.seed} broke {result.failure}\n"
        f"replay: make simulate SEED={result.seed}\n"
        f"the last events:\n{result.story}\n"
    )
