"""What a task costs in a database with a long history, against one with a short history.

Both stand side by side and are measured in turns of a few tasks, so that whatever else the machine does
hits both. A task is a claim and a finish that publishes.
"""

import contextlib
import statistics
import time
from collections.abc import Iterator, Mapping
from functools import partial

from sqlalchemy import bindparam, select

from bench import places, worker
from bench.claim import WARM, claim, finish
from bench.history import TENANTS, History
from bench.results import Report, Result, at_most, percentile, timed
from bench.sizes import Sizes
from holdfast.store.base import schema
from holdfast.store.base.database import Database
from holdfast.store.features import open_database
from holdfast.store.money import calls

SHORT = 1000
TURN = 25
MANY = 1000
KEYS = 1000
# Whatever its result, a lookup should not take longer than a network exchange with a provider.
LOOKUP_MS = 50.0
SOME_KEYS = select(schema.calls.c.key).limit(bindparam("most"))


def measure(report: Report, sizes: Sizes) -> None:
    """Growth of history and ledger, growth of the queue, and the lookup, on both databases."""
    for kind in (places.POSTGRESQL, places.SQLITE):
        with contextlib.ExitStack() as stack:
            short = stack.enter_context(_loaded(kind, finished=SHORT, paid=SHORT))
            long = stack.enter_context(_loaded(kind, finished=sizes.history, paid=sizes.history))
            costs = _costs({"short": short, "long": long}, sizes)
            _tell(report, f"{sizes.history:,} finished tasks and paid calls", kind, costs)
            _look_up(report, sizes, kind, long)
        with contextlib.ExitStack() as stack:
            short = stack.enter_context(_loaded(kind, finished=SHORT, tenants=MANY))
            long = stack.enter_context(_loaded(kind, finished=sizes.history, tenants=MANY))
            costs = _costs({"short": short, "long": long}, sizes)
            _tell(report, f"{sizes.history:,} finished tasks of {MANY:,} tenants", kind, costs)
        for tenants in (TENANTS, 100, MANY):
            with contextlib.ExitStack() as stack:
                few = stack.enter_context(_loaded(kind, queued=SHORT, tenants=TENANTS))
                many = stack.enter_context(_loaded(kind, queued=sizes.queued, tenants=tenants))
                costs = _costs({"short": few, "long": many}, sizes, ask=False)
                _tell(report, f"{sizes.queued:,} queued tasks of {tenants:,} tenants", kind, costs)


def look_up(report: Report, sizes: Sizes) -> None:
    """The lookup alone."""
    for kind in (places.POSTGRESQL, places.SQLITE):
        with _loaded(kind, paid=sizes.history) as db:
            _look_up(report, sizes, kind, db)


@contextlib.contextmanager
def _loaded(
    kind: str, *, finished: int = 0, paid: int = 0, queued: int = 0, tenants: int = TENANTS
) -> Iterator[Database]:
    with places.fresh(kind) as url:
        with History(url) as history:
            if finished:
                history.finished(finished, tenants=tenants)
            if paid:
                history.paid(paid)
            if queued:
                history.queued(queued, tenants=tenants)
        db = open_database(url, pool_size=1)
        try:
            yield db
        finally:
            db.close()


def _costs(databases: Mapping[str, Database], sizes: Sizes, *, ask: bool = True) -> dict[str, list[float]]:
    """Milliseconds per task of each database."""
    costs: dict[str, list[float]] = {name: [] for name in databases}
    for turn in range((sizes.samples + WARM) // TURN + 1):
        for name, db in databases.items():
            if ask:
                asking = worker.engine(db.engine.url.render_as_string(hide_password=False))
                for job in range(TURN):
                    assert asking.request(worker.ask(turn * TURN + job)).created
                asking.db.close()
            costs[name] += [timed(partial(_task, db)) for _ in range(TURN)]
    return {name: found[WARM:] for name, found in costs.items()}


def _task(db: Database) -> None:
    finish(db, claim(db))


def _tell(report: Report, what: str, kind: str, costs: Mapping[str, list[float]]) -> None:
    short, long = statistics.median(costs["short"]), statistics.median(costs["long"])
    report.add(
        Result("growth", f"{kind}: claim + finish, base", "ms", (short,)),
        Result("growth", f"{kind}: claim + finish, {what}", "ms", (long,)),
        Result("growth", f"{kind}: {what} / base", "ratio", (long / short,), at_most(1.3)),
    )


def _look_up(report: Report, sizes: Sizes, kind: str, db: Database) -> None:
    known = db.read(lambda tx: [row.key for row in tx.all(SOME_KEYS, {"most": sizes.history})])
    step = max(1, len(known) // KEYS)
    taken: list[float] = []
    for n in range(sizes.lookups):
        wanted = known[n % step :: step][:KEYS]
        began = time.perf_counter()
        found = calls.look_up(db, "default", wanted)
        taken.append((time.perf_counter() - began) * 1000)
        assert len(found) == len(wanted) == min(KEYS, len(known))
    what = f"{kind}: {KEYS:,} keys of {len(known):,}"
    report.add(
        Result("ledger", f"{what}, p50", "ms", (percentile(taken, 0.5),), at_most(LOOKUP_MS)),
        Result("ledger", f"{what}, p99", "ms", (percentile(taken, 0.99),)),
    )
