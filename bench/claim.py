"""What one claim costs, and how many statements and transactions a no-op task takes."""

import time
from collections import Counter
from functools import partial
from typing import Any

from sqlalchemy import Engine, event

from bench import places, worker
from bench.results import Report, Result, at_most, percentile, timed
from bench.sizes import Sizes
from holdfast.core.records import Claim, Fenced, Spent
from holdfast.core.states import LANE_RANK
from holdfast.store.base.database import Database
from holdfast.store.features import open_database
from holdfast.store.protocol import claims, tasks

PIPELINES = [f"{worker.KIND}@1"]
TTL = 12.0
WARM = 20


def claim(db: Database) -> Claim:
    """The best task, claimed as a worker claims it."""
    found = claims.claim_best(
        db, lanes=list(LANE_RANK), pipelines=PIPELINES, owner="bench:1", token=db.token(), ttl=TTL
    )
    assert found is not None
    return found


def finish(db: Database, held: Claim) -> None:
    """The task is finished and its run published, as a worker does it."""
    outcome = tasks.finish(db, held, spent=Spent())
    assert not isinstance(outcome, Fenced)
    assert outcome.published


def measure(report: Report, sizes: Sizes) -> None:
    """Claim latency and statement counts on both databases; the bound is for PostgreSQL."""
    for kind in (places.POSTGRESQL, places.SQLITE):
        with places.fresh(kind) as url:
            for prepare in (False, True) if kind == places.POSTGRESQL else (False,):
                _measure(report, sizes, url, kind, prepare=prepare)


def _measure(report: Report, sizes: Sizes, url: str, kind: str, *, prepare: bool) -> None:
    asking = worker.engine(url)
    for job in range(sizes.samples + WARM):
        assert asking.request(worker.ask(job, "prepared" if prepare else "plain")).created
    asking.db.close()
    db = open_database(url, pool_size=1, prepare=prepare)
    for _ in range(WARM):
        finish(db, claim(db))
    counts = _count(db.engine)
    claimed: list[float] = []
    finished: list[float] = []
    for _ in range(sizes.samples):
        began = time.perf_counter()
        held = claim(db)
        claimed.append((time.perf_counter() - began) * 1000)
        finished.append(timed(partial(finish, db, held)))
    db.close()
    name = f"{kind}, prepared" if prepare else kind
    bound = at_most(5.0) if kind == places.POSTGRESQL else None
    report.add(
        Result("claim", f"claim p50, {name}", "ms", (percentile(claimed, 0.5),), bound),
        Result("claim", f"claim p99, {name}", "ms", (percentile(claimed, 0.99),)),
        Result("claim", f"finish and publish p50, {name}", "ms", (percentile(finished, 0.5),)),
        Result("claim", f"finish and publish p99, {name}", "ms", (percentile(finished, 0.99),)),
    )
    if not prepare:
        for what in ("statements", "transactions"):
            share = counts[what] / sizes.samples
            report.add(Result("claim", f"{what} per no-op task, {name}", "count", (share,)))


def _count(engine: Engine) -> Counter[str]:
    """Counts from now on what `engine` sends; SQLite's BEGIN is left out, as PostgreSQL's is."""
    counts: Counter[str] = Counter()

    @event.listens_for(engine, "before_cursor_execute")
    def _statement(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        counts["statements"] += not statement.startswith("BEGIN")

    @event.listens_for(engine, "commit")
    def _transaction(_connection: Any) -> None:
        counts["transactions"] += 1

    return counts
