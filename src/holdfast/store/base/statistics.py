"""What SQLite is told of its tables, so that a statement has the same plan in every installation.

SQLite chooses among indexes by the statistics of ANALYZE. Without any it takes every index for about equally
good, and reads all heads of a tenant to save the sorting of three. With those of the moment a plan would
change with what happens to be there, often for the worse: what was analysed while it was small is taken for
small. So every database has the same statistics, those of a large installation of one tenant, and the plans
that the tests look at are those that people have. PostgreSQL keeps its own.

Each value is SQLite's: the rows of the index, and how many share its first column, its first two, and so on.
`python -m tests.statements --statistics` prints them anew; whoever runs ANALYZE has others till the next
upgrade, and loses nothing by that but what is said here.
"""

from sqlalchemy import Engine, text

# By table and index; an index by the number that SQLite gives it is that of a primary key or of a constraint.
STATISTICS = {
    ("api_keys", "ix_api_keys_id"): "100000 1",
    ("api_keys", "sqlite_autoindex_api_keys_1"): "100000 1",
    ("calls", "ix_calls_order"): "100000 1",
    ("calls", "sqlite_autoindex_calls_1"): "100000 100000 1",
    ("carriers", "ix_carriers_lease"): "100000 1",
    ("carriers", "ix_carriers_process"): "100000 1",
    ("carriers", "sqlite_autoindex_carriers_1"): "100000 1",
    ("ceilings", "sqlite_autoindex_ceilings_1"): "100000 1",
    ("charges", "ix_charges_doubts"): "100 100",
    ("charges", "ix_charges_run"): "100000 10",
    ("charges", "ix_charges_tenant"): "100000 100000 1",
    ("charges", "sqlite_autoindex_charges_1"): "100000 1 1 1",
    ("chunks", "sqlite_autoindex_chunks_1"): "100000 100 50 50 50 1",
    ("deliveries", "ix_deliveries_action"): "100000 14286 1",
    ("deliveries", "ix_deliveries_head"): "100000 4762 25",
    ("deliveries", "sqlite_autoindex_deliveries_1"): "100000 1",
    ("documents", "ix_documents_collection"): "100000 100000 991 1",
    ("documents", "ix_documents_deleted"): "100 100 100 1",
    ("documents", "ix_documents_digest"): "100000 1",
    ("documents", "ix_documents_name"): "100000 100000 991 991",
    ("documents", "ix_documents_own_options"): "100 100 100 1",
    ("documents", "ix_documents_thumbnail"): "50000 1",
    ("documents", "one_live_document_per_content"): "99900 99900 990 1",
    ("documents", "sqlite_autoindex_documents_1"): "100000 100000 1",
    ("findings", "sqlite_autoindex_findings_1"): "100000 1 1",
    ("follow_ups", "ix_follow_ups_head"): "89999 2",
    ("follow_ups", "ix_follow_ups_run"): "89999 1",
    ("follow_ups", "sqlite_autoindex_follow_ups_1"): "89999 89999 2 1",
    ("heads", "ix_heads_collection"): "100000 100000 991 1",
    ("heads", "ix_heads_jobs"): "20000 20000 910 1",
    ("heads", "ix_heads_subject"): "100000 100000 1",
    ("heads", "sqlite_autoindex_heads_1"): "100000 100000 50000 1",
    ("idempotency", "ix_idempotency_created"): "100000 1",
    ("idempotency", "sqlite_autoindex_idempotency_1"): "100000 100 1",
    ("job_results", "ix_job_results_document"): "100000 100000 100",
    ("job_results", "ix_job_results_head"): "100000 100",
    ("job_results", "ix_job_results_mark"): "100000 100 1",
    ("job_results", "sqlite_autoindex_job_results_1"): "100000 100 10 1",
    ("journal", "ix_journal_budgets"): "10 10 1",
    ("journal", "ix_journal_duplicates"): "100 100 1",
    ("journal", "ix_journal_head"): "100001 10 10 1",
    ("journal", "ix_journal_order"): "100001 100001 1",
    ("journal", "ix_journal_tenant"): "100001 100001 100001 1",
    ("lines", "sqlite_autoindex_lines_1"): "100000 100 1",
    ("orders", "ix_orders_in_flight"): "100 100",
    ("orders", "ix_orders_run"): "100000 10",
    ("orders", "ix_orders_unsettled"): "100 100 100",
    ("orders", "sqlite_autoindex_orders_1"): "100000 1",
    ("orders", "sqlite_autoindex_orders_2"): "100000 1",
    ("page_sessions", "ix_page_sessions_expires"): "100000 1",
    ("page_sessions", "sqlite_autoindex_page_sessions_1"): "100000 1",
    ("runs", "g1_one_live_run_per_head"): "200 1",
    ("runs", "ix_runs_deletions"): "100 1 1",
    ("runs", "ix_runs_deliveries_in_state"): "10000 10000 5000 1",
    ("runs", "ix_runs_deliveries_waiting"): "100 1",
    ("runs", "ix_runs_finished"): "100000 1",
    ("runs", "ix_runs_jobs_in_state"): "10000 10000 10000 1 1",
    ("runs", "ix_runs_jobs_listed"): "10000 10000 1 1",
    ("runs", "ix_runs_past"): "50000 1",
    ("runs", "ix_runs_running"): "100 1",
    ("runs", "ix_runs_unpruned"): "48 1",
    ("runs", "sqlite_autoindex_runs_1"): "100000 1",
    ("runs", "sqlite_autoindex_runs_2"): "100000 2 1",
    ("tasks", "ix_tasks_queued"): "200 200 200 200 1 1",
    ("tasks", "ix_tasks_running"): "100 100",
    ("tasks", "ix_tasks_token"): "100 1",
    ("tasks", "ix_tasks_waiting"): "100 100",
    ("tasks", "sqlite_autoindex_tasks_1"): "100000 1 1",
    ("word_counts", "sqlite_autoindex_word_counts_1"): "100000 1 1 1",
}

_FORGET = text("DELETE FROM sqlite_stat1")
_WRITE = text("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (:table, :index, :stat)")


def write(engine: Engine) -> None:
    """The statistics of the database are these; nothing on PostgreSQL."""
    if engine.dialect.name != "sqlite":
        return
    rows = [{"table": table, "index": index, "stat": stat} for (table, index), stat in STATISTICS.items()]
    with engine.begin() as connection:
        connection.execute(text("ANALYZE sqlite_schema"))  # makes the table where there is none
        connection.execute(_FORGET)
        connection.execute(_WRITE, rows)
