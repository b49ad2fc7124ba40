"""What is wrong with a flow: where in the file, in words, and the nearest name that would be right."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.core.errors import BadRequestError

MOST_FAULTS = 50
MOST_WORD = 60


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong. Lines and columns count from 1."""

    line: int
    column: int
    message: str
    suggestion: str | None = None

    @property
    def sentence(self) -> str:
        """The fault as a compiler would print it."""
        hint = f"; did you mean {self.suggestion}?" if self.suggestion is not None else ""
        return f"line {self.line}, column {self.column}: {self.message}{hint}"


class FlowError(BadRequestError):
    """The text is not a flow; `faults` says all that is wrong with it, in the order of the text."""

    code = "bad_flow"

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(sorted(faults, key=lambda each: (each.line, each.column)))[:MOST_FAULTS]
        more = f" (and {len(self.faults) - 1} more)" if len(self.faults) > 1 else ""
        super().__init__(f"{self.faults[0].sentence}{more}")


def nearest(word: object, known: Iterable[str]) -> str | None:
    """The known name that takes the fewest typing errors to be this word; None if none is close."""
    spelt = str(word)[:MOST_WORD].lower().replace("-", "_")
    names = [name for name in sorted(known) if len(name) <= MOST_WORD]
    ranked = ((_errors(spelt, name.lower()), abs(len(name) - len(spelt)), name) for name in names)
    close = min(ranked, default=None)
    return close[2] if close is not None and close[0] <= max(1, len(spelt) // 3) else None


def _errors(left: str, right: str) -> int:
    """Letters too many, missing, wrong, or exchanged with a neighbour."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for at, letter in enumerate(left, start=1):
        before, last, row = row, before, [at]
        for index, other in enumerate(right, start=1):
            cost = min(before[index] + 1, row[-1] + 1, before[index - 1] + (letter != other))
            if at > 1 and index > 1 and letter == right[index - 2] and left[at - 2] == other:
                cost = min(cost, last[index - 2] + 1)
            row.append(cost)
    return row[-1]
