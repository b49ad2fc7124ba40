"""`make soak`: an installation with 100,000 chunks and 1,000 tenants lives for ten minutes under light load.

    python -m bench.soak [--minutes 10] [--on sqlite postgresql] [--json FILE]

A document is uploaded, searched for and read every few seconds. Meanwhile the processor time and the memory
of all its processes, the statements they send and the lag of every duty of the sweep are looked at. Each must
be as flat in the second half as in the first; otherwise the exit code is 1. Statements are counted inside the
processes (`soak_counts`), on both databases alike.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import text

from bench import places
from holdfast import bootstrap
from holdfast.settings import Settings
from holdfast.store.base.database import Database
from holdfast.store.features import open_database
from holdfast.store.protocol import duty_schedule

TENANTS, DOCUMENTS, CHUNKS = 1_000, 10_000, 10
ROOT = Path(__file__).resolve().parents[1]
HOLDFAST = Path(sys.executable).parent / "holdfast"
LOAD_EVERY = 3.0
# The share of the time in which the installation comes to rest after its start, before anything is compared.
WARM_UP = 0.2
# How much larger the second half may be than the first: a share of it, and so much besides.
FLAT = {"cpu": (0.25, 5.0), "memory": (0.10, 15.0), "statements": (0.25, 1.0)}
UNITS = {"cpu": "% of a core", "memory": "MB", "statements": "statements/s"}
MOST_LAG = 30.0

# Written out by `_written`: how many documents and tenants there are, chunks of each, and whose row n is.
MARKS = {
    "<tenant>": f"CASE WHEN n % {TENANTS} = 0 THEN 'default' ELSE 't' || (n % {TENANTS}) END",
    "<document>": f"(1 + (n - 1) / {CHUNKS})",
    "<documents>": str(DOCUMENTS),
    "<tenants>": str(TENANTS),
    "<chunks>": str(CHUNKS),
}
FILLED = {
    "heads": """id, tenant, kind, subject, collection, generation, status, run_id, fingerprint,
        published_generation, visible, updated_at
        SELECT n, <tenant>, 'index', 'document:d' || n, 'shelf', 1, 'success', 'r' || n, 'f', 1, true, 1.0
        FROM g WHERE n <= <documents>""",
    "runs": """id, head_id, tenant, kind, subject, generation, status, disposition, reason, actor, lane,
        priority, pipeline, content, options, slices, queued_at, started_at, finished_at
        SELECT 'r' || n, n, <tenant>, 'index', 'document:d' || n, 1, 'success', 'accepted', '', '', 'bulk',
        5, 'index@1', 'c' || n, '{}', 1, 1.0, 1.0, 2.0 FROM g WHERE n <= <documents>""",
    "tasks": """run_id, head_id, tenant, lane, priority, age, pipeline, generation, ordinal, payload, state,
        due_at
        SELECT 'r' || n, n, <tenant>, 'bulk', 5, n, 'index@1', 1, 0, '{}', 'done', 1.0
        FROM g WHERE n <= <documents>""",
    "documents": """tenant, id, collection, title, source, digest, size, chunks, created_at, updated_at
        SELECT <tenant>, 'd' || n, 'shelf', 'Title ' || n, 'text', 'c' || n, 1, <chunks>, 1.0, 1.0
        FROM g WHERE n <= <documents>""",
    "chunks": """head_id, generation, slice, epoch, position, text, call_key, words
        SELECT <document>, 1, 0, 1, (n - 1) % <chunks>, 'words of an anchor', 'key-' || n,
        'words of an anchor' FROM g""",
    "orders": """id, tenant, provider, endpoint, model, state, call_keys, weights, body, idempotency_key,
        keyed, holder, task_id, run_id, scopes, estimate, created_at, deadline, deadline_at, settled_at
        SELECT 'o' || n, <tenant>, 'p', 'e', 'm', 'settled', '[]', '[]', '', 'k' || n, true, 'h', n,
        'r' || n, '["tenant"]', 1, 1.0, 1.0, 9e9, 2.0 FROM g WHERE n <= <documents>""",
    "calls": """tenant, key, state, order_id, model, estimate, result
        SELECT CASE WHEN <document> % <tenants> = 0 THEN 'default'
        ELSE 't' || (<document> % <tenants>) END,
        'key-' || n, 'settled', 'o' || <document>, 'm', 1, '' FROM g""",
    "collections": """tenant, id, title, created_at
        SELECT CASE WHEN n = <tenants> THEN 'default' ELSE 't' || n END, 'shelf', 'Shelf', 1.0
        FROM g WHERE n <= <tenants>""",
}


def _written(wanted: str) -> str:
    for mark, text_of_it in MARKS.items():
        wanted = wanted.replace(mark, text_of_it)
    return wanted


def fill(url: str) -> None:
    """The database has 100,000 chunks of 1,000 tenants, all published, paid and whole."""
    db = open_database(url)
    count = DOCUMENTS * CHUNKS
    series = f"WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < {count})"  # noqa: S608

    def body(tx: Any) -> None:
        for name, wanted in FILLED.items():
            columns, source = _written(wanted).replace("document:", r"document\:").split("SELECT", 1)
            if db.postgresql:
                source = source.replace("'[]'", r"'[]'\:\:json").replace("'{}'", r"'{}'\:\:json")
                source = source.replace("""'["tenant"]'""", r"""'["tenant"]'\:\:json""")
                if name in {"orders", "calls"}:
                    source = source.replace(", ''", r", ''\:\:bytea")
            tx.execute(text(f"INSERT INTO holdfast_{name} ({columns}) {series} SELECT {source}"))
        if db.postgresql:
            tx.execute(
                text(
                    "SELECT setval(pg_get_serial_sequence('holdfast_heads', 'id'), max(id))"
                    " FROM holdfast_heads"
                )
            )

    db.write("fill", body)
    if db.postgresql:
        with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("ANALYZE")  # as autovacuum would
    db.close()


@dataclass(frozen=True, slots=True)
class Sample:
    """How the installation was over one stretch of time. `lag` is that of the duty that is latest."""

    at: float
    cpu: float
    memory: float
    statements: float
    lag: float
    latest: str


class Installation:
    """`holdfast up` on a database, with what it takes to look at it."""

    def __init__(self, url: str, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._counts = folder / "counts"
        self._counts.mkdir()
        self._log = (folder / "log").open("wb")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        environment |= {
            "HOLDFAST_DATABASE_URL": url,
            "HOLDFAST_DATA_DIR": str(folder),
            "HOLDFAST_PORT": str(self.port),
            "PYTHONPATH": str(ROOT / "bench" / "soak_counts"),
            "SOAK_COUNTS": str(self._counts),
        }
        self._process = subprocess.Popen(
            [HOLDFAST, "up"], env=environment, cwd=folder, stdout=self._log, stderr=subprocess.STDOUT
        )
        self._ticks: dict[int, int] = {}

    def call(self, method: str, path: str, body: object = None) -> Any:
        """The answer to one request."""
        sent = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/v1{path}",
            data=sent,
            method=method,
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - our own address
            return json.load(answer)

    def wait(self, seconds: float = 180.0) -> None:
        """It answers, and a worker is there."""
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            with (
                contextlib.suppress(OSError, ValueError),
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=10) as answer,
            ):
                if json.load(answer)["workers"]:
                    return
            time.sleep(0.5)
        raise TimeoutError("the installation does not become ready; see its log")

    def processes(self) -> list[int]:
        """It and all its descendants."""
        children: dict[int, list[int]] = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                after = path.read_text().rpartition(")")[2].split()
                children.setdefault(int(after[1]), []).append(int(path.parent.name))
        found, waiting = [], [self._process.pid]
        while waiting:
            pid = waiting.pop()
            found.append(pid)
            waiting += children.get(pid, [])
        return found

    def cpu_seconds(self) -> float:
        """Processor time of all of them so far; what a process that has ended used stays counted."""
        for pid in self.processes():
            with contextlib.suppress(OSError):
                after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                self._ticks[pid] = int(after[11]) + int(after[12])
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")

    def megabytes(self) -> float:
        """Their memory; what they share is counted once."""
        total = 0
        for pid in self.processes():
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                    if line.startswith("Pss:"):
                        total += int(line.split()[1])
        return total / 1024

    def statements(self) -> int:
        """How many statements they have sent so far."""
        return sum(int.from_bytes(path.read_bytes(), "little") for path in self._counts.iterdir())

    def stop(self) -> None:
        """It has ended."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()


@contextlib.contextmanager
def living(kind: str) -> Iterator[tuple[Installation, Database]]:
    """An installation that has been filled, and is ready."""
    with places.fresh(kind) as url, tempfile.TemporaryDirectory(prefix="holdfast-soak-") as folder:
        # Whoever finds documents and a blob store that is not theirs does not start.
        with bootstrap.open_runtime(Settings(database_url=url, data_dir=Path(folder)), ()) as runtime:
            bootstrap.check_blobs(runtime)
        fill(url)
        installation, db = Installation(url, Path(folder)), open_database(url)
        try:
            installation.wait()
            yield installation, db
        except Exception:
            sys.stderr.write((Path(folder) / "log").read_text(errors="replace")[-3000:])
            raise
        finally:
            db.close()
            installation.stop()


def soak(kind: str, seconds: float) -> list[Sample]:
    """What was seen of it over that time, in about forty stretches."""
    samples: list[Sample] = []
    stretch = max(LOAD_EVERY, seconds / 40)
    with living(kind) as (installation, db):
        began = before = time.monotonic()
        cpu, sent, number = installation.cpu_seconds(), installation.statements(), 0
        while (now := time.monotonic()) - began < seconds:
            if now - before < stretch:
                _load(installation, number)
                number += 1
                time.sleep(max(0.0, LOAD_EVERY - (time.monotonic() - now)))
                continue
            cpu_now, sent_now = installation.cpu_seconds(), installation.statements()
            worst = max(duty_schedule.health(db), key=lambda each: each.lag)
            sample = Sample(
                now - began,
                (cpu_now - cpu) / (now - before) * 100,
                installation.megabytes(),
                (sent_now - sent) / (now - before),
                worst.lag,
                worst.name,
            )
            samples.append(sample)
            print(
                f"{kind:<11}{sample.at:6.0f} s {sample.cpu:6.1f} % {sample.memory:7.0f} MB "
                f"{sample.statements:7.1f} statements/s, lag {sample.lag:.1f} s ({sample.latest})",
                flush=True,
            )
            before, cpu, sent = now, cpu_now, sent_now
    return samples


def _load(installation: Installation, number: int) -> None:
    """Somebody uploads a text, searches, and looks at how things stand."""
    words = f"An anchor of the ship number {number}, {time.time_ns()}."
    installation.call("POST", "/collections/shelf/documents", {"text": words, "title": f"Ship {number}"})
    installation.call("GET", "/search?collection=shelf&q=anchor&k=3")
    installation.call("GET", "/status")


def judged(kind: str, samples: Sequence[Sample]) -> list[str]:
    """What is not flat, in words; and a line for each measure."""
    steady = samples[int(len(samples) * WARM_UP) :]
    half = len(steady) // 2
    wrong = []
    for name, (share, besides) in FLAT.items():
        first, second = (
            statistics.median(getattr(each, name) for each in part) for part in (steady[:half], steady[half:])
        )
        print(f"{kind}: {name} {first:.1f} in the first half, {second:.1f} in the second ({UNITS[name]})")
        if second > first * (1 + share) + besides:
            wrong.append(f"{kind}: {name} grows from {first:.1f} to {second:.1f} {UNITS[name]}")
    late = max(steady, key=lambda each: each.lag)
    print(f"{kind}: the latest duty was {late.lag:.1f} s late ({late.latest})")
    if late.lag > MOST_LAG:
        wrong.append(f"{kind}: the duty {late.latest} was {late.lag:.0f} s late")
    return wrong


def main(words: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--on", nargs="+", choices=(places.SQLITE, places.POSTGRESQL))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(words)
    seen = {kind: soak(kind, given.minutes * 60) for kind in given.on or (places.SQLITE, places.POSTGRESQL)}
    wrong = [each for kind, samples in seen.items() for each in judged(kind, samples)]
    if given.json is not None:
        given.json.write_text(
            json.dumps({kind: [dataclasses.asdict(each) for each in found] for kind, found in seen.items()})
        )
    for each in wrong:
        print(f"NOT FLAT {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
