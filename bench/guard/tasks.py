"""What guarding a task costs beside plain `acks_late` Celery: `python -m bench.guard.tasks`.

One process: tasks are published to a broker in memory, and each message is executed as Celery's worker does
it. Guarded and plain tasks take turns. Counted are processor time, of the publisher and of the worker, and
durable commits.
"""

import argparse
import secrets
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from celery import Celery
from celery.worker.request import Request

from bench import places
from holdfast import Guard, faults
from holdfast.guard.worker_requests import GuardedRequest


class NoOp:
    """An application with the same task twice: guarded and plain."""

    def __init__(self, url: str) -> None:
        queue = f"bench-{secrets.token_hex(4)}"
        self._app = Celery(queue, broker="memory://", backend="cache+memory://", set_as_current=False)
        self._app.conf.update(task_default_queue=queue)
        self.guard = Guard(self._app, database=url, sweep=False)
        self.guarded = self.guard.task("order:{number}", name="bench.guarded")(_no_op)
        self.plain = self._app.task(acks_late=True, name="bench.plain", shared=False)(_no_op)
        self._connection = self._app.connection()
        self._queue = self._connection.SimpleQueue(queue)
        self._number = 0

    def publish(self, task: Any, count: int) -> float:
        """Processor time of publishing so many calls."""
        began = time.process_time()
        for _ in range(count):
            self._number += 1
            task.delay(self._number)
        return time.process_time() - began

    def execute(self, task: Any, count: int) -> float:
        """Processor time of executing as many messages."""
        request_class = GuardedRequest if task is self.guarded else Request
        began = time.process_time()
        for _ in range(count):
            message = self._queue.get(timeout=5)
            request_class(message, app=self._app, task=task, hostname="bench").execute()
            message.ack()
        return time.process_time() - began

    def close(self) -> None:
        """Everything is closed."""
        self._queue.close()
        self._connection.release()
        self.guard.close()


def _no_op(number: int) -> int:
    return number


def commits(part: Callable[[], object]) -> Counter[str]:
    """The transactions that a part commits, by name."""
    counted: Counter[str] = Counter()

    def note(point: str) -> None:
        name, _, moment = point.rpartition(".")
        counted[name] += moment == "committed"

    with faults.armed(note):
        part()
    return +counted


def main(words: Sequence[str]) -> int:
    """Print what a guarded call costs more than a plain one."""
    parser = argparse.ArgumentParser(prog="python -m bench.guard.tasks", description=__doc__)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--count", type=int, default=150)
    options = parser.parse_args(words)
    for database in (places.SQLITE, places.POSTGRESQL):
        with places.fresh(database) as url:
            bench = NoOp(url)
            try:
                _measure(database, bench, options.repeats, options.count)
            finally:
                bench.close()
    return 0


def _measure(database: str, bench: NoOp, repeats: int, count: int) -> None:
    for task in (bench.guarded, bench.plain):
        bench.publish(task, 20)
        bench.execute(task, 20)
    more: dict[str, list[float]] = {"publish": [], "execute": []}
    for _ in range(repeats):
        spent = {}
        for name, task in (("guarded", bench.guarded), ("plain", bench.plain)):
            spent[name] = bench.publish(task, count), bench.execute(task, count)
        for at, part in enumerate(more):
            more[part].append((spent["guarded"][at] - spent["plain"][at]) / count * 1000)
    for part, values in more.items():
        print(
            f"{database}: {part}: {statistics.median(values):.2f} ms of processor time more than plain "
            f"({min(values):.2f}-{max(values):.2f})"
        )
    publishing = commits(lambda: bench.publish(bench.guarded, 10))
    executing = commits(lambda: bench.execute(bench.guarded, 10))
    print(f"{database}: commits for ten calls: publishing {dict(publishing)}, executing {dict(executing)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
