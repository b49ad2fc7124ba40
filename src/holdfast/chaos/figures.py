"""What a scenario measured: one cell of the table."""

import statistics
from dataclasses import dataclass, field

from holdfast.chaos.expectations import ScenarioFailedError


@dataclass(frozen=True, slots=True)
class Figures:
    """Charges and distinct inputs by the meter's book, what was lost, and how long each recovery took."""

    charges: int
    distinct: int
    lost: int = 0
    recoveries: tuple[float, ...] = ()
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def ratio(self) -> str:
        """Charges ÷ distinct inputs; a dash where nothing was paid."""
        return f"{self.charges / self.distinct:.3f}" if self.distinct else "-"

    @property
    def recovery(self) -> str:
        """The median and the longest recovery in seconds; a dash where nobody died."""
        if not self.recoveries:
            return "-"
        return f"{statistics.median(self.recoveries):.1f}/{max(self.recoveries):.1f} s"

    def __add__(self, other: "Figures") -> "Figures":
        return Figures(
            self.charges + other.charges,
            self.distinct + other.distinct,
            self.lost + other.lost,
            self.recoveries + other.recoveries,
            tuple(dict.fromkeys(self.notes + other.notes)),
        )


class BreachError(ScenarioFailedError):
    """A promise was broken; the message says which, with the logs of the workers."""
