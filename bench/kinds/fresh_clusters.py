"""Clusters found afresh: what a tree costs without those of last time, and how much better they would be."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Table, select

from holdfast.kinds import neighbour_groups
from holdfast.store.base.database import Database
from holdfast.store.base.schema import calls, derived_nodes, derived_state, heads
from holdfast.store.base.schema import chunks as chunk_rows
from holdfast.vectors import encoding

# Texts under one summary, on average.
GROUP = 6
ROUNDS = 25
ATTEMPTS = 5

Matrix = NDArray[np.float32]


def k_means(matrix: Matrix, number: int, seed: int) -> NDArray[np.int64]:
    """The cluster of each row, by Lloyd's rounds from rows that are far apart."""
    chance = np.random.default_rng(seed)
    chosen = [int(chance.integers(len(matrix)))]
    nearest = matrix @ matrix[chosen[0]]
    while len(chosen) < number:
        apart = np.maximum(0.0, 1.0 - nearest) ** 2
        shares = apart / apart.sum() if apart.sum() > 0 else None
        chosen.append(int(chance.choice(len(matrix), p=shares)))
        nearest = np.maximum(nearest, matrix @ matrix[chosen[-1]])
    centres = matrix[chosen]
    homes: NDArray[np.int64] = np.zeros(len(matrix), dtype=np.int64)
    for _ in range(ROUNDS):
        homes = np.argmax(matrix @ centres.T, axis=1)
        sums = np.zeros_like(centres)
        np.add.at(sums, homes, matrix)
        filled = np.linalg.norm(sums, axis=1) > 0
        centres = np.where(filled[:, None], encoding.normalised(sums), centres)
    return homes


def prompts(items: Mapping[str, Matrix]) -> set[str]:
    """What the summaries of all levels would be made of, each as a digest."""
    found: set[str] = set()
    while len(items) > 1:
        names = sorted(items)
        matrix = np.stack([items[name] for name in names])
        homes = k_means(matrix, max(1, len(names) // GROUP), seed=0)
        above: dict[str, Matrix] = {}
        for home in range(int(homes.max()) + 1):
            own = [name for name, at in zip(names, homes.tolist(), strict=True) if at == home]
            if own:
                digest = hashlib.blake2b("\n".join(own).encode(), digest_size=12).hexdigest()
                found |= {digest} if len(own) > 1 else set()
                above[digest] = encoding.normalised(np.mean([items[name] for name in own], axis=0))
        if len(above) >= len(items):
            break
        items = above
    return found


def chunks(db: Database) -> dict[str, Matrix]:
    """The vectors of all published chunks, by what these say."""
    query = (
        select(chunk_rows.c.text, calls.c.result)
        .join(heads, heads.c.id == chunk_rows.c.head_id)
        .join(calls, calls.c.key == chunk_rows.c.call_key)
        .where(heads.c.visible, heads.c.published_generation == chunk_rows.c.generation)
    )
    rows = db.read(lambda tx: tx.execute(query).all())
    return {
        neighbour_groups.digest(row.text): encoding.normalised(encoding.decode(row.result)) for row in rows
    }


def cohesion(db: Database, kind: str) -> tuple[float, float]:
    """The mean cosine of documents with the centre of their cluster: as it is kept, and found afresh."""
    head = db.read(lambda tx: tx.execute(select(heads).where(heads.c.kind == kind)).one())

    def of_last(table: Table) -> tuple[ColumnElement[bool], ...]:
        return table.c.head_id == head.id, table.c.generation == head.published_generation

    states = db.read(
        lambda tx: tx.execute(
            select(derived_state.c.name, derived_state.c.data).where(
                *of_last(derived_state), derived_state.c.level == 1
            )
        ).all()
    )
    nodes = db.read(
        lambda tx: tx.execute(
            select(derived_nodes.c.text, calls.c.result)
            .join(calls, calls.c.key == derived_nodes.c.call_key)
            .where(*of_last(derived_nodes), derived_nodes.c.document.is_not(None))
        ).all()
    )
    vectors = {neighbour_groups.digest(row.text): row.result for row in nodes}
    homes = {name: row.name for row in states for name in row.data["members"] if name in vectors}
    names = sorted(homes)
    matrix = np.stack([encoding.normalised(encoding.decode(vectors[name])) for name in names])
    numbers = {home: at for at, home in enumerate(sorted(set(homes.values())))}
    kept = _mean(matrix, np.array([numbers[homes[name]] for name in names]))
    fresh = max(_mean(matrix, k_means(matrix, len(numbers), seed)) for seed in range(ATTEMPTS))
    return kept, fresh


def _mean(matrix: Matrix, homes: NDArray[Any]) -> float:
    total = 0.0
    for home in set(homes.tolist()):
        own = matrix[homes == home]
        total += float((own @ encoding.normalised(own.mean(axis=0))).sum())
    return total / len(matrix)
