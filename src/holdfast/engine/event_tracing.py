"""Engine events for logs and traces: each thread knows what it is working on, and under which trace.

Claims and endings are reported in the thread that does the work, so what is set here applies to everything
that it logs and sends in between, and to threads started with its context.
"""

import threading

from holdfast.core.states import GUARDED_LANE
from holdfast.engine import events
from holdfast.engine.events import Claimed, Done, Ending, Renewed
from holdfast.store.base.database import Database
from holdfast.telemetry import context, traces

FAILED = frozenset({Ending.FAILED, Ending.OVERRAN})


class EventTracer:
    """Passes on the engine's events, and keeps the thread's context up to date."""

    def __init__(self, db: Database, tell: events.Tell) -> None:
        self._db = db
        self._tell = tell
        self._mine = threading.local()

    def __call__(self, happening: Claimed | Renewed | Done) -> None:
        """Handle an event."""
        match happening:
            case Claimed(claim):
                self._close("lost")  # an unexpected error came before the end was reported
                context.enter(claim)
                if traces.are_on():
                    name = "plan" if claim.plans else "slice"
                    name = "task" if claim.lane == GUARDED_LANE else name
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
