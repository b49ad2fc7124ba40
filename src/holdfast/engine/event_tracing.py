"""What an engine tells, for logs and traces too: each thread knows what it works on, and under which trace.

Claims and endings are told in the thread that does the work, so what is set here holds for all that it logs
and sends in between, and for the threads that it starts with its context.
"""

import threading

from holdfast.engine import events
from holdfast.engine.events import Claimed, Done, Ending, Renewed
from holdfast.store.base.database import Database
from holdfast.telemetry import context, traces

FAILED = frozenset({Ending.FAILED, Ending.OVERRAN})


class Telling:
    """Passes on what the engine tells, and keeps the thread's own idea of its work up to date."""

    def __init__(self, db: Database, tell: events.Tell) -> None:
        self._db = db
        self._tell = tell
        self._mine = threading.local()

    def __call__(self, happening: Claimed | Renewed | Done) -> None:
        """Something happened."""
        match happening:
            case Claimed(claim):
                self._close("lost")  # an error that nobody foresaw came before the word that it was over
                context.enter(claim)
                if traces.are_on():
                    name = "plan" if claim.plans else "slice"
                    facts = {key: str(value) for key, value in context.fields(claim).items()}
                    self._mine.span = traces.start(name, traces.of_run(self._db, claim.run_id), facts)
            case Done(_, ending, reason):
                self._close(ending, reason if ending in FAILED else "")
                context.leave()
        self._tell(happening)

    def _close(self, ending: str, problem: str = "") -> None:
        span: traces.Span | None = getattr(self._mine, "span", None)
        self._mine.span = None
        if span is not None:
            span.tell(ending=ending)
            span.close(problem)
