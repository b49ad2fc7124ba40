"""`Run`: what guarded code can do with the run that it is part of."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from holdfast.core.errors import FencedOutError, HoldfastError, LeaseLostError, MustWaitError, WorkStopped
from holdfast.engine.work import Work
from holdfast.guard import context
from holdfast.guard.signals import FencedOut, MustWait

T = TypeVar("T")


@contextlib.contextmanager
def signalling() -> Iterator[None]:
    """Errors of the engine that end an execution leave the block as signals."""
    try:
        yield
    except (FencedOutError, LeaseLostError) as error:
        raise FencedOut(error.message) from error
    except WorkStopped as error:
        raise MustWait(error.message, reason=error.code, delay=0.0) from error
    except MustWaitError as error:
        raise MustWait(error.message, reason=error.reason, delay=error.delay) from error


class Run:
    """The run of the guarded task that is being executed; `guard.run()` answers it."""

    def __init__(self, work: Work) -> None:
        self._work = work

    @property
    def id(self) -> str:
        """The id of the run, as `holdfast why` shows it."""
        return self._work.claim.run_id

    @property
    def subject(self) -> str:
        """What the run is about, like report:7."""
        return self._work.claim.subject

    @property
    def tenant(self) -> str:
        """Whose run it is."""
        return self._work.claim.tenant

    @property
    def generation(self) -> int:
        """Which version of the work this is."""
        return self._work.claim.generation

    @property
    def epoch(self) -> int:
        """Which execution of the run this is."""
        return self._work.claim.epoch

    @property
    def spent(self) -> Decimal:
        """What this execution has paid so far, in dollars."""
        return Decimal(self._work.spent.paid) / 1_000_000_000

    def again(self) -> contextlib.AbstractContextManager[None]:
        """Paid calls in the block are made even if their like was paid before.

        They belong to this run: when it is executed again, it gets the same answers for free.
        """
        return context.paying_again()

    def check(self) -> None:
        """Return while the execution may go on; call it in long loops. FencedOut or MustWait otherwise."""
        with signalling():
            self._work.check()

    def progress(
        self,
        done: int,
        total: int,
        *,
        unit: str = "",
        stages: Mapping[str, Sequence[int]] | None = None,
        line: str | None = None,
    ) -> None:
        """At least `done` of `total` is done, as `holdfast status` and the web UI show it."""
        with signalling():
            self._work.progress(done, total, unit=unit, stages=stages, line=line)

    def log(self, line: str) -> None:
        """The line is in the log of the run with its next write."""
        self._work.note(line)

    def call(self, body: Callable[[Work], T]) -> T:
        """What `body` answers for the work behind this run, with the engine's errors as signals."""
        with signalling():
            return body(self._work)


def no_run() -> HoldfastError:
    """The error of code that needs a run and has none."""
    return HoldfastError(
        "no guarded task is being executed here; call this from the body of one, in its own thread",
        code="no_run",
    )


Details = Mapping[str, Any]
