"""The measured task of `bench.workers`: one mark in a file says that it started."""

import os

from bench.marks import Marks
from holdfast.engine.kinds import Kind, Supplies
from holdfast.engine.work import Work


def make(_supplies: Supplies) -> list[Kind]:
    """A kind that only leaves its mark."""
    marks = Marks(os.environ["BENCH_MARKS"])

    def run(work: Work) -> None:
        marks.add(int(work.subject.partition(":")[2]))

    return [Kind("noop", run)]
