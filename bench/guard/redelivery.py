"""How often a task is started that outlives the visibility timeout: `python -m bench.guard.redelivery`.

Redis delivers a message again that was not acknowledged in time, to whichever worker is free. Two workers, a
task of 9 seconds, a visibility timeout of 2, and as many rounds as asked for, all at once. Measured side by
side: guarded, plain Celery with late acknowledgement, and celery-once, celery-singleton and celery-heimdall
where they are installed (`uv pip install celery-once celery-singleton celery-heimdall`).
"""

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import places
from holdfast.chaos.brokers import RedisBroker
from scripts.services import state


def main(words: Sequence[str]) -> int:
    """Print how often each round was started and completed."""
    parser = argparse.ArgumentParser(prog="python -m bench.guard.redelivery", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=9.0)
    options = parser.parse_args(words)
    broker = RedisBroker(str(state.read()["redis"]["url"]), own=False)
    with places.fresh(places.POSTGRESQL) as database, tempfile.TemporaryDirectory() as folder:
        environment = {
            "BENCH_REDIS": broker.url,
            "BENCH_DATABASE": database,
            "BENCH_SECONDS": str(options.seconds),
        }
        os.environ.update(environment)
        from bench.guard import redelivery_app as bench  # noqa: PLC0415 - reads the environment

        workers = [_worker(Path(folder), options.rounds * len(bench.WAYS)) for _ in range(2)]
        try:
            for number in range(options.rounds):
                for task in bench.WAYS.values():
                    task.delay(number)
            _wait(bench, options.rounds, options.seconds)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
            _print(bench, options.rounds)
            bench.guard.close()
            broker.close()
    return 0


def _worker(folder: Path, threads: int) -> "subprocess.Popen[bytes]":
    name = f"w-{secrets.token_hex(3)}"
    command = [sys.executable, "-m", "celery", "-A", "bench.guard.redelivery_app", "worker", "-n", name]
    with (folder / f"{name}.log").open("wb") as log:
        options = ["--pool", "threads", "-c", str(threads), "--without-mingle", "--without-gossip"]
        return subprocess.Popen([*command, *options], stdout=log, stderr=log)


def _wait(bench: object, rounds: int, seconds: float) -> None:
    """Until every round was completed in every way, and what was delivered again has had its time."""
    counter, ways = bench.counter, bench.WAYS  # type: ignore[attr-defined]
    give_up = time.monotonic() + 12 * seconds
    while counter.hlen("bench-ends") < rounds * len(ways) and time.monotonic() < give_up:
        time.sleep(0.5)
    time.sleep(seconds + 4)


def _print(bench: object, rounds: int) -> None:
    counter, ways = bench.counter, bench.WAYS  # type: ignore[attr-defined]
    starts = {key.decode(): int(value) for key, value in counter.hgetall("bench-starts").items()}
    ends = {key.decode(): int(value) for key, value in counter.hgetall("bench-ends").items()}
    for way in ways:
        mine = [value for key, value in starts.items() if key.startswith(f"{way}:")]
        done = sum(1 for key in ends if key.startswith(f"{way}:"))
        print(
            f"{way}: {sum(mine)} starts for {rounds} rounds, at most {max(mine, default=0)}; {done} completed"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
