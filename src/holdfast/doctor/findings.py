"""What a check says, and how a check is declared."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from holdfast.doctor.facts import DoctorFacts


class Severity(StrEnum):
    """How bad a problem is: will pay twice or lose work; probably will; worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def sign(self) -> str:
        """Its sign on a terminal."""
        return {"error": "✖", "warning": "▲", "note": "●"}[self.value]


class FindingState(StrEnum):
    """What became of a check: a problem; one that does no harm here; fine; or a fact was missing."""

    PROBLEM = "problem"
    HARMLESS = "harmless"
    PASSED = "passed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What a check saw of one application, server or file."""

    state: FindingState
    about: str
    seen: str
    fix: str = ""
    harmless: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """An outcome with the words of its check; the unit of every report."""

    id: str
    severity: Severity
    state: FindingState
    title: str
    about: str
    seen: str
    why: str
    harmless: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A check: its words, and a pure function that yields an outcome for each thing it looks at."""

    id: str
    severity: Severity
    title: str
    why: str
    fix: str
    evidence: tuple[str, ...]
    examine: Callable[[DoctorFacts], Iterable[CheckOutcome]]
    area: str

    def findings(self, facts: DoctorFacts) -> Iterator[Finding]:
        """What it says about these facts."""
        for outcome in self.examine(facts):
            shown = outcome.state in {FindingState.PROBLEM, FindingState.HARMLESS}
            yield Finding(
                self.id,
                self.severity,
                outcome.state,
                self.title,
                outcome.about,
                outcome.seen,
                self.why,
                outcome.harmless,
                (outcome.fix or self.fix) if shown else "",
            )


class CheckArea:
    """The checks of one area, in the order in which they are declared."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checks: list[Check] = []

    def check(
        self, id_: str, severity: Severity, *, title: str, why: str, fix: str, evidence: Iterable[str] = ()
    ) -> Callable[
        [Callable[[DoctorFacts], Iterable[CheckOutcome]]], Callable[[DoctorFacts], Iterable[CheckOutcome]]
    ]:
        """Declare the decorated function as the check with these words."""

        def declared(
            examine: Callable[[DoctorFacts], Iterable[CheckOutcome]],
        ) -> Callable[[DoctorFacts], Iterable[CheckOutcome]]:
            self.checks.append(Check(id_, severity, title, why, fix, tuple(evidence), examine, self.name))
            return examine

        return declared


def problem(about: str, seen: str, fix: str = "") -> CheckOutcome:
    """The condition holds and hurts."""
    return CheckOutcome(FindingState.PROBLEM, about, seen, fix)


def harmless(about: str, seen: str, reason: str, fix: str = "") -> CheckOutcome:
    """The condition holds, and does no harm here for this reason."""
    return CheckOutcome(FindingState.HARMLESS, about, seen, fix, reason)


def passed(about: str, seen: str) -> CheckOutcome:
    """The condition does not hold."""
    return CheckOutcome(FindingState.PASSED, about, seen)


def unknown(about: str, missing: str) -> CheckOutcome:
    """It cannot be told, for this reason."""
    return CheckOutcome(FindingState.UNKNOWN, about, missing)
