"""Fixed statistics for SQLite, so that a statement has the same plan in every installation.

SQLite chooses among indexes by the statistics of ANALYZE. Without any it takes every index for about equally
good, and reads all heads of a tenant to avoid sorting three. With current statistics a plan would change with
the data, often for the worse: tables that were small when analysed are taken for small. So every database has
the same statistics, those of a large installation with one tenant, and the plans that the tests check are the
plans in use. PostgreSQL keeps its own.

Each value is SQLite's: the rows of the index, and how many share its first column, its first two, and so on.
`python -m tests.statements --statistics` prints them. ANALYZE replaces them until the next upgrade; only the
plans may then differ.
"""

from sqlalchemy import Engine, text

# By table and index. SQLite's numbered indexes are those of primary keys and constraints.
STATISTICS = {
    ("holdfast_api_keys", "holdfast_api_keys_id"): "100000 1",
    ("holdfast_api_keys", "sqlite_autoindex_holdfast_api_keys_1"): "100000 1",
    ("holdfast_calls", "holdfast_calls_order"): "100000 1",
    ("holdfast_calls", "sqlite_autoindex_holdfast_calls_1"): "100000 100000 1",
    ("holdfast_carriers", "holdfast_carriers_lease"): "100000 1",
    ("holdfast_carriers", "holdfast_carriers_process"): "100000 1",
    ("holdfast_carriers", "sqlite_autoindex_holdfast_carriers_1"): "100000 1",
    ("holdfast_ceilings", "sqlite_autoindex_holdfast_ceilings_1"): "100000 1",
    ("holdfast_charges", "holdfast_charges_doubts"): "100 100",
    ("holdfast_charges", "holdfast_charges_run"): "100000 10",
    ("holdfast_charges", "holdfast_charges_tenant"): "100000 100000 1",
    ("holdfast_charges", "sqlite_autoindex_holdfast_charges_1"): "100000 1 1 1",
    ("holdfast_chunk_edits", "sqlite_autoindex_holdfast_chunk_edits_1"): "100000 100000 100 1 1",
    ("holdfast_chunks", "sqlite_autoindex_holdfast_chunks_1"): "100000 100 50 50 50 1",
    ("holdfast_deliveries", "holdfast_deliveries_action"): "100000 14286 1",
    ("holdfast_deliveries", "holdfast_deliveries_head"): "100000 4762 25",
    ("holdfast_deliveries", "sqlite_autoindex_holdfast_deliveries_1"): "100000 1",
    ("holdfast_derived_edges", "holdfast_derived_edges_source"): "100000 100 50 1",
    ("holdfast_derived_edges", "holdfast_derived_edges_target"): "100000 100 50 5",
    ("holdfast_derived_edges", "sqlite_autoindex_holdfast_derived_edges_1"): "100000 100 50 10 10 1",
    ("holdfast_derived_nodes", "holdfast_derived_nodes_document"): "100000 100 50 10 4",
    ("holdfast_derived_nodes", "holdfast_derived_nodes_parent"): "100000 100 50 5 1 1",
    ("holdfast_derived_nodes", "holdfast_one_node_per_key"): "100000 100 50 1",
    ("holdfast_derived_nodes", "sqlite_autoindex_holdfast_derived_nodes_1"): "100000 100 50 10 10 1",
    ("holdfast_derived_sources", "holdfast_derived_sources_document"): "100000 100000 20 20",
    ("holdfast_derived_sources", "holdfast_derived_sources_node"): "100000 100 50 1 1 1",
    ("holdfast_derived_sources", "sqlite_autoindex_holdfast_derived_sources_1"): "100000 100 50 10 10 1",
    ("holdfast_derived_state", "holdfast_derived_state_name"): "100000 100 50 17 1",
    ("holdfast_derived_state", "sqlite_autoindex_holdfast_derived_state_1"): "100000 100 50 10 10 1",
    ("holdfast_document_members", "holdfast_document_members_child"): "100000 100000 1 1",
    ("holdfast_document_members", "sqlite_autoindex_holdfast_document_members_1"): "100000 100000 100 1",
    (
        "holdfast_document_values",
        "holdfast_document_values_key",
    ): "100000 100000 991 981 981 100 1",
    ("holdfast_document_values", "sqlite_autoindex_holdfast_document_values_1"): "100000 100000 1 1",
    ("holdfast_documents", "holdfast_documents_collection"): "100000 100000 991 1",
    ("holdfast_documents", "holdfast_documents_deleted"): "100 100 100 1",
    ("holdfast_documents", "holdfast_documents_digest"): "100000 1",
    ("holdfast_documents", "holdfast_documents_gaps"): "100 100 1",
    ("holdfast_documents", "holdfast_documents_name"): "100000 100000 991 991",
    ("holdfast_documents", "holdfast_documents_own_options"): "100 100 100 1",
    ("holdfast_documents", "holdfast_documents_thumbnail"): "50000 1",
    ("holdfast_documents", "holdfast_one_live_document_per_content"): "49900 49900 979 1",
    ("holdfast_documents", "holdfast_one_live_document_per_external_id"): "50000 50000 981 1",
    ("holdfast_documents", "sqlite_autoindex_holdfast_documents_1"): "100000 100000 1",
    ("holdfast_findings", "sqlite_autoindex_holdfast_findings_1"): "100000 1 1",
    ("holdfast_flows", "sqlite_autoindex_holdfast_flows_1"): "100000 100000 10 1",
    ("holdfast_follow_ups", "holdfast_follow_ups_head"): "89999 2",
    ("holdfast_follow_ups", "holdfast_follow_ups_run"): "89999 1",
    ("holdfast_follow_ups", "sqlite_autoindex_holdfast_follow_ups_1"): "89999 89999 2 1",
    ("holdfast_gateway_calls", "holdfast_gateway_calls_content"): "100000 100000 1",
    ("holdfast_gateway_calls", "holdfast_gateway_calls_created"): "100000 1",
    ("holdfast_gateway_calls", "sqlite_autoindex_holdfast_gateway_calls_1"): "100000 1",
    ("holdfast_gateway_notes", "holdfast_gateway_notes_at"): "100000 1",
    ("holdfast_gateway_notes", "holdfast_gateway_notes_tenant"): "100000 100000 50000 1",
    ("holdfast_gateway_notes", "sqlite_autoindex_holdfast_gateway_notes_1"): "100000 1",
    (
        "holdfast_gateway_usage",
        "sqlite_autoindex_holdfast_gateway_usage_1",
    ): "100000 100000 100 100 10 1 1 1 1",
    ("holdfast_heads", "holdfast_heads_collection"): "100000 100000 991 1",
    ("holdfast_heads", "holdfast_heads_jobs"): "20000 20000 910 1",
    ("holdfast_heads", "holdfast_heads_subject"): "100000 100000 1",
    ("holdfast_heads", "sqlite_autoindex_holdfast_heads_1"): "100000 100000 50000 1",
    ("holdfast_idempotency", "holdfast_idempotency_created"): "100000 1",
    ("holdfast_idempotency", "sqlite_autoindex_holdfast_idempotency_1"): "100000 100 1",
    ("holdfast_job_results", "holdfast_job_results_document"): "100000 100000 100",
    ("holdfast_job_results", "holdfast_job_results_head"): "100000 100",
    ("holdfast_job_results", "holdfast_job_results_mark"): "100000 100 1",
    ("holdfast_job_results", "sqlite_autoindex_holdfast_job_results_1"): "100000 100 10 1",
    ("holdfast_journal", "holdfast_journal_budgets"): "10 10 1",
    ("holdfast_journal", "holdfast_journal_duplicates"): "100 100 1",
    ("holdfast_journal", "holdfast_journal_head"): "100001 10 10 1",
    ("holdfast_journal", "holdfast_journal_order"): "100001 100001 1",
    ("holdfast_journal", "holdfast_journal_tenant"): "100001 100001 100001 1",
    ("holdfast_lines", "sqlite_autoindex_holdfast_lines_1"): "100000 100 1",
    ("holdfast_messages", "holdfast_messages_to_report"): "100 1",
    ("holdfast_messages", "sqlite_autoindex_holdfast_messages_1"): "100000 1",
    ("holdfast_orders", "holdfast_orders_in_flight"): "100 100",
    ("holdfast_orders", "holdfast_orders_run"): "100000 10",
    ("holdfast_orders", "holdfast_orders_unsettled"): "100 100 100",
    ("holdfast_orders", "sqlite_autoindex_holdfast_orders_1"): "100000 1",
    ("holdfast_orders", "sqlite_autoindex_holdfast_orders_2"): "100000 1",
    ("holdfast_page_sessions", "holdfast_page_sessions_expires"): "100000 1",
    ("holdfast_page_sessions", "sqlite_autoindex_holdfast_page_sessions_1"): "100000 1",
    ("holdfast_page_texts", "holdfast_page_texts_head"): "100000 10",
    ("holdfast_page_texts", "sqlite_autoindex_holdfast_page_texts_1"): "100000 100000 1",
    ("holdfast_relays", "holdfast_relays_gone"): "99950 1",
    ("holdfast_relays", "holdfast_relays_present"): "50 1",
    ("holdfast_relays", "sqlite_autoindex_holdfast_relays_1"): "100000 1",
    ("holdfast_runs", "holdfast_g1_one_live_run_per_head"): "200 1",
    ("holdfast_runs", "holdfast_runs_deletions"): "100 1 1",
    ("holdfast_runs", "holdfast_runs_deliveries_in_state"): "10000 10000 5000 1",
    ("holdfast_runs", "holdfast_runs_deliveries_waiting"): "100 1",
    ("holdfast_runs", "holdfast_runs_finished"): "100000 1",
    ("holdfast_runs", "holdfast_runs_jobs_in_state"): "10000 10000 10000 1 1",
    ("holdfast_runs", "holdfast_runs_jobs_listed"): "10000 10000 1 1",
    ("holdfast_runs", "holdfast_runs_past"): "50000 1",
    ("holdfast_runs", "holdfast_runs_running"): "100 1",
    ("holdfast_runs", "holdfast_runs_unpruned"): "48 1",
    ("holdfast_runs", "sqlite_autoindex_holdfast_runs_1"): "100000 1",
    ("holdfast_runs", "sqlite_autoindex_holdfast_runs_2"): "100000 2 1",
    ("holdfast_source_items", "holdfast_source_items_document"): "100000 100000 1",
    ("holdfast_source_items", "holdfast_source_items_state"): "100000 100000 5000 4546 1",
    ("holdfast_source_items", "sqlite_autoindex_holdfast_source_items_1"): "100000 100000 5000 1",
    ("holdfast_step_outputs", "holdfast_step_outputs_head"): "100000 10",
    ("holdfast_step_outputs", "sqlite_autoindex_holdfast_step_outputs_1"): "100000 100000 1",
    ("holdfast_tasks", "holdfast_tasks_queued"): "200 200 200 200 1 1",
    ("holdfast_tasks", "holdfast_tasks_running"): "100 100",
    ("holdfast_tasks", "holdfast_tasks_to_publish"): "100 1",
    ("holdfast_tasks", "holdfast_tasks_token"): "100 1",
    ("holdfast_tasks", "holdfast_tasks_waiting"): "100 100",
    ("holdfast_tasks", "sqlite_autoindex_holdfast_tasks_1"): "100000 1 1",
    ("holdfast_word_counts", "sqlite_autoindex_holdfast_word_counts_1"): "100000 1 1 1",
}

# Only ours: an application may have its own tables in the same database.
_FORGET = text("DELETE FROM sqlite_stat1 WHERE tbl LIKE 'holdfast\\_%' ESCAPE '\\'")
_WRITE = text("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (:table, :index, :stat)")


def write(engine: Engine) -> None:
    """The database has these statistics; does nothing on PostgreSQL."""
    if engine.dialect.name != "sqlite":
        return
    rows = [{"table": table, "index": index, "stat": stat} for (table, index), stat in STATISTICS.items()]
    with engine.begin() as connection:
        connection.execute(text("ANALYZE sqlite_schema"))  # creates the table if there is none
        connection.execute(_FORGET)
        connection.execute(_WRITE, rows)
