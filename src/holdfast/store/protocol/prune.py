"""Prune: delete in bounded batches what no reader or worker needs any more.

Chunks become obsolete when a run ends: an unpublished run leaves its own generation behind, a publication (or
a delete, which is one) leaves every generation below it. So the list of work is the runs that have ended and
are not yet `pruned`, found by a partial index that is empty when there are none; chunks and heads are never
scanned. Under the head's lock nothing can be published, requested or staged, so the published generation and
that of a live run are never touched (G3): a live run has not ended, and its generation is above the published
one.

A run replaced by a later one is `past`: history, deleted with its tasks and log lines once it is older than
the retention. A feature may say so of a latest run as well: then its head goes with it. The ledger is not
pruned here: payments are kept for ever.
"""

from collections import Counter
from functools import partial

from sqlalchemy import (
    ColumnElement,
    Delete,
    Table,
    bindparam,
    delete,
    exists,
    literal_column,
    select,
    tuple_,
    update,
)

from holdfast.core import subjects
from holdfast.core.states import Status, Verb
from holdfast.store.base import journal, rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import DERIVED, chunks, heads, runs, word_counts
from holdfast.store.base.schema import journal as journal_table

RUNS_AT_ONCE = 50
CHUNKS_AT_ONCE = 2000  # a long write would starve the renewals of every lease on SQLite

# Written as in the partial indexes; "pruned = 0" or "past IS 1" would not match them.
_unpruned: ColumnElement[bool] = literal_column("NOT holdfast_runs.pruned")
_past: ColumnElement[bool] = literal_column("holdfast_runs.past")

UNPRUNED = (
    select(runs.c.id, runs.c.head_id)
    .where(runs.c.finished_at.is_not(None), _unpruned)
    .order_by(runs.c.finished_at)
    .limit(bindparam("limit"))
)


def _delete_some(table: Table) -> Delete:
    location = [table.c[name] for name in ("head_id", "generation", "slice", "epoch", "position")]
    return delete(table).where(
        tuple_(*location).in_(
            select(*location)
            .where(
                table.c.head_id == bindparam("b_head"),
                table.c.generation >= bindparam("b_from"),
                table.c.generation < bindparam("b_below"),
            )
            .limit(bindparam("b_limit"))
        )
    )


# What slices stage, each table in bounded batches.
DELETE_STAGED = tuple(_delete_some(table) for table in (chunks, *DERIVED))
DELETE_COUNTS = delete(word_counts).where(
    word_counts.c.head_id == bindparam("b_head"),
    word_counts.c.generation >= bindparam("b_from"),
    word_counts.c.generation < bindparam("b_below"),
)
PRUNED = update(runs).where(runs.c.id == bindparam("b_run")).values(pruned=True)
BECOME_PAST = (
    update(runs)
    .where(
        runs.c.head_id == bindparam("b_head"),
        runs.c.generation < bindparam("b_generation"),
        runs.c.generation != bindparam("b_published"),
        runs.c.finished_at.is_not(None),
        literal_column("NOT holdfast_runs.past"),
    )
    .values(past=True)
)


def prune_generations(db: Database, batch: int = CHUNKS_AT_ONCE) -> int:
    """Obsolete generations are deleted, oldest end first. Returns the number of rows, at most `batch`."""
    gone = 0
    for row in db.read(lambda tx: tx.all(UNPRUNED, {"limit": RUNS_AT_ONCE})):
        if gone >= batch:
            break
        gone += _prune_run(db, row.id, row.head_id, batch - gone)
    return gone


def _prune_run(db: Database, run_id: str, head_id: int, limit: int) -> int:
    """Up to `limit` rows left behind by this run are deleted; after the last one the run is `pruned`."""

    def body(tx: Tx) -> int:
        head_row = tx.one(rows.HEAD_FOR_CHANGE, {"head_id": head_id})
        row = tx.one(rows.RUN_BY_ID, {"run_id": run_id})
        if head_row is None or row is None:
            return 0
        head, run = rows.head(head_row), rows.run(row)
        published = run.status is Status.SUCCESS
        reach = (0, run.generation) if published else (run.generation, run.generation + 1)
        values = {"b_head": head_id, "b_from": reach[0], "b_below": reach[1], "b_limit": limit}
        gone = 0
        # Indexing stages chunks alone.
        for statement in DELETE_STAGED[:1] if head.kind == subjects.INDEX else DELETE_STAGED:
            gone += tx.execute(statement, values | {"b_limit": limit - gone}).rowcount
            if gone >= limit:
                break
        tx.execute(DELETE_COUNTS, {name: values[name] for name in ("b_head", "b_from", "b_below")})
        if gone < limit:
            for hook in tx.db.hooks:
                hook.after_prune(tx, head, run)
            tx.execute(PRUNED, {"b_run": run_id})
            others = {"b_generation": head.generation, "b_published": head.published_generation}
            tx.execute(BECOME_PAST, {"b_head": head_id, **others})
        if gone:
            about = {"tenant": run.tenant, "head_id": head_id, "run_id": run_id}
            reason = "below_published" if published else "ended_unpublished"
            noted = journal.entry(
                Verb.PRUNE,
                reason,
                generation=run.generation,
                data={"chunks": gone},
                **about,  # type: ignore[arg-type]
            )
            journal.write(tx, noted)
        return gone

    return db.write("prune", body)


PAST = (
    select(runs.c.id, runs.c.tenant, runs.c.head_id)
    .where(
        _past, runs.c.finished_at < now() - bindparam("older_than"), literal_column("holdfast_runs.pruned")
    )
    .order_by(runs.c.finished_at)
    .limit(bindparam("limit"))
    .with_for_update(skip_locked=True)
)
DELETE_RUN = delete(runs).where(runs.c.id == bindparam("b_run"))
# Only of a latest run that is past, and that no request has followed meanwhile.
DELETE_HEAD = delete(heads).where(
    heads.c.id == bindparam("b_head"),
    heads.c.run_id == bindparam("b_run"),
    ~exists().where(runs.c.head_id == heads.c.id),
)
_front = (
    select(journal_table.c.id, journal_table.c.at)
    .order_by(journal_table.c.id)
    .limit(bindparam("limit"))
    .subquery()
)
DELETE_NOTES = delete(journal_table).where(
    journal_table.c.id.in_(select(_front.c.id).where(_front.c.at < now() - bindparam("older_than")))
)


def prune_history(db: Database, older_than_seconds: float, batch: int = RUNS_AT_ONCE) -> int:
    """Past runs, journal rows and feature data older than that are deleted, at most `batch` of each.

    Returns how many. A head's latest run and its published run stay at any age, unless a feature says that
    they are past: then the head is deleted with them.
    """
    values = {"older_than": older_than_seconds, "limit": batch}

    def past(tx: Tx) -> int:
        pruned = tx.all(PAST, values)
        for row in pruned:
            tx.execute(DELETE_RUN, {"b_run": row.id})
            tx.execute(DELETE_HEAD, {"b_run": row.id, "b_head": row.head_id})
        for tenant, number in sorted(Counter(row.tenant for row in pruned).items()):
            journal.write(tx, journal.entry(Verb.PRUNE, "history", tenant=tenant, data={"runs": number}))
        return len(pruned)

    # The journal is ordered by time: old rows are at its front, so it needs no index by time.
    notes = db.write("prune", lambda tx: tx.execute(DELETE_NOTES, values).rowcount)
    others = sum(
        db.write("prune", partial(hook.prune_history, older_than=older_than_seconds, limit=batch))
        for hook in db.hooks
    )
    return notes + others + db.write("prune", past)
