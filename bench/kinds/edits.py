"""Measures what an edit of one of 100 documents makes a tree of summaries pay again.

    python -m bench.kinds.edits [--documents 100] [--repeats 5] [--scope collection] [--json FILE] [--strict]

Everything runs in one process on SQLite, through the job, the ledger and the fences. The language model is a
server that counts its calls and writes other words whenever it reads other words, as models do; the stand-in,
which copies sentences, would often write the same and so make edits look cheaper. Beside ours, over the same
chunks: a tree that is clustered afresh each time, as others build it. After all edits the clusters that were
kept are compared with clusters found afresh. With --strict the exit code is 1 if a target is missed.
"""

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.kinds import fresh_clusters
from bench.kinds.sample_corpus import SampleCorpus, SampleDocument
from holdfast import bootstrap
from holdfast.core.states import Status
from holdfast.kinds import raptor
from holdfast.providers import extractive
from holdfast.service.jobs import JobRequest
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from holdfast.settings import Settings
from holdfast.testing.meter import Meter

COLLECTION = "corpus"
WISH = RequestContext()
# The largest share of the calls of a first build that an edit may cost, in percent.
TARGETS = {"sentence": 2.0, "paragraph": 2.0, "replaced": 3.0, "added": 3.0, "deleted": 2.0}
MOST_PER_CHUNK = 0.25
MOST_ESTIMATE = 0.10
LEAST_COHESION = 0.95


class Bench:
    """An installation with the corpus in it."""

    def __init__(self, runtime: bootstrap.Runtime, meter: Meter, corpus: SampleCorpus, scope: str) -> None:
        self.meter = meter
        self.services = bootstrap.AppServices(runtime)
        self.runtime = runtime
        self.corpus = corpus
        self.scope = scope
        self.ids: dict[str, str] = {}
        self.services.collections.make(WISH, COLLECTION)
        for document in corpus.documents:
            self.add(document)

    def add(self, document: SampleDocument) -> None:
        """The document is in the collection, to be indexed."""
        upload = Upload(document.text.encode(), f"{document.name}.md", document.name)
        (result,) = self.services.documents.add(WISH, COLLECTION, [upload])
        self.ids[document.name] = result.document.id

    def put(self, document: SampleDocument) -> None:
        """The document has its present text, to be indexed."""
        upload = Upload(document.text.encode(), f"{document.name}.md", document.name)
        self.services.documents.put_content(WISH, self.ids[document.name], upload)

    def work(self) -> None:
        """All that is due was done."""
        self.runtime.engine.work_off()

    def build(self) -> int:
        """The calls of a language model that a new tree has paid for."""
        self.work()
        before = self.calls()
        collection = self.services.collections.get("default", COLLECTION)
        request = JobRequest(raptor.NAME, {"scope": self.scope}, mode="force")
        run_id = self.services.jobs.on_collection(WISH, collection, request).run_id
        self.work()
        run = self.services.jobs.view("default", str(run_id)).job.run
        if run.status is not Status.SUCCESS:
            raise SystemExit(f"the job ended as {run.status}: {run.error_code}")
        return self.calls() - before

    def calls(self) -> int:
        """How many calls the language model has charged for so far."""
        return self.meter.totals().charges

    def chunks(self) -> int:
        """How many chunks the collection has."""
        return sum(document.chunks or 0 for document in self.services.documents.walk("default", COLLECTION))

    def afresh(self) -> set[str]:
        """The prompts of a tree over all chunks that is clustered without regard to the last one."""
        return fresh_clusters.prompts(fresh_clusters.chunks(self.runtime.db))

    def cohesion(self) -> tuple[float, float]:
        """How close documents are to the clusters that they are kept in, and to clusters found afresh."""
        return fresh_clusters.cohesion(self.runtime.db, raptor.NAME)

    def estimate(self) -> int:
        """How many calls the next build would pay for, as people are told before."""
        params = {"scope": self.scope}
        estimate = self.services.estimates().of_job("default", COLLECTION, raptor.NAME, params)
        return estimate.forecast.calls

    def edits(self) -> dict[str, Callable[[], None]]:
        """The edits by name; each changes one document at random."""
        corpus, chance = self.corpus, self.corpus.chance

        def sentence() -> None:
            document = chance.choice(corpus.documents)
            lines = chance.choice(document.paragraphs)
            lines[chance.randrange(len(lines))] = corpus.sentence(document.topic)
            self.put(document)

        def paragraph() -> None:
            document = chance.choice(corpus.documents)
            document.paragraphs.insert(
                chance.randrange(len(document.paragraphs)), corpus.paragraph(document.topic)
            )
            self.put(document)

        def replaced() -> None:
            document = chance.choice(corpus.documents)
            fresh = corpus.document(0)
            document.topic, document.paragraphs = fresh.topic, fresh.paragraphs
            self.put(document)

        def added() -> None:
            corpus.documents.append(corpus.document(len(self.ids) + 1))
            self.add(corpus.documents[-1])

        def deleted() -> None:
            document = corpus.documents.pop(chance.randrange(len(corpus.documents)))
            self.services.documents.delete(WISH, self.ids[document.name])

        return {each.__name__: each for each in (sentence, paragraph, replaced, added, deleted)}


def summary(messages: Sequence[Mapping[str, Any]]) -> str:
    """What the model writes: key sentences of what it reads, and a word that nothing else would give."""
    passages = str(messages[1]["content"])
    mark = hashlib.blake2b(passages.encode(), digest_size=6).hexdigest()
    return f"Summary {mark}\n{' '.join(extractive.key_sentences(passages, 4))} {mark}"


def measure(documents: int, repeats: int, scope: str) -> dict[str, Any]:
    """The figures: of the first build, of none and of each edit, in calls and in percent."""
    with tempfile.TemporaryDirectory() as folder, Meter(chat=summary) as meter:
        settings = Settings(
            data_dir=Path(folder),
            database_url=f"sqlite:///{folder}/bench.db",
            llm_provider="openai",
            llm_base_url=meter.base_url,
        )
        bootstrap.migrated(settings)
        with bootstrap.open_runtime(settings, owner="bench") as runtime:
            return _measured(Bench(runtime, meter, SampleCorpus(documents), scope), repeats)


def _measured(bench: Bench, repeats: int) -> dict[str, Any]:
    bench.work()
    foreseen = bench.estimate()
    first = bench.build()
    figures: dict[str, Any] = {"documents": len(bench.ids), "chunks": bench.chunks(), "first": first}
    figures |= {"estimate": foreseen, "per_chunk": first / figures["chunks"]}
    figures["unchanged"] = bench.build()
    for name, edit in bench.edits().items():
        paid, afresh = [], []
        for _ in range(repeats):
            before = bench.afresh()
            edit()
            paid.append(bench.build())
            afresh.append(100 * len(bench.afresh() - before) / len(before))
        figures[name] = {
            "calls": paid,
            "percent": 100 * sum(paid) / len(paid) / first,
            "percent_afresh": sum(afresh) / len(afresh),
        }
    kept, fresh = bench.cohesion()
    return figures | {"cohesion": kept, "cohesion_afresh": fresh, "cohesion_ratio": kept / fresh}


def misses(figures: dict[str, Any]) -> list[str]:
    """The targets that were missed."""
    wrong = [name for name, most in TARGETS.items() if figures[name]["percent"] > most]
    if figures["per_chunk"] > MOST_PER_CHUNK:
        wrong.append("per_chunk")
    if abs(figures["estimate"] - figures["first"]) > MOST_ESTIMATE * figures["first"]:
        wrong.append("estimate")
    if figures["cohesion_ratio"] < LEAST_COHESION:
        wrong.append("cohesion")
    return [*wrong, "unchanged"] if figures["unchanged"] else wrong


def main(words: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="bench.kinds.edits", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scope", choices=["document", "collection", "themes"], default="collection")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args(words)
    figures = measure(options.documents, options.repeats, options.scope)
    for name, figure in figures.items():
        print(f"{name:12} {figure}")
    wrong = misses(figures)
    print(f"missed: {', '.join(wrong)}" if wrong else "every target is met")
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return int(bool(wrong) and options.strict)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
