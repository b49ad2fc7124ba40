"""Measures how soon the sources of an answer are there, and the first words, over HTTP.

    python -m bench.ask [--documents 100] [--questions 200] [--only sqlite|postgresql] [--json FILE]

About 10,000 chunks embedded by the built-in model; the stand-in answers, so that no provider's time is in the
figures. Every question is another one, asked by one client after the other. PostgreSQL must be up
(`make services-up`).
"""

import argparse
import json
import random
import re
import tempfile
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

from rich.console import Console

from bench import places
from bench.results import percentile
from bench.serving import serving
from holdfast.bootstrap import AppServices
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload

TENANT, COLLECTION = "default", "manuals"
CHUNKS_PER_DOCUMENT = 100
TARGET = 100.0  # milliseconds until the sources are there, at the 95th percentile
WORDS = re.findall(
    r"\w+",
    "pump valve harbour lighthouse invoice contract engine turbine railway garden museum battery circuit "
    "antenna orchard vineyard glacier compass anchor ledger printer cabinet elevator reservoir pipeline "
    "warehouse transformer telescope microscope keyboard passport ferry tunnel bridge quarry furnace",
)
VERBS = ("feeds", "opens", "measures", "replaces", "protects", "cools", "moves", "supplies", "records")


def _document(number: int) -> str:
    """A text of about so many chunks, whose sentences are all different."""
    chance = random.Random(number)  # noqa: S311 - repeatable, not secret
    paragraphs = []
    for part in range(CHUNKS_PER_DOCUMENT):
        sentences = [
            f"The {chance.choice(WORDS)} {chance.choice(VERBS)} the {chance.choice(WORDS)} of section "
            f"{number}-{part}-{each} every {chance.randint(2, 900)} hours."
            for each in range(14)
        ]
        paragraphs.append(f"## Part {part} of manual {number}\n\n" + " ".join(sentences))
    return "\n\n".join(paragraphs)


def _fill(services: AppServices, documents: int) -> int:
    context = RequestContext(TENANT, "bench")
    services.collections.make(context, COLLECTION)
    for number in range(documents):
        upload = Upload(_document(number).encode(), f"{number}.md", f"Manual {number}")
        services.documents.add(context, COLLECTION, [upload])
    services.runtime.engine.work_off()
    return services.views.count(TENANT, COLLECTION).chunks


def _asked(port: int, question: str) -> tuple[float, float]:
    """Milliseconds until the event with the sources, and until the first words."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        body = json.dumps({"question": question, "stream": True})
        began = time.perf_counter()
        path = f"/api/v1/collections/{COLLECTION}/ask"
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        at: dict[bytes, float] = {}
        while line := response.readline():
            if line.startswith(b"event: "):
                at.setdefault(line[7:].strip(), 1000 * (time.perf_counter() - began))
    return at[b"sources"], at.get(b"delta", at.get(b"refused", 0.0))


def measure(url: str, documents: int, questions: int) -> dict[str, float]:
    """The figures of one database."""
    chance = random.Random(1)  # noqa: S311 - repeatable, not secret
    with tempfile.TemporaryDirectory() as folder, serving(url, Path(folder)) as (services, port):
        chunks = _fill(services, documents)
        _asked(port, "Which pump feeds the turbine?")  # the first loads what later ones find in memory
        times = []
        for number in range(questions):
            one, other = chance.sample(WORDS, 2)
            times.append(_asked(port, f"How often does the {one} serve the {other} of section {number}?"))
    sources, words = zip(*times, strict=True)
    return {
        "chunks": float(chunks),
        "sources_p50_ms": percentile(sources, 0.5),
        "sources_p95_ms": percentile(sources, 0.95),
        "first_words_p95_ms": percentile(words, 0.95),
    }


def main() -> None:
    """Measure, print, and write the figures if a file is named."""
    parser = argparse.ArgumentParser(prog="bench.ask")
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--only", choices=[places.SQLITE, places.POSTGRESQL])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures = {}
    for name in [options.only] if options.only else [places.SQLITE, places.POSTGRESQL]:
        with places.fresh(name) as url:
            figures[name] = measure(url, options.documents, options.questions)
        kept = "ok" if figures[name]["sources_p95_ms"] <= TARGET else "MISSED"
        Console().print(name, figures[name], f"sources within {TARGET:g} ms at p95: {kept}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
