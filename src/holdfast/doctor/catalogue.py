"""Every check, and the examination of facts by all of them."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from holdfast.doctor import (
    celery_checks,
    database_checks,
    installation_checks,
    lock_checks,
    provider_checks,
    rabbitmq_checks,
    redis_checks,
)
from holdfast.doctor.facts import DatabaseFacts, DoctorFacts, RabbitFacts, RedisFacts
from holdfast.doctor.findings import Check, Finding, FindingState, Severity

AREAS = (
    celery_checks.area,
    redis_checks.area,
    rabbitmq_checks.area,
    lock_checks.area,
    provider_checks.area,
    database_checks.area,
    installation_checks.area,
)
CHECKS: tuple[Check, ...] = tuple(check for area in AREAS for check in area.checks)
_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}
_ORDER = {check.id: number for number, check in enumerate(CHECKS)}


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """What the checks say, the worst first; `unreachable` are servers that could not be examined."""

    findings: tuple[Finding, ...]
    ignored: tuple[Finding, ...] = ()
    unreachable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def of(self, *states: FindingState) -> list[Finding]:
        """The findings in these states."""
        return [each for each in self.findings if each.state in states]

    def count(self, severity: Severity) -> int:
        """How many problems of this severity there are."""
        return sum(each.severity is severity for each in self.of(FindingState.PROBLEM))

    def reasons(self, state: FindingState) -> dict[str, list[Finding]]:
        """The findings in this state by why they are: harmless, or not known.

        Those of a server that did not answer are left out: `unreachable` says it once.
        """
        silent = {each.partition(": ")[2] for each in self.unreachable}
        grouped: dict[str, list[Finding]] = {}
        for finding in self.of(state):
            reason = finding.harmless or finding.seen
            if state is not FindingState.UNKNOWN or reason not in silent:
                grouped.setdefault(reason, []).append(finding)
        return grouped

    def fails(self, *, strict: bool) -> bool:
        """True if a check of CI should fail: by an error; with `strict` also by a warning."""
        return bool(self.count(Severity.ERROR) or (strict and self.count(Severity.WARNING)))

    def states(self) -> Counter[tuple[str, str, str]]:
        """How many findings there are, by check, severity and state."""
        return Counter((each.id, each.severity.value, each.state.value) for each in self.findings)


def examine(
    facts: DoctorFacts, ignore: Collection[str] = (), checks: Sequence[Check] = CHECKS
) -> DoctorReport:
    """What every check says about the facts; problems of the checks in `ignore` are listed apart."""
    findings: list[Finding] = []
    ignored: list[Finding] = []
    for check in checks:
        for finding in check.findings(facts):
            aside = finding.id in ignore and finding.state is FindingState.PROBLEM
            (ignored if aside else findings).append(finding)
    servers: tuple[RedisFacts | RabbitFacts | DatabaseFacts, ...]
    servers = (*facts.redis, *facts.rabbitmq, *facts.databases)
    unreachable = [f"{each.endpoint.shown}: {each.error}" for each in servers if each.error is not None]
    return DoctorReport(
        tuple(sorted(findings, key=lambda each: (_RANK[each.severity], _ORDER[each.id]))),
        tuple(ignored),
        () if facts.offline else tuple(dict.fromkeys(unreachable)),
        facts.notes,
    )
