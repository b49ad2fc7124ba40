"""`holdfast doctor`: gathers facts, examines them, and prints what was found."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from holdfast.cli import terminal
from holdfast.cli.exit_codes import CommandError, Exit
from holdfast.doctor import catalogue, gather
from holdfast.doctor.facts import Declared, DoctorFacts
from holdfast.doctor.findings import Finding, FindingState, Severity
from holdfast.doctor.gather import Gathered

WIDEST = 100
INDENT = 6
STYLES = {Severity.ERROR: "bad", Severity.WARNING: "care", Severity.NOTE: "name"}
# For terminals whose encoding has no other signs.
ASCII = {"✖": "x", "▲": "!", "●": "o", "○": "o", "✔": "+", "?": "?", "│": "|", "·": "-"}


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """What to examine, and what counts."""

    apps: tuple[str, ...] = ()
    installation: bool = True
    offline: bool = False
    strict: bool = False
    ignore: frozenset[str] = frozenset()
    management: str | None = None
    declared: Declared = field(default_factory=Declared)
    show_all: bool = False


def doctor(options: DoctorOptions, *, as_json: bool) -> Exit:
    """The report is printed; the exit code says whether something was found, or could not be examined."""
    unknown_ids = sorted(options.ignore - {check.id for check in catalogue.CHECKS})
    if unknown_ids:
        message = f"there is no check {', '.join(unknown_ids)}; see docs/reference/doctor.md"
        raise CommandError(message, Exit.USAGE, code="unknown_check")
    facts = _facts(options)
    report = catalogue.examine(facts, options.ignore)
    if as_json:
        _show_json(report, facts)
    else:
        ReportPrinter(terminal.console(), facts, report, show_all=options.show_all).print()
    if report.fails(strict=options.strict):
        return Exit.FAILED
    return Exit.NOT_READY if report.unreachable else Exit.OK


def _facts(options: DoctorOptions) -> DoctorFacts:
    gathered, own, folder = Gathered(), None, None
    if options.apps:
        gathered += gather.applications(options.apps, offline=options.offline, management=options.management)
    if options.installation:
        # Only who examines an installation waits until all of it is imported.
        from holdfast.cli import doctor_installation  # noqa: PLC0415

        examined = doctor_installation.gathered(offline=options.offline, management=options.management)
        gathered, own, folder = gathered + examined.gathered, examined.own, examined.folder
    return gather.assembled(gathered, options.declared, own, folder=folder, offline=options.offline)


def _show_json(report: catalogue.DoctorReport, facts: DoctorFacts) -> None:
    terminal.show_json(
        {
            "problems": {severity.value: report.count(severity) for severity in Severity},
            "findings": report.findings,
            "ignored": report.ignored,
            "unreachable": report.unreachable,
            "notes": report.notes,
            "versions": facts.versions,
        }
    )


class ReportPrinter:
    """The report on a terminal: what is wrong, why, and the fix to paste; then everything else in a line."""

    def __init__(
        self, console: Console, facts: DoctorFacts, report: catalogue.DoctorReport, *, show_all: bool
    ) -> None:
        self._console = console
        self._facts = facts
        self._report = report
        self._all = show_all
        self._width = min(console.width, WIDEST)
        self._ascii = (sys.stdout.encoding or "").lower().replace("-", "") not in {"utf8", "utf16"}

    def print(self) -> None:
        """Everything."""
        for line in self._subjects():
            self._console.print(Text(line, "quiet"), soft_wrap=True)
        self._console.print()
        problems = self._report.of(FindingState.PROBLEM)
        for finding in problems:
            self._problem(finding)
        self._harmless()
        if self._all:
            self._listed("passed", "✔", "good", self._report.of(FindingState.PASSED))
        self._unknown()
        self._summary(problems)

    def _sign(self, text: str) -> str:
        return "".join(ASCII.get(each, each) for each in text) if self._ascii else text

    def _subjects(self) -> Iterator[str]:
        """What was examined, in a line or two."""
        for app in self._facts.apps:
            yield self._sign(f"{app.name} · broker {app.broker.shown}")
        for database in self._facts.databases:
            release = f", {database.version}" if database.version else ""
            yield self._sign(f"database of {database.of} · {database.endpoint.shown}{release}")
        releases = self._facts.versions
        known = [f"{name} {releases[name]}" for name in ("celery", "kombu") if name in releases]
        known += [f"{client.library} {releases.get(client.library, '?')}" for client in self._facts.clients]
        for server in self._facts.redis:
            known += [f"Redis {server.version}"] if server.version else []
        for broker in self._facts.rabbitmq:
            known += [f"RabbitMQ {broker.version}"] if broker.version else []
        yield self._sign(" · ".join(dict.fromkeys(known)))

    def _block(self, text: Text, first: str = " " * INDENT, style: str = "") -> None:
        """Lines that start below each other, the first one after `first`; no line ends in spaces."""
        for number, line in enumerate(text.wrap(self._console, max(20, self._width - INDENT))):
            line.rstrip()
            start = Text()  # without a style of its own, which the rest of the line would have as well
            start.append(self._sign(first) if number == 0 else " " * INDENT, style)
            self._console.print(start.append_text(line), soft_wrap=True)

    def _line(self, finding: Finding, sign: str, style: str) -> None:
        line = Text(finding.seen)
        line.append(f"  {finding.about}", "name")
        self._block(line, f"{sign} {finding.id:<4}", style)

    def _problem(self, finding: Finding) -> None:
        head = Text(finding.title, "head")
        head.append(f"  {finding.about}", "name")
        self._block(head, f"{finding.severity.sign} {finding.id:<4}", STYLES[finding.severity])
        self._block(Text(finding.seen))
        self._block(Text(finding.why, "quiet"))
        self._fix(finding.fix)
        self._console.print()

    def _fix(self, fix: str) -> None:
        """The lines to paste, unbroken whatever the width is."""
        for line in fix.splitlines():
            text = Text(" " * INDENT)
            text.append(self._sign("│ "), "quiet")
            text.append(line, "quiet" if line.lstrip().startswith("#") else "good")
            text.rstrip()
            self._console.print(text, soft_wrap=True)

    def _harmless(self) -> None:
        reasons = self._report.reasons(FindingState.HARMLESS)
        if not reasons:
            return
        self._console.print(Text("Would hurt elsewhere, harmless here", "head"))
        for reason, findings in reasons.items():
            for finding in findings:
                self._line(finding, "○", "good")
            self._block(Text(f"because {reason}", "quiet"))
        self._console.print()

    def _listed(self, heading: str, sign: str, style: str, findings: Sequence[Finding]) -> None:
        if not findings:
            return
        self._console.print(Text(heading.capitalize(), "head"))
        for finding in findings:
            self._line(finding, sign, style)
        self._console.print()

    def _unknown(self) -> None:
        """What could not be told, once for each reason."""
        reasons = self._report.reasons(FindingState.UNKNOWN)
        lines = [f"{', '.join(dict.fromkeys(f.id for f in those))}: {why}" for why, those in reasons.items()]
        for heading, texts, style in (
            ("Not known", lines, "quiet"),
            ("Not examined", (*self._report.unreachable, *self._report.notes), "care"),
        ):
            if texts:
                self._console.print(Text(heading, "head"))
                for text in texts:
                    self._block(Text(text, style), "    ? ", "name")
                self._console.print()

    def _summary(self, problems: Sequence[Finding]) -> None:
        counts = {severity: self._report.count(severity) for severity in Severity}
        words = [
            f"{number} {severity.value}{'' if number == 1 else 's'}"
            for severity, number in counts.items()
            if number
        ]
        sign = "✖" if counts[Severity.ERROR] else "▲" if problems else "✔"
        style = "bad" if counts[Severity.ERROR] else "care" if problems else "good"
        line = Text(", ".join(words) if words else "no problems", "head")
        rest = [
            f"{len(self._report.of(state))} {word}"
            for state, word in (
                (FindingState.HARMLESS, "harmless here"),
                (FindingState.PASSED, "passed"),
                (FindingState.UNKNOWN, "not known"),
            )
            if self._report.of(state)
        ]
        if self._report.ignored:
            ids = ", ".join(dict.fromkeys(each.id for each in self._report.ignored))
            rest.append(f"ignored: {ids}")
        line.append(self._sign("".join(f" · {each}" for each in rest)), "quiet")
        self._block(line, f"{sign:<6}", style)
        if problems:
            self._block(Text("Each check with its evidence: docs/reference/doctor.md", "quiet"))
