"""Workers are killed at random while something is derived from a collection, and what that cost is counted.

Two workers run all the time. One of them that holds a task is killed with `kill -9` at a random moment; the
other has to take over what it held, and a third is started in its stead. When a job ends before enough were
killed, the next one asks for the same with other notes, which pays for everything anew.
"""

import hashlib
import itertools
import json
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import select

from holdfast import bootstrap
from holdfast.chaos.waiting import until
from holdfast.chaos.worker_processes import WorkerProcess
from holdfast.core.states import LIVE, CallState, Status, TaskState
from holdfast.service.jobs import JobRequest
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from holdfast.store.base.schema import orders, tasks
from holdfast.store.derived import trees
from holdfast.testing.meter import Meter
from tests.jobs import graph_author
from tests.jobs.install import paragraphs

# Seconds until a call is answered: most kills hit one that is under way.
LATENCY = 0.3


def summary(messages: Sequence[Mapping[str, object]]) -> str:
    """A summary that depends on what was read, and on nothing else."""
    passages = str(messages[1]["content"])
    mark = hashlib.sha256(passages.encode()).hexdigest()[:8]
    return f"Summary {mark}\nThe passages {mark} say: {passages[:200]}"


def mind_map(messages: Sequence[Mapping[str, object]]) -> str:
    """A map of two topics: the first half of the lines, and the rest."""
    lines = re.findall(r"^ *(\d+)\. (.+)$", str(messages[1]["content"]), re.MULTILINE)
    half = max(1, len(lines) // 2)
    parts = [part for part in (lines[:half], lines[half:]) if part]
    topics = [{"title": part[0][1][:40], "lines": [int(number) for number, _ in part]} for part in parts]
    return json.dumps({"topics": topics})


def tree_documents(count: int) -> list[Upload]:
    """Texts of twenty chunks each."""
    return [Upload(paragraphs(f"name{at}", 20).encode(), f"{at}.txt") for at in range(count)]


def stories(count: int) -> list[Upload]:
    """Texts of named people and places."""
    names = ["".join(each) * 2 for each in itertools.islice(itertools.product("abcd", repeat=2), count)]
    return [Upload(graph_author.story(name, 60, at).encode(), f"{name}.txt") for at, name in enumerate(names)]


def outlines(count: int) -> list[Upload]:
    """Documents of three headings: a call each."""
    parts = ("first", "second", "third")
    return [
        Upload("\n\n".join(f"## name{at} {part}\n\nText." for part in parts).encode(), f"{at}.md")
        for at in range(count)
    ]


@dataclass(frozen=True)
class DerivedKind:
    """A kind, what its model says, and documents for it."""

    name: str
    chat: Callable[[Sequence[Mapping[str, object]]], str]
    write: Callable[[int], list[Upload]]


KINDS = {
    "raptor": DerivedKind("raptor", summary, tree_documents),
    "graph": DerivedKind("graph", graph_author.answer, stories),
    "mindmap": DerivedKind("mindmap", mind_map, outlines),
}


@dataclass
class KillFigures:
    """What the kills cost. `hit` are calls that were in flight at a kill, `doubted` those of orders in doubt.

    `resumed` are seconds from a kill until another worker had what was held; only with calls was it at work.
    """

    kills: int = 0
    jobs: int = 0
    hit: int = 0
    doubted: int = 0
    charges: int = 0
    distinct: int = 0
    resumed: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        ratio = self.charges / self.distinct
        slowest, median = max(self.resumed), sorted(self.resumed)[len(self.resumed) // 2]
        return (
            f"{self.kills} kills, {self.jobs} jobs, {self.charges} charges for {self.distinct} calls "
            f"({ratio:.3f}), {self.hit} in flight, {self.doubted} in doubt; "
            f"resumed after {median:.1f} s, at most {slowest:.1f} s"
        )


class KillScenario:
    """An installation whose workers die."""

    def __init__(
        self,
        kind: DerivedKind,
        meter: Meter,
        runtime: bootstrap.Runtime,
        start: Callable[[str], WorkerProcess],
        seed: int,
    ) -> None:
        self.kind, self.meter, self.runtime, self._start = kind, meter, runtime, start
        self.services = bootstrap.AppServices(runtime)
        self.chance = random.Random(seed)
        self.figures = KillFigures()
        self._numbers = itertools.count()
        self.run_id = ""
        self.workers: list[WorkerProcess] = []

    def run(self, kills: int) -> KillFigures:
        """So many workers were killed, every job succeeded, and what is published is whole."""
        self.meter.plan(latency=LATENCY)
        self.workers = [self._worker(), self._worker()]
        for worker in self.workers:
            worker.ready()
        self._request()
        while self.figures.kills < kills:
            self._kill()
        self.meter.plan(latency=0.0)
        self._finish()
        totals = self.meter.totals()
        self.figures.charges, self.figures.distinct = totals.charges, totals.distinct_inputs
        doubtful = select(orders.c.call_keys).where(orders.c.doubts > 0)
        rows = self.runtime.db.read(lambda tx: tx.all(doubtful))
        self.figures.doubted = sum(len(row.call_keys) for row in rows)
        return self.figures

    def _worker(self) -> WorkerProcess:
        return self._start(f"worker-{next(self._numbers)}")

    def _request(self) -> None:
        shelf = self.services.collections.get("default", "shelf")
        request = JobRequest(self.kind.name, {"notes": f"Job {self.figures.jobs}."})
        self.run_id = str(self.services.jobs.on_collection(RequestContext(), shelf, request).run_id)
        self.figures.jobs += 1

    def _is_over(self) -> bool:
        return self.services.jobs.view("default", self.run_id).job.run.status not in LIVE

    def _finish(self) -> None:
        until(self._is_over, 240, "the job does not end")
        run = self.services.jobs.view("default", self.run_id).job.run
        assert run.status is Status.SUCCESS, (run.status, run.error_code)
        (head,) = self.runtime.db.read(
            lambda tx: trees.of_collection(tx, "default", "shelf", self.kind.name, 9)
        )
        assert trees.faults(self.runtime.db, head) == trees.TreeFaults(0, 0, 0)

    def _held(self) -> dict[int, tuple[str, int]]:
        """Owner and epoch of each task that somebody works on."""
        held = select(tasks.c.id, tasks.c.owner, tasks.c.epoch).where(
            tasks.c.run_id == self.run_id, tasks.c.state == TaskState.RUNNING
        )
        return {row.id: (row.owner, row.epoch) for row in self.runtime.db.read(lambda tx: tx.all(held))}

    def _kill(self) -> None:
        """One that holds a task is dead, and another has all that it held."""
        until(lambda: self._held() or self._is_over(), 60, "nobody works")
        time.sleep(self.chance.uniform(0.0, 2 * LATENCY))
        held = self._held()
        if self._is_over():
            self._finish()
            self._request()
            return
        if not held:
            return
        owner, _ = held[self.chance.choice(sorted(held))]
        (victim,) = (worker for worker in self.workers if worker.owns(owner))
        victim.freeze()
        lost = {task: each for task, each in self._held().items() if victim.owns(each[0])}
        victim.kill()
        began = time.monotonic()
        self.workers.remove(victim)
        if not lost:
            self.workers.append(self._worker().ready())
            return
        self.figures.kills += 1
        self.figures.hit += self._in_flight(set(lost))
        until(lambda: self._is_taken_over(lost), 60, "nobody takes over")
        self.figures.resumed.append(time.monotonic() - began)
        self.workers.append(self._worker().ready())

    def _in_flight(self, lost: set[int]) -> int:
        sent = select(orders.c.call_keys, orders.c.task_id).where(orders.c.state == CallState.SENT)
        rows = self.runtime.db.read(lambda tx: tx.all(sent))
        return sum(len(row.call_keys) for row in rows if row.task_id in lost)

    def _is_taken_over(self, lost: Mapping[int, tuple[str, int]]) -> bool:
        """True when each is done, or held in a later epoch."""
        now = select(tasks.c.id, tasks.c.state, tasks.c.epoch).where(tasks.c.run_id == self.run_id)
        rows = {row.id: row for row in self.runtime.db.read(lambda tx: tx.all(now))}
        return all(
            rows[task].state == TaskState.DONE
            or (rows[task].state == TaskState.RUNNING and rows[task].epoch > epoch)
            for task, (_, epoch) in lost.items()
        )
