"""Measures how much of a labelled collection a knowledge graph has: entities, relations, answers.

    python -m bench.kinds.graph_quality [--json FILE]

The language model is the one of the settings: without any, the stand-in, which costs nothing. With
HOLDFAST_LLM_PROVIDER and the rest set it measures your own model, and pays for about 40 calls.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.kinds import labelled_harbour as labels
from holdfast import bootstrap
from holdfast.core.states import Status
from holdfast.kinds import graph, graph_names
from holdfast.service.documents import Upload
from holdfast.service.jobs import JobRequest
from holdfast.service.requests import RequestContext
from holdfast.settings import Settings
from holdfast.store.base.schema import derived_nodes
from scripts import sample_files

COLLECTION = "harbour"
WISH = RequestContext()


def built(runtime: bootstrap.Runtime) -> list[Any]:
    """The nodes of a graph of the sample collection."""
    services = bootstrap.AppServices(runtime)
    services.collections.make(WISH, COLLECTION)
    uploads = [Upload(path.read_bytes(), path.name) for path in sorted(sample_files.FOLDER.iterdir())]
    services.documents.add(WISH, COLLECTION, uploads)
    runtime.engine.work_off(most=1000000)
    collection = services.collections.get("default", COLLECTION)
    run_id = services.jobs.on_collection(WISH, collection, JobRequest(graph.NAME, {})).run_id
    runtime.engine.work_off(most=1000000)
    run = services.jobs.view("default", str(run_id)).job.run
    if run.status is not Status.SUCCESS:
        raise SystemExit(f"the job ended as {run.status}: {run.error_code}")
    return list(runtime.db.read(lambda tx: tx.execute(derived_nodes.select()).all()))


def measured(nodes: Sequence[Any]) -> dict[str, Any]:
    """Recall of entities, of relations between them, and of answers within two relations of a question."""
    entities = [node for node in nodes if node.type == "entity"]
    names = {
        graph_names.normalised(name): node.key
        for node in entities
        for name in (node.title, *node.data["names"])
    }
    keys = {label: key for label in labels.ENTITIES if (key := _key(label, names)) is not None}
    links: dict[str, set[str]] = {node.key: set() for node in entities}
    for node in nodes:
        if node.type == "relation":
            links[node.data["source"]].add(node.data["target"])
            links[node.data["target"]].add(node.data["source"])
    related = [pair for pair in labels.RELATIONS if keys.get(pair[1]) in links.get(keys.get(pair[0], ""), ())]
    reached = [_reach(links, keys.get(start)) for _, start, _, _ in labels.QUESTIONS]
    answered = [
        keys.get(answer) in reach for (*_, answer), reach in zip(labels.QUESTIONS, reached, strict=True)
    ]
    return {
        "entities": len(entities),
        "relations": sum(map(len, links.values())) // 2,
        "entity_recall": round(len(keys) / len(labels.ENTITIES), 3),
        "relation_recall": round(len(related) / len(labels.RELATIONS), 3),
        "two_step_recall": round(sum(answered) / len(labels.QUESTIONS), 3),
        # Of all entities, how many are so near: a graph in which all are would find every answer.
        "two_step_share": round(sum(map(len, reached)) / len(reached) / max(1, len(entities)), 3),
        "missing": sorted(set(labels.ENTITIES) - set(keys)),
    }


def _key(label: str, names: Mapping[str, str]) -> str | None:
    """The entity with that name, or with the name without its first word, as `relay K4` and `K4`."""
    words = graph_names.normalised(label).split()
    return names.get(" ".join(words)) or names.get(" ".join(words[1:]))


def _reach(links: Mapping[str, set[str]], start: str | None) -> set[str]:
    first = links.get(start or "", set())
    return (first | {key for one in first for key in links[one]}) - {start or ""}


def main(words: Sequence[str]) -> int:
    """The exit code."""
    summary = (__doc__ or "").split("\n", 1)[0]
    parser = argparse.ArgumentParser(prog="bench.kinds.graph_quality", description=summary)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder), database_url=f"sqlite:///{folder}/bench.db")
        bootstrap.migrated(settings)
        with bootstrap.open_runtime(settings, owner="bench") as runtime:
            figures = measured(built(runtime))
    for name, figure in figures.items():
        print(f"{name:16} {figure}")
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
