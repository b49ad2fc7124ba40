"""Measures search over a large collection on both databases, warm and cold.

    python -m bench.search [--documents 10000] [--queries 200] [--only sqlite|postgresql] [--json FILE]

Ten chunks to a document, 120 words and 256 dimensions to a chunk; words as common and as rare as in real text
(Zipf). The embedding of a query is not in the figures: it is the provider's time. PostgreSQL must be up
(`make services-up`).
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sqlalchemy import insert, text

from bench import places
from bench.results import Bound, Report, Result, at_least, at_most, percentile, timed
from bench.sizes import busy
from holdfast import vectors
from holdfast.core import document_metadata, filters
from holdfast.search import statistics, tokenizer
from holdfast.search.searcher import Mode, Searcher
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.schema import calls, chunks, document_values, documents, heads, word_counts
from holdfast.store.features import open_database
from holdfast.store.protocol import publish_seq
from holdfast.store.search import search_reads as stored

PER_DOCUMENT, WORDS, DIMENSIONS, VOCABULARY, TOPICS = 10, 120, 256, 60_000, 200
AT_ONCE = 250
TENANT, COLLECTION = "acme", "manuals"
TARGETS = {places.SQLITE: 100.0, places.POSTGRESQL: 50.0}
LEGS: tuple[Mode, ...] = ("keyword", "vector")
FILTERS = {
    "one document in a hundred": {"eq": {"hundredth": 7}},
    "one in two": {"eq": {"half": 1}},
    "all but one in ten": {"not": {"eq": {"tenth": 3}}},
    "a range and two more": {
        "and": [{"range": {"hundredth": {"lt": 50}}}, {"in": {"tenth": [1, 2, 3]}}, {"exists": "half"}]
    },
}
SYLLABLES = "ba ce di fo gu ha ki lo mu na pe ro sa te vo wi xa yo zu bra cle dri flo gra ster mon"

ONE_SHOT = """
import sys, time
started = time.perf_counter()
from holdfast.search.searcher import Searcher
from holdfast.store.features import open_database
import numpy as np
imported = time.perf_counter()
towards = np.random.default_rng(1).standard_normal(256)
found = Searcher(open_database(sys.argv[1]), lambda text: towards).search(*sys.argv[2:5], mode=sys.argv[5])
assert found.hits
print(imported - started, time.perf_counter() - imported)
"""


class Corpus:
    """Texts and vectors of a chosen number of documents, the same in every run."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.random = np.random.default_rng(7)
        made: dict[str, None] = {}
        while len(made) < VOCABULARY:
            for at, four in enumerate(self.random.choice(SYLLABLES.split(), (VOCABULARY, 4))):
                made["".join(four[: 2 + at % 3])] = None
        self.words = np.array(list(made)[:VOCABULARY])
        self.rising = np.cumsum(1.0 / np.arange(1, VOCABULARY + 1))
        self.topics = self.random.standard_normal((TOPICS, DIMENSIONS))

    def said(self, number: int) -> str:
        """So many words, as common as words are."""
        drawn = self.random.random(number) * self.rising[-1]
        return " ".join(self.words[np.searchsorted(self.rising, drawn)])

    def common(self, number: int) -> str:
        """So many words that each stand in one chunk of five or more."""
        return " ".join(self.random.choice(self.words[:40], number, replace=False))

    def vector(self) -> vectors.Vector:
        """Something near a topic."""
        near = self.topics[self.random.integers(TOPICS)] + 0.7 * self.random.standard_normal(DIMENSIONS)
        return np.asarray(near, dtype=np.float32)


def fill(db: Database, corpus: Corpus) -> None:
    """The collection is published, written in bulk: how it got there is measured elsewhere."""
    for start in range(0, corpus.number, AT_ONCE):
        numbers = range(start + 1, min(corpus.number, start + AT_ONCE) + 1)
        rows: dict[str, list[dict[str, Any]]] = {}
        for number in numbers:
            for table, row in _document(corpus, number):
                rows.setdefault(table, []).append(row)
        db.write("fill", partial(_insert, rows))
    db.write("fill", lambda tx: publish_seq.bump(tx, TENANT, COLLECTION))
    if db.postgresql:
        with db.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            connection.execute(text("VACUUM ANALYZE"))


def _insert(rows: dict[str, list[dict[str, Any]]], tx: Tx) -> None:
    for table in (heads, documents, document_values, chunks, calls, word_counts):
        tx.execute(insert(table), rows[table.name.removeprefix("holdfast_")])


def _document(corpus: Corpus, number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    name = f"d{number}"
    owner = {"tenant": TENANT, "collection": COLLECTION}
    done = {"generation": 1, "status": "success", "published_generation": 1, "visible": True}
    head = {
        "id": number,
        "kind": "index",
        "subject": f"document:{name}",
        "fingerprint": "",
        "updated_at": 1.0,
    }
    yield "heads", owner | done | head
    times = {"created_at": 1.0, "updated_at": 1.0}
    yield (
        "documents",
        owner | times | {"id": name, "title": name, "source": "text", "digest": name, "size": 1},
    )
    described = {"half": number % 2, "tenth": number % 10, "hundredth": number % 100}
    for at, (path, value) in enumerate(document_metadata.values(described)):
        place = {"document": name, "position": at, "path": path, "kind": value.kind.value, "key": value.key}
        yield "document_values", owner | place
    analysed = []
    for position in range(PER_DOCUMENT):
        said = corpus.said(WORDS)
        key = f"{name}/{position}".rjust(64, "0")
        analysed.append(tokenizer.joined(said))
        place = {"head_id": number, "generation": 1, "slice": 0, "epoch": 1, "position": position, "page": 1}
        yield "chunks", place | {"text": said, "call_key": key, "words": analysed[-1]}
        paid = {"tenant": TENANT, "key": key, "state": "settled", "model": "m", "estimate": 0}
        yield "calls", paid | {"result": vectors.encode(corpus.vector())}
    counted = dict(zip(("chunks", "length", "terms"), statistics.encode(analysed), strict=True))
    yield "word_counts", {"head_id": number, "generation": 1, "slice": 0} | counted


def measure(report: Report, kind: str, corpus: Corpus, queries: int) -> None:
    """Everything about search on one database."""
    with places.fresh(kind) as url:
        db = open_database(url)
        filled = timed(lambda: fill(db, corpus)) / 1000
        size = corpus.number * PER_DOCUMENT
        report.say(
            f"{kind}: {size:,} chunks written in {filled:.0f} s; others use {busy():.0%} of the machine"
        )
        _cold(report, kind, db, url, corpus)
        _warm(report, kind, db, corpus, queries)
        db.close()


def _cold(report: Report, kind: str, db: Database, url: str, corpus: Corpus) -> None:
    for mode in LEGS:
        searcher = Searcher(db, lambda _text: corpus.vector())
        report.add(
            Result(kind, f"first {mode} query of a process", "ms", (_ask(searcher, corpus.said(4), mode),))
        )
    command = [sys.executable, "-c", ONE_SHOT, url, TENANT, COLLECTION, corpus.said(4), "hybrid"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=places.ROOT)
    imported, searched = (1000 * float(word) for word in done.stdout.split())
    report.add(Result(kind, "a process for one hybrid query: imports", "ms", (imported,)))
    report.add(Result(kind, "a process for one hybrid query: the search", "ms", (searched,)))


def _warm(report: Report, kind: str, db: Database, corpus: Corpus, queries: int) -> None:
    searcher = Searcher(db, lambda _text: corpus.vector())
    for _ in range(30):
        searcher.search(TENANT, COLLECTION, corpus.said(4))
    asked: dict[str, Callable[[], str]] = {
        "1 to 8 words": lambda: corpus.said(1 + int(corpus.random.integers(8))),
        "16 words": lambda: corpus.said(16),
        "3 of the 40 commonest words": lambda: corpus.common(3),
    }
    for name, draw in asked.items():
        bound = at_most(TARGETS[kind]) if name.startswith("1 to 8") else None
        spent = time.process_time()
        took = [_ask(searcher, draw(), "hybrid") for _ in range(queries)]
        spent = 1000 * (time.process_time() - spent) / queries
        _latency(report, kind, f"hybrid, {name}", bound, took)
        report.add(Result(kind, f"hybrid, {name}: processor time here", "ms", (spent,)))
    for name, condition in FILTERS.items():
        only = filters.parse(condition)
        spent = time.process_time()
        took = [_ask_some(searcher, asked["1 to 8 words"](), only) for _ in range(queries)]
        spent = 1000 * (time.process_time() - spent) / queries
        _latency(report, kind, f"hybrid, filter: {name}", at_most(TARGETS[kind]), took)
        report.add(Result(kind, f"hybrid, filter: {name}: processor time here", "ms", (spent,)))
    for mode in LEGS:
        took = [_ask(searcher, asked["1 to 8 words"](), mode) for _ in range(queries)]
        _latency(report, kind, f"{mode} alone", None, took)
    changes = [_after_a_change(db, searcher, corpus) for _ in range(10)]
    report.add(Result(kind, "hybrid, the first after a publication", "ms", tuple(changes)))
    report.add(
        Result(kind, "vectors in memory", "MB", (searcher.memory.vectors / 1e6,)),
        Result(kind, "statistics in memory", "MB", (searcher.memory.statistics / 1e6,)),
        Result(
            kind, "recall@10 of the vector leg", "of exact", (_recall(db, searcher, corpus),), at_least(0.95)
        ),
    )


def _ask(searcher: Searcher, query: str, mode: Mode) -> float:
    return timed(lambda: searcher.search(TENANT, COLLECTION, query, mode=mode))


def _ask_some(searcher: Searcher, query: str, only: filters.Filter) -> float:
    return timed(lambda: searcher.search(TENANT, COLLECTION, query, only=only))


def _latency(report: Report, kind: str, name: str, bound: Bound | None, took: list[float]) -> None:
    report.add(Result(kind, f"{name}: median", "ms", (percentile(took, 0.5),)))
    report.add(Result(kind, f"{name}: p95", "ms", (percentile(took, 0.95),), bound))


def _after_a_change(db: Database, searcher: Searcher, corpus: Corpus) -> float:
    """The first query after one document got a new stamp, as if published anew."""
    head = int(corpus.random.integers(corpus.number)) + 1

    def body(tx: Tx) -> None:
        for table in ("chunks", "word_counts"):
            statement = f"UPDATE holdfast_{table} SET generation = generation + 1 WHERE head_id = :head"  # noqa: S608 - ours
            tx.execute(text(statement), {"head": head})
        published = (
            "UPDATE holdfast_heads SET generation = generation + 1, published_generation = generation + 1"
        )
        tx.execute(text(f"{published} WHERE id = :head"), {"head": head})
        publish_seq.bump(tx, TENANT, COLLECTION)

    db.write("fill", body)
    return _ask(searcher, corpus.said(4), "hybrid")


def _recall(db: Database, searcher: Searcher, corpus: Corpus) -> float:
    """The share of the ten nearest, computed in double precision from the stored bytes, that are found."""

    def load(tx: Tx) -> list[stored.StoredVector]:
        view = stored.view(tx, TENANT, COLLECTION, 0)
        return [row for part in stored.vectors_of(tx, list(view.heads)) for row in part]

    rows = db.read(load)
    ids = np.array([row.chunk_id for row in rows])
    matrix = np.stack([vectors.decode(row.vector) for row in rows]).astype(np.float64)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    found = 0
    for _ in range(20):
        towards = corpus.vector()
        best = set(ids[np.argsort(-(matrix @ towards.astype(np.float64)))[:10]].tolist())
        hits = searcher.search(TENANT, COLLECTION, "x", mode="vector", embed=partial(_given, towards)).hits
        found += len(best & {hit.chunk_id for hit in hits})
    return found / 200


def _given(vector: vectors.Vector, _text: str) -> vectors.Vector:
    return vector


def _analysis(report: Report, corpus: Corpus) -> None:
    said = [corpus.said(WORDS) for _ in range(1000)]
    tokenizer.analyse(" ".join(said))
    took = [timed(lambda: list(map(tokenizer.joined, said))) for _ in range(5)]
    size = sum(map(len, said)) / 1000
    report.add(
        Result("indexing", "analysis of words", "MB/s", tuple(size / each for each in took), at_least(3))
    )
    analysed = [tokenizer.joined(one) for one in said]
    slices = [analysed[at : at + 10] for at in range(0, 1000, 10)]
    took = [timed(lambda: list(map(statistics.encode, slices))) / 100 for _ in range(5)]
    report.add(Result("indexing", "counts of a slice of 10 chunks", "ms", tuple(took), at_most(0.3)))


def main(arguments: Sequence[str]) -> int:
    """The exit code: 0, also on a miss."""
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--only", choices=list(TARGETS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    report = Report(command=f"python -m bench.search --documents {options.documents}")
    try:
        report.busy.append(busy())
        _analysis(report, Corpus(0))
        for kind in [options.only] if options.only else list(TARGETS):
            measure(report, kind, Corpus(options.documents), options.queries)
            report.busy.append(busy())
    except places.NoServerError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    table = Table(title=f"{report.command}, {report.when}, {report.machine}")
    for heading in ("where", "what", "measured", "unit", "target", "", "of target"):
        table.add_column(
            heading, justify="right" if heading in {"measured", "target", "of target"} else "left"
        )
    for result in report.results:
        share = f"{result.measured / result.bound.value:.2f}" if result.bound else ""
        table.add_row(*result.shown, share)
    Console(width=150).print(table)
    if options.json:
        report.write_json(options.json)
    return 0


if __name__ == "__main__":
    started = time.perf_counter()
    code = main(sys.argv[1:])
    print(f"{time.perf_counter() - started:.0f} s in all", file=sys.stderr)
    sys.exit(code)
