"""`holdfast index` as an external command of a peer benchmark: indexes a folder, tells what it took.

    python -m bench.indexing_command CORPUS STATE [hash|local]

A worker with two processes is up before the clock starts, as in an installation; the database, the blobs and
the broker are in STATE. The last line is one JSON object: seconds, docs, stored, peak_rss_mib, tokens, paid.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text

from bench import places, workers

EMBEDDERS: dict[str, dict[str, str]] = {
    "hash": {"HOLDFAST_EMBEDDING_PROVIDER": "bench.hash_embedder:make", "HOLDFAST_EMBEDDING_MODEL": "local"},
    "local": {},
}
SHOWN = text(
    "SELECT count(*) FROM holdfast_chunks JOIN holdfast_heads ON holdfast_heads.id = holdfast_chunks.head_id "
    "AND heads.published_generation = chunks.generation AND heads.visible"
)


def index(corpus: str, state: str, embedder: str = "hash") -> dict[str, Any]:
    """Index the folder once, with workers up; what it took."""
    environment = {
        "HOLDFAST_DATA_DIR": state,
        "HOLDFAST_DATABASE_URL": f"sqlite:///{state}/holdfast.db",
        **EMBEDDERS[embedder],
    }
    whole = {**os.environ, **environment, "PYTHONPATH": str(places.ROOT)}
    command = [sys.executable, "-m", "holdfast.cli"]
    subprocess.run([*command, "migrate"], env=whole, check=True, capture_output=True)
    with workers.worker(environment) as pid:
        done = subprocess.run(
            [*command, "index", corpus, "--collection", "bench", "--json"],
            env=whole,
            check=True,
            capture_output=True,
            text=True,
        )
        peak = workers.peak_rss(pid)
    summary = json.loads(done.stdout)
    engine = create_engine(environment["HOLDFAST_DATABASE_URL"])
    with engine.connect() as connection:
        stored = connection.execute(SHOWN).scalar_one()
    engine.dispose()
    kept = {name: summary[name] for name in ("seconds", "tokens", "paid", "reused", "unchanged", "chunks")}
    return {**kept, "docs": summary["documents"], "stored": stored, "peak_rss_mib": peak}


def main(corpus: str, state: str, embedder: str = "hash") -> None:
    """Tell the figures as the last line."""
    Path(state).mkdir(parents=True, exist_ok=True)
    print(json.dumps(index(corpus, state, embedder)))


if __name__ == "__main__":
    main(*sys.argv[1:])
