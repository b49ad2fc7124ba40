"""What paying once costs beside the bare client: `python -m bench.guard.calls`.

The official OpenAI client asks a metering provider in a process of its own, bare, through the guard's
transport (a new call each time), and for what was asked before (a replay). The three take turns. Counted are
the processor time of the caller, the time it waits, and its commits; `intend` is a relaxed one.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import httpx2
import openai

from bench import places
from bench.guard.tasks import commits
from holdfast import Guard

Ask = Callable[[], object]


@contextmanager
def provider() -> Iterator[str]:
    """The base URL of a meter in a process of its own."""
    command = [sys.executable, "-m", "holdfast.testing.meter"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield str(json.loads(process.stdout.readline())["url"])
        finally:
            process.terminate()


class Asking:
    """One client that pays through the guard, and one that does not."""

    def __init__(self, guard: Guard, url: str) -> None:
        self._guard = guard
        self._numbers = itertools.count()
        transport = guard.transport(httpx2, provider="openai")
        http = httpx2.Client(transport=transport)
        self._paying = openai.OpenAI(base_url=url, api_key="k", http_client=http)
        self._bare = openai.OpenAI(base_url=url, api_key="k")
        self._render = guard.paid(name="render", price="0.01 USD")(self._rendered)

    def bare(self) -> object:
        """A call of the client as it is."""
        return self._asked(self._bare, f"bare {next(self._numbers)}")

    def paid(self) -> object:
        """The same through the guard."""
        return self._asked(self._paying, f"paid {next(self._numbers)}")

    def replayed(self) -> object:
        """A call that was paid before."""
        with self._guard.scope("bench"):
            return self._asked(self._paying, "the same")

    def function(self) -> object:
        """A paid function around the bare client."""
        return self._render(next(self._numbers))

    def _rendered(self, number: int) -> str | None:
        return self._asked(self._bare, f"function {number}")

    def _asked(self, client: openai.OpenAI, prompt: str) -> str | None:
        answer = client.chat.completions.create(
            model="gpt-4o-mini", messages=[{"role": "user", "content": prompt}]
        )
        return answer.choices[0].message.content


def main(words: Sequence[str]) -> int:
    """Print what each way costs."""
    parser = argparse.ArgumentParser(prog="python -m bench.guard.calls", description=__doc__)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args(words)
    with provider() as url:
        for database in (places.SQLITE, places.POSTGRESQL):
            with places.fresh(database) as address:
                guard = Guard(database=address, sweep=False)
                try:
                    _measure(database, Asking(guard, url), options.repeats, options.count)
                finally:
                    guard.close()
    return 0


def _measure(database: str, asking: Asking, repeats: int, count: int) -> None:
    ways: dict[str, Ask] = {
        "bare": asking.bare,
        "paid": asking.paid,
        "replayed": asking.replayed,
        "paid function": asking.function,
    }
    processor: dict[str, list[float]] = {name: [] for name in ways}
    waiting: dict[str, list[float]] = {name: [] for name in ways}
    for ask in ways.values():
        _timed(ask, 10)
    for _ in range(repeats):
        for name, ask in ways.items():
            spent, waited = _timed(ask, count)
            processor[name].append(spent)
            waiting[name].append(waited)
    for name in ways:
        more = [one - other for one, other in zip(processor[name], processor["bare"], strict=True)]
        print(
            f"{database}: {name}: {statistics.median(processor[name]):.2f} ms of processor time "
            f"({statistics.median(more):+.2f} beside bare), {statistics.median(waiting[name]):.2f} ms"
        )
    for name, ask in ways.items():
        print(f"{database}: commits for ten calls, {name}: {dict(commits(lambda ask=ask: _timed(ask, 10)))}")


def _timed(ask: Ask, count: int) -> tuple[float, float]:
    """Milliseconds of processor time, and on the clock, of one call of so many."""
    spent, began = time.process_time(), time.perf_counter()
    for _ in range(count):
        ask()
    return (time.process_time() - spent) / count * 1000, (time.perf_counter() - began) / count * 1000


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
