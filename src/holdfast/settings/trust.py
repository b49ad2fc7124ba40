"""Which file may set what: a `holdfast.toml` found in the current folder may have come with the documents.

Nobody chose that file, so it may only tune performance. Whatever runs code, names a server, a path or a key,
chooses who is paid, or limits hostile content needs a file named with `--config` or `HOLDFAST_CONFIG`, or the
environment. Each setting is in exactly one of these lists (a test checks it); one in none may not be set by a
file found by chance.
"""

ANY_FILE = frozenset(
    {
        "api_clients",
        "api_concurrency",
        "api_connections",
        "api_listeners",
        "api_rate",
        "api_threads",
        "attempt_cap",
        "loss_cap",
        "body_pause",
        "broker_restore_interval",
        "broker_visibility_timeout",
        "chunk_size",
        "database_prepare",
        "drain_timeout",
        "lease_renew_every",
        "lease_ttl",
        "log_format",
        "log_level",
        "order_deadline",
        "pay_concurrency",
        "pay_wait",
        "ocr",
        "ocr_languages",
        "queued_stuck_after",
        "relay_slots",
        "running_stuck_after",
        "slice_pages",
        "slice_rows",
        "sweep_interval",
        "vector_index",
        "webhook_give_up_after",
        "webhook_seconds",
        "worker_concurrency",
        "worker_lanes",
        "worker_nice",
    }
)
NAMED_FILE = frozenset(
    {
        # code
        "analysers",
        "flow_functions",
        "installed_kinds",
        "kinds",
        "parsers",
        # servers and listening addresses
        "blobs_url",
        "broker_url",
        "broker_urls",
        "database_schema",
        "database_url",
        "embedding_base_url",
        "events",
        "fetch_private",
        "health_host",
        "health_port",
        "host",
        "lease_backend",
        "max_run_cost",
        "providers",
        "quota_bytes",
        "quota_documents",
        "llm_base_url",
        "otel_url",
        "port",
        "redis_url",
        "webhook_private",
        # keys
        "api_key",
        "blobs_access_key",
        "blobs_secret_key",
        "embedding_api_key",
        "llm_api_key",
        "webhook_key",
        # paths
        "blobs_cache",
        "broker_ca_file",
        "data_dir",
        "relay_dir",
        "source_buckets",
        "source_folders",
        # who is paid, how money is handled, and what is deleted
        "embedding_key_retention",
        "embedding_model",
        "embedding_provider",
        "history_retention",
        "in_doubt",
        "llm_key_retention",
        "llm_model",
        "llm_provider",
        "park_above",
        "relay",
        "resend_early_below",
        # limits against hostile content
        "estimate_processes",
        "estimate_seconds",
        "flow_function_memory",
        "flow_function_seconds",
        "most_bytes",
        "most_import",
        "most_json",
        "parse_memory",
        "parse_seconds",
        "source_items",
    }
)
# A file cannot set the module search path, nor which file is read.
NO_FILE = frozenset({"config", "python_path"})
