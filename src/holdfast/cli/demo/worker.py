"""A worker of the demonstration: claims, pays, stages and publishes until it is told to stop, or killed.

It says what it does on standard output, one JSON object to a line. With `--wait-at N` its Nth slice waits for
a line on standard input: there it is frozen from outside, and when it thaws it *writes at once*, without a
look at its lease, as code without checks would. What the database answers is part of the story.
"""

import argparse
import json
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from holdfast.cli.demo import documents
from holdfast.core.records import Ask, Chunk, Fenced, Slice
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.engine.kinds import Kind
from holdfast.engine.sweep import SweepRules
from holdfast.engine.work import Work
from holdfast.leases.base import LeaseTerms
from holdfast.leases.sql import SqlLeases
from holdfast.ledger.exchanges import Policy
from holdfast.ledger.pay import Call
from holdfast.providers.base import Profile
from holdfast.providers.openai import OpenAIProvider
from holdfast.store.base.database import Database
from holdfast.store.features import open_database
from holdfast.store.protocol import tasks

LEASE = 2.0
SWEEP = 0.25
ORDER_DEADLINE = 3.0

Pause = Callable[[Work, list[Chunk]], None]


def say(event: str, **details: object) -> None:
    """One line for the parent."""
    sys.stdout.write(json.dumps({"event": event, **details}) + "\n")
    sys.stdout.flush()


def index(folder: Path, pause: Pause = lambda _work, _chunks: None) -> Kind:
    """The kind of work: a paragraph is a chunk, three chunks are a slice, a slice is one order."""

    def plan(work: Work) -> list[Slice]:
        texts = documents.read(folder, work.content)
        return [Slice({"start": start}) for start in range(0, len(texts), documents.PER_ORDER)]

    def run(work: Work) -> None:
        start = work.payload["start"]
        texts = documents.read(folder, work.content)[start : start + documents.PER_ORDER]
        chunks = [Chunk(start + position, text) for position, text in enumerate(texts)]
        say("slice", slice=work.claim.ordinal, epoch=work.claim.epoch)
        pause(work, chunks)
        work.pay([Call("meter", "embeddings", documents.MODEL, text) for text in texts])
        work.stage(chunks)
        work.progress(len(texts), len(texts), unit="chunks")

    return Kind("index", run=run, plan=plan)


def ask(title: str, digest: str) -> Ask:
    """The request for a document of the demonstration."""
    return Ask("index", f"document:{title}", content=digest, actor="demo")


def provider(address: str, *, keyed: bool) -> OpenAIProvider:
    """A client of the meter. OpenAI documents no idempotency keys; `keyed` is for providers that do."""
    retention = 86_400.0 if keyed else 0.0
    return OpenAIProvider(address, "demo", Profile("meter", keyed, retention, 256, 100_000, ORDER_DEADLINE))


def waiting_at(number: int, db: Database) -> Pause:
    """A pause at the Nth slice of this process, for a line on standard input, and a write right after it."""
    met = 0

    def pause(work: Work, chunks: list[Chunk]) -> None:
        nonlocal met
        met += 1
        if met != number:
            return
        say("waiting", slice=work.claim.ordinal)
        sys.stdin.readline()
        outcome = tasks.stage(db, work.claim, chunks)
        say("wrote", reason=outcome.reason if isinstance(outcome, Fenced) else None)

    return pause


def main(words: list[str] | None = None) -> None:
    """Work until SIGTERM, then hand back what is in hand."""
    parser = argparse.ArgumentParser(prog="holdfast.cli.demo.worker")
    for name in ("--name", "--database", "--folder", "--meter"):
        parser.add_argument(name, required=True)
    parser.add_argument("--keyed", action="store_true")
    parser.add_argument("--wait-at", type=int, default=0)
    options = parser.parse_args(words)
    db, watch = open_database(options.database), open_database(options.database, pool_size=1)
    kind = index(Path(options.folder), waiting_at(options.wait_at, db))
    parts = EngineDependencies(
        kinds=[kind],
        providers={"meter": provider(options.meter, keyed=options.keyed)},
        leases=SqlLeases(watch, LeaseTerms(ttl=LEASE, renew_every=LEASE / 4, margin=LEASE / 6)),
        policy=Policy(concurrency=1),
        rules=SweepRules(interval=SWEEP),
        owner=options.name,
    )
    stop = threading.Event()
    engine = Engine(db, parts)

    def drain(*_: object) -> None:
        stop.set()
        engine.drain()

    signal.signal(signal.SIGTERM, drain)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    say("up")
    with engine:
        while not stop.is_set():
            for done in engine.work_off(most=1):
                say("ended", slice=done.claim.ordinal, ending=done.ending, reason=done.reason)
            engine.sweep()
            stop.wait(0.05)
    watch.close()
    db.close()


if __name__ == "__main__":
    main()
