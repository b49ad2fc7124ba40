"""Measures what an edit of one of 100 documents makes a knowledge graph pay again, and others would.

    python -m bench.kinds.graph_edits [--documents 100] [--repeats 10] [--json FILE] [--strict]

Everything runs in one process on SQLite, through the job, the ledger and the fences. The language model is a
server that counts its calls. Of a window it says what the stand-in finds: of each name the sentence that it
is in, as a model does that is told to use the words of the text. Descriptions and reports have other words
whenever what was read has. Beside ours, over the same graphs: reports on communities that are found afresh,
with prompts of content alone and with running ids in them; and windows of a fixed number of chunks.
"""

import argparse
import hashlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import networkx as nx

from bench.kinds.named_corpus import NamedCorpus, NamedDocument
from holdfast import bootstrap
from holdfast.core.states import Status
from holdfast.documents import chunk
from holdfast.documents.parse import texts
from holdfast.kinds import communities, graph, graph_descriptions, graph_reports
from holdfast.kinds.communities import Community
from holdfast.providers import cooccurrence
from holdfast.service.documents import Upload
from holdfast.service.jobs import JobRequest
from holdfast.service.requests import RequestContext
from holdfast.settings import Settings
from holdfast.store.base.schema import derived_nodes
from holdfast.testing.meter import Meter

COLLECTION = "corpus"
WISH = RequestContext()
# The largest share of the reports of a first build that an edit may cost, in percent.
REPORTS = {"sentence": 1.5, "paragraph": 2.0, "replaced": 15.0, "added": 12.0, "deleted": 6.0}
WINDOWS = {"sentence": 1.5, "paragraph": 2.5}
MOST_PER_CHUNK = 0.3
MOST_ESTIMATE = 0.10
LEAST_MODULARITY = 0.95
FIXED = 4
EVERYTHING = 1_000_000


@dataclass
class CountingModel:
    """What the model says, and of which sort its calls were."""

    counts: Counter[str] = field(default_factory=Counter)

    def __call__(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The answer."""
        instruction, text = str(messages[0]["content"]), str(messages[1]["content"])
        mark = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        if instruction.startswith(graph_reports.PROMPT):
            self.counts["reports"] += 1
            return json.dumps({"title": f"Report {mark}", "summary": f"It says {mark}.", "findings": []})
        if instruction.startswith(graph_descriptions.PROMPT):
            self.counts["descriptions"] += 1
            return f"Described as {mark}."
        if instruction.startswith("List the entities"):
            self.counts["windows"] += 1
            return json.dumps(cooccurrence.graph(text))
        self.counts["names"] += 1
        return json.dumps({"same": []})


@dataclass(frozen=True)
class PublishedGraph:
    """The nodes of the published generation."""

    entities: Mapping[str, tuple[str, str]]
    relations: Mapping[tuple[str, str], tuple[float, str]]
    tops: Mapping[str, str]

    @property
    def edges(self) -> dict[tuple[str, str], float]:
        """Weights by the keys of both ends."""
        return {pair: weight for pair, (weight, _) in self.relations.items()}

    def prompts(self, *, running_ids: bool) -> set[str]:
        """The prompts of all reports, if communities were found afresh."""
        listed = communities.communities(self.entities, self.edges, {})
        numbers = {key: f"{number} " for number, key in enumerate(self.entities)} if running_ids else {}
        home = {item: each.name for each in listed if each.level == 1 for item in each.members}
        inner: dict[str, list[str]] = {}
        for number, ((source, target), (_, text)) in enumerate(self.relations.items()):
            if home[source] == home[target]:
                inner.setdefault(home[source], []).append(f"{number} {text}" if running_ids else text)
        prompts: dict[str, str] = {}
        for each in listed:
            prompts[each.name] = self._prompt(each, numbers, prompts, inner.get(each.name, ()))
        return {prompts[each.name] for each in listed if len(each.members) > 1}

    def _prompt(
        self, each: Community, numbers: Mapping[str, str], below: Mapping[str, str], inner: Sequence[str]
    ) -> str:
        if each.level > 1:
            lines = [below[member] for member in each.members]
        else:
            lines = [f"{numbers.get(key, '')}{': '.join(self.entities[key])}" for key in each.members]
        content = "\n".join([*sorted(lines), *(sorted(inner) if each.level == 1 else ())])
        return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()


class GraphBench:
    """An installation with the corpus in it."""

    def __init__(self, runtime: bootstrap.Runtime, model: CountingModel, corpus: NamedCorpus) -> None:
        self.model, self.runtime, self.corpus = model, runtime, corpus
        self.services = bootstrap.AppServices(runtime)
        self.ids: dict[str, str] = {}
        self.services.collections.make(WISH, COLLECTION)
        for document in corpus.documents:
            self.add(document)
        self.runtime.engine.work_off(most=EVERYTHING)

    def add(self, document: NamedDocument) -> None:
        """The document is in the collection, to be indexed."""
        upload = Upload(document.text.encode(), f"{document.name}.md", document.name)
        (result,) = self.services.documents.add(WISH, COLLECTION, [upload])
        self.ids[document.name] = result.document.id

    def put(self, document: NamedDocument) -> None:
        """The document has its present text, to be indexed."""
        upload = Upload(document.text.encode(), f"{document.name}.md", document.name)
        self.services.documents.put_content(WISH, self.ids[document.name], upload)

    def build(self) -> Counter[str]:
        """The calls that a new graph has paid for, by sort."""
        self.runtime.engine.work_off(most=EVERYTHING)
        before = Counter(self.model.counts)
        collection = self.services.collections.get("default", COLLECTION)
        request = JobRequest(graph.NAME, {}, mode="force")
        run_id = self.services.jobs.on_collection(WISH, collection, request).run_id
        self.runtime.engine.work_off(most=EVERYTHING)
        run = self.services.jobs.view("default", str(run_id)).job.run
        if run.status is not Status.SUCCESS:
            raise SystemExit(f"the job ended as {run.status}: {run.error_code}")
        return self.model.counts - before

    def estimate(self) -> int:
        """How many calls the next build would pay for, as people are told before."""
        return self.services.estimates().of_job("default", COLLECTION, graph.NAME, {}).forecast.calls

    def chunks(self) -> int:
        """How many chunks the collection has."""
        return sum(document.chunks or 0 for document in self.services.documents.walk("default", COLLECTION))

    def published(self) -> PublishedGraph:
        """The graph as it is stored."""
        rows = self.runtime.db.read(lambda tx: tx.execute(derived_nodes.select()).all())
        last = max(row.generation for row in rows if row.type == "entity")
        rows = [row for row in rows if row.generation == last]
        parents = {row.key: row.parent for row in rows}

        def top(key: str) -> str:
            while parents[key] is not None:
                key = parents[key]
            return key

        entities = {row.key: (row.title, row.text) for row in rows if row.type == "entity"}
        relations = {
            (min(row.data["source"], row.data["target"]), max(row.data["source"], row.data["target"])): (
                float(row.data["weight"]),
                f"{row.title}: {row.text}",
            )
            for row in rows
            if row.type == "relation"
        }
        return PublishedGraph(entities, relations, {key: top(key) for key in entities})

    def edits(self) -> dict[str, Callable[[], None]]:
        """The edits by name; each changes one document at random."""
        corpus, chance = self.corpus, self.corpus.chance

        def sentence() -> None:
            document = chance.choice(corpus.documents)
            lines = chance.choice(document.paragraphs)
            lines[chance.randrange(len(lines))] = corpus.sentence(document)
            self.put(document)

        def paragraph() -> None:
            document = chance.choice(corpus.documents)
            position = chance.randrange(len(document.paragraphs))
            document.paragraphs.insert(position, corpus.paragraph(document))
            self.put(document)

        def replaced() -> None:
            document = chance.choice(corpus.documents)
            fresh = corpus.document(0)
            document.topic, document.own, document.paragraphs = fresh.topic, fresh.own, fresh.paragraphs
            self.put(document)

        def added() -> None:
            corpus.documents.append(corpus.document(len(self.ids) + 1))
            self.add(corpus.documents[-1])

        def deleted() -> None:
            document = corpus.documents.pop(chance.randrange(len(corpus.documents)))
            self.services.documents.delete(WISH, self.ids[document.name])

        return {each.__name__: each for each in (sentence, paragraph, replaced, added, deleted)}

    def fixed_windows(self) -> set[str]:
        """The windows of all documents, if they had a fixed number of chunks."""
        windows = set()
        for document in self.corpus.documents:
            pieces = [
                each.text for each in chunk.cut(texts.markdown_pages(document.text), chunk.ChunkOptions())
            ]
            windows |= {"\n\n".join(pieces[at : at + FIXED]) for at in range(0, len(pieces), FIXED)}
        return windows


def measure(documents: int, repeats: int) -> dict[str, Any]:
    """The figures: of the first build, of none and of each edit."""
    model = CountingModel()
    with tempfile.TemporaryDirectory() as folder, Meter(chat=model) as meter:
        settings = Settings(
            data_dir=Path(folder),
            database_url=f"sqlite:///{folder}/bench.db",
            llm_provider="openai",
            llm_base_url=meter.base_url,
        )
        bootstrap.migrated(settings)
        with bootstrap.open_runtime(settings, owner="bench") as runtime:
            figures = _measured(GraphBench(runtime, model, NamedCorpus(documents)), repeats)
        totals = meter.totals()
        return figures | {"charges": totals.charges, "distinct": totals.distinct_inputs}


def _measured(bench: GraphBench, repeats: int) -> dict[str, Any]:
    foreseen = bench.estimate()
    first = bench.build()
    state = bench.published()
    figures: dict[str, Any] = {"documents": len(bench.ids), "chunks": bench.chunks(), "first": dict(first)}
    figures |= {"entities": len(state.entities), "relations": len(state.relations)}
    figures |= {"estimate": foreseen, "per_chunk": first["windows"] / figures["chunks"]}
    figures["unchanged"] = sum(bench.build().values())
    for name, edit in bench.edits().items():
        rows: list[dict[str, float]] = []
        for _ in range(repeats):
            rows.append(_one_edit(bench, edit, first))
            print(f"# {name} {rows[-1]}", file=sys.stderr, flush=True)
        figures[name] = {each: sum(row[each] for row in rows) / len(rows) for each in rows[0]}
    state = bench.published()
    oracle = nx.Graph()
    oracle.add_nodes_from(sorted(state.entities))
    oracle.add_weighted_edges_from((*pair, weight) for pair, weight in sorted(state.edges.items()))
    best = nx.community.louvain_communities(oracle, seed=0)
    louvain = nx.community.modularity(oracle, best)
    own = communities.modularity(state.tops, state.edges)
    return figures | {"modularity": own, "louvain": louvain, "modularity_ratio": own / louvain}


def _one_edit(bench: GraphBench, edit: Callable[[], None], first: Counter[str]) -> dict[str, float]:
    """What one edit costs, by our rules and by those of others."""
    before, fixed = bench.published(), bench.fixed_windows()
    edit()
    paid = bench.build()
    after = bench.published()
    row: dict[str, float] = {"windows": paid["windows"], "fixed_windows": len(bench.fixed_windows() - fixed)}
    row |= {"descriptions": paid["descriptions"], "reports": paid["reports"]}
    row["percent"] = 100 * paid["reports"] / first["reports"]
    for name, running_ids in (("fresh", False), ("fresh_ids", True)):
        old, new = before.prompts(running_ids=running_ids), after.prompts(running_ids=running_ids)
        row[f"percent_{name}"] = 100 * len(new - old) / len(old)
    return {name: round(value, 2) for name, value in row.items()}


def misses(figures: Mapping[str, Any]) -> list[str]:
    """The targets that were missed."""
    wrong = [f"reports {name}" for name, most in REPORTS.items() if figures[name]["percent"] > most]
    wrong += [f"windows {name}" for name, most in WINDOWS.items() if figures[name]["windows"] > most]
    checks = {
        "per_chunk": figures["per_chunk"] <= MOST_PER_CHUNK,
        "modularity": figures["modularity_ratio"] >= LEAST_MODULARITY,
        "unchanged": not figures["unchanged"],
        "charges": figures["charges"] == figures["distinct"],
    }
    return [*wrong, *(name for name, holds in checks.items() if not holds)]


def table(figures: Mapping[str, Any]) -> str:
    """The figures of the edits, as a table in Markdown."""
    columns = {
        "windows": "windows",
        "fixed_windows": "fixed windows",
        "descriptions": "descriptions",
        "percent": "reports, %",
        "percent_fresh": "fresh communities, %",
        "percent_fresh_ids": "fresh with running ids, %",
    }
    lines = [f"| | {' | '.join(columns.values())} |", f"|---{'|---' * len(columns)}|"]
    lines += [
        f"| {name} | {' | '.join(f'{figures[name][each]:.1f}' for each in columns)} |" for name in REPORTS
    ]
    return "\n".join(lines)


def main(words: Sequence[str]) -> int:
    """The exit code."""
    summary = (__doc__ or "").split("\n", 1)[0]
    parser = argparse.ArgumentParser(prog="bench.kinds.graph_edits", description=summary)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args(words)
    figures = measure(options.documents, options.repeats)
    for name, figure in figures.items():
        print(f"{name:16} {figure}")
    print(table(figures))
    wrong = misses(figures)
    print(f"missed: {', '.join(wrong)}" if wrong else "every target is met")
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return int(bool(wrong) and options.strict)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
