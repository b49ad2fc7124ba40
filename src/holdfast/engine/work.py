"""`Work`: the argument of a kind's functions. Every effect goes through it, and every effect is fenced."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from holdfast.core import keys
from holdfast.core.errors import (
    BadRequestError,
    DrainingError,
    FencedOutError,
    LeaseLostError,
    TimeLimitError,
    WorkError,
)
from holdfast.core.ports import Host
from holdfast.core.records import Chunk, Claim, EarlierSlice, Fenced, Outcome, Spent
from holdfast.core.text import plain
from holdfast.engine.kinds import Kind
from holdfast.leases.base import LeaseTerms
from holdfast.ledger.pay import Call, Ledger
from holdfast.store.base.database import Database
from holdfast.store.protocol import claims, phases, run_logs, tasks

STAGE_BATCH = 200
MOST_POSITION = 2**31 - 1
MOST_COUNT = 2**53
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tools:
    """What the work of one process shares."""

    db: Database
    host: Host
    ledger: Ledger
    terms: LeaseTerms
    draining: threading.Event


class Work:
    """One claimed task in progress. It is the `Holder` that the ledger checks before it sends."""

    def __init__(self, tools: Tools, claim: Claim, kind: Kind, sent_at: float) -> None:
        self._tools = tools
        self._claim = claim
        self._trusted_until = tools.terms.trusted_until(sent_at)
        self._lost: str | None = None
        self._began = sent_at
        self._soft_at = sent_at + kind.soft_limit
        self.hard_at = sent_at + kind.hard_limit
        self.payload: Mapping[str, Any] = claim.payload
        self.overran = False
        # Its last transition is under way: a renewal refused from now on was overtaken by that.
        self.is_ending = False
        # The body has ended the run in a transaction of its own: there is nothing left to record.
        self.has_ended = False
        self.is_given_up = False
        self._waits = False
        self.may_copy = True
        self.spent = Spent()
        self.staged = 0
        self._counted: set[str] = set()
        self._positions: set[int] = set()
        self._noted = 0
        self._lines: list[run_logs.Line] = []

    @property
    def claim(self) -> Claim:
        """The claim under which everything is written."""
        return self._claim

    @property
    def db(self) -> Database:
        """The database, to read from; whatever is written goes through the methods of this class."""
        return self._tools.db

    @property
    def subject(self) -> str:
        """What the work is done on."""
        return self._claim.subject

    @property
    def options(self) -> Mapping[str, Any]:
        """The options frozen into the run."""
        return self._claim.options

    @property
    def content(self) -> str:
        """The content digest or reference frozen into the run."""
        return self._claim.content

    @property
    def phase(self) -> int:
        """The phase of the run; 0 is the first."""
        return self._claim.phase

    def earlier(self, phase: int | None = None) -> list[EarlierSlice]:
        """The finished slices of the earlier phases of this run, or of one of them, in order."""
        slices = self._still_held(phases.earlier(self._tools.db, self._claim))
        return [one for one in slices if phase is None or one.phase == phase]

    def earlier_chunks(self, phase: int | None = None) -> Iterator[Chunk]:
        """The chunks staged by the earlier phases of this run, or by one of them, in order.

        Only their own run may see them before it is published.
        """
        slices = [one.number for one in self.earlier(phase)]
        after = (min(slices, default=0), -1)
        while slices:
            self.check()
            page = self._still_held(phases.earlier_chunks(self._tools.db, self._claim, slices[-1], after))
            if not page:
                return
            yield from (chunk for _, chunk in page)
            number, last = page[-1]
            after = (number, last.position)

    def _still_held(self, answer: T | None) -> T:
        if answer is None:
            raise self._refused("read", "stale_epoch")
        return answer

    def trust(self, sent_at: float) -> None:
        """A renewal sent at `sent_at` was granted."""
        self._trusted_until = max(self._trusted_until, self._tools.terms.trusted_until(sent_at))

    def lose(self, reason: str) -> None:
        """The lease is gone; every later check raises."""
        self._lost = reason

    def overrun(self) -> None:
        """The hard time limit has passed; that counts as an attempt."""
        self.overran = True
        self.lose("it exceeded its hard time limit")

    def trusted(self) -> bool:
        """True while the lease is trusted. Local clocks can only make this false sooner."""
        return self._lost is None and self._tools.host.clock() < self._trusted_until

    def trusted_until(self) -> float:
        """When trust ends, by the host's clock."""
        return self._trusted_until

    def waiting(self, waits: bool) -> None:
        """Record whether the work only waits for another's order: then its death says nothing about it."""
        if waits != self._waits:
            claims.note_wait(self._tools.db, self._claim, waits=waits)
            self._waits = waits

    def check(self) -> None:
        """Return while the work may continue. Call it in every long loop."""
        if not self.trusted():
            raise LeaseLostError(
                f"the lease is no longer trusted: {self._lost or 'it was not renewed in time'}"
            )
        if self._tools.draining.is_set():
            raise DrainingError("the worker is stopping; the task is released")
        if self._tools.host.clock() > self._soft_at:
            limit = self._soft_at - self._began
            raise TimeLimitError(
                f"the task exceeded its time limit of {limit:.0f} s; split it or raise the limit"
            )

    def pay(self, calls: Sequence[Call], ledger: Ledger | None = None) -> tuple[bytes, ...]:
        """The results of the calls, each paid once for the tenant, replayed for free after a crash.

        `ledger` serves providers that are not set up here.
        """
        if not calls:
            return ()
        payment = (ledger or self._tools.ledger).pay(self, calls, self._counted)
        self.spent += payment.spent
        return payment.results

    def stage(self, chunks: Sequence[Chunk]) -> None:
        """The chunks are stored under this generation, invisible until it is published."""
        for start in range(0, len(chunks), STAGE_BATCH):
            self.check()
            batch = self.checked(chunks[start : start + STAGE_BATCH])
            self._land(tasks.stage(self._tools.db, self._claim, batch))
            self.staged += len(batch)

    def checked(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """The chunks as both databases can store them; WorkError for one that neither can."""
        return [self._checked(chunk) for chunk in chunks]

    def progress(
        self,
        done: int,
        total: int,
        *,
        unit: str = "",
        stages: Mapping[str, Sequence[int]] | None = None,
        line: str | None = None,
    ) -> None:
        """At least `done` of `total` is done; a line may be added to the run's log."""
        self.check()
        for count in (done, total, *(number for pair in (stages or {}).values() for number in pair)):
            if type(count) is not int or not 0 <= count <= MOST_COUNT:
                raise WorkError(
                    f"progress {count!r} is not a count from 0 to {MOST_COUNT}", code="bad_progress"
                )
        if line is not None:
            self.note(line)
        report = tasks.Report(done, total, plain(unit), stages, self.take_lines(), self.spent)
        self._land(tasks.advance(self._tools.db, self._claim, report))

    def note(self, line: str) -> None:
        """The line is in the run's log with the next write about the task: it costs no write of its own."""
        # The ids order lines that have the same time.
        self._noted += 1
        phase = f"phase {self.phase + 1}, " if self.phase else ""
        which = "" if self._claim.ordinal == 0 else f"{phase}slice {self._claim.ordinal}: "
        line_id = f"{self._noted:08d}-{self._tools.host.token()}"
        self._lines.append((line_id, f"{which}{plain(line)}"))

    def unwritten_lines(self) -> tuple[run_logs.Line, ...]:
        """The lines not written yet, for a write that may be rolled back."""
        return tuple(self._lines)

    def take_lines(self) -> tuple[run_logs.Line, ...]:
        """The lines not written yet; the caller must write them."""
        taken, self._lines = tuple(self._lines), []
        return taken

    def _checked(self, chunk: Chunk) -> Chunk:
        for number in (chunk.position, chunk.page or 0):
            if type(number) is not int or not 0 <= number <= MOST_POSITION:
                message = f"a chunk's position must be a number from 0 to {MOST_POSITION}, not {number!r}"
                raise WorkError(message, code="bad_chunk")
        if not isinstance(chunk.text, str):
            raise WorkError(
                f"a chunk's text must be a str, not {type(chunk.text).__name__}", code="bad_chunk"
            )
        if chunk.position in self._positions:
            raise WorkError(f"two chunks of one slice have position {chunk.position}", code="bad_chunk")
        try:
            if chunk.data != {}:
                keys.canonical(dict(chunk.data))
        except (BadRequestError, TypeError, ValueError) as error:
            raise WorkError(f"a chunk's data must be a JSON object: {error}", code="bad_chunk") from error
        self._positions.add(chunk.position)
        text = plain(chunk.text)
        return chunk if text is chunk.text else replace(chunk, text=text)

    def _land(self, outcome: Outcome) -> None:
        if isinstance(outcome, Fenced):
            raise self._refused("write", outcome.reason)

    def _refused(self, what: str, reason: str) -> FencedOutError:
        self.lose(reason)
        return FencedOutError(f"the {what} was refused: {reason}")
