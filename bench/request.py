"""How fast requests are taken, and how quickly a duplicate is refused."""

import time

from bench import places, worker
from bench.results import Report, Result, percentile, timed
from bench.sizes import Sizes
from holdfast.core.states import Disposition


def measure(report: Report, sizes: Sizes) -> None:
    """One process asks, one request after another, each a transaction of its own."""
    kinds = [(places.POSTGRESQL, False), (places.POSTGRESQL, True), (places.SQLITE, False)]
    for kind, prepare in kinds:
        refused: list[float] = []
        rates = tuple(_ask(kind, sizes, refused, prepare=prepare) for _ in range(sizes.repeats))
        name = f"{kind}, prepared" if prepare else kind
        report.add(
            Result("request", f"accepted, {name}", "tasks/s", rates),
            Result("request", f"duplicate refused p50, {name}", "ms", (percentile(refused, 0.5),)),
            Result("request", f"duplicate refused p99, {name}", "ms", (percentile(refused, 0.99),)),
        )


def _ask(kind: str, sizes: Sizes, refused: list[float], *, prepare: bool) -> float:
    with places.fresh(kind) as url:
        engine = worker.engine(url, prepare=prepare)
        assert engine.request(worker.ask(0)).created
        began = time.perf_counter()
        for job in range(1, sizes.jobs):
            assert engine.request(worker.ask(job)).created
        rate = (sizes.jobs - 1) / (time.perf_counter() - began)

        def again() -> None:
            assert engine.request(worker.ask(1)).disposition is Disposition.DUPLICATE

        again()
        refused += [timed(again) for _ in range(sizes.samples)]
        engine.db.close()
        return rate
