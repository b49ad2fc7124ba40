"""One worker process of ours: claims, runs and finishes no-op tasks until it is told to stop.

python -m bench.worker URL MARKS [prepare] [profile=FILE]
"""

import cProfile
import signal
import sys

from bench import marks
from holdfast.core.records import Ask
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.engine.kinds import Kind, Result
from holdfast.engine.work import Work
from holdfast.leases.sql import SqlLeases
from holdfast.store.features import open_database

KIND = "noop"


def engine(url: str, started: marks.Marks | None = None, *, prepare: bool = False) -> Engine:
    """An engine as a worker has it: leases renewed through a connection of their own."""

    def run(work: Work) -> Result:
        if started is not None:
            started.add(int(work.subject.partition(":")[2]))
        return None

    db = open_database(url, pool_size=2, prepare=prepare)
    leases = SqlLeases(open_database(url, pool_size=1, prepare=prepare))
    return Engine(db, EngineDependencies(kinds=[Kind(KIND, run)], leases=leases))


def ask(job: int, tenant: str = "default") -> Ask:
    """The request of one no-op run."""
    return Ask(kind=KIND, subject=f"job:{job}", tenant=tenant)


def main(url: str, path: str, *words: str) -> None:
    """Work until SIGTERM."""
    options = dict(word.partition("=")[::2] for word in words)
    started = marks.Marks(path)
    worker = engine(url, started, prepare="prepare" in options)
    signal.signal(signal.SIGTERM, lambda *_: worker.drain())
    marks.wait_for_go()
    profile = cProfile.Profile() if "profile" in options else None
    with worker:
        if profile:
            profile.enable()
        while not worker.draining.is_set():
            if not worker.work_off(most=1000):
                worker.host.sleep(0.005)
        if profile:
            profile.disable()
            profile.dump_stats(options["profile"])


if __name__ == "__main__":
    main(*sys.argv[1:])
