"""API keys, sessions of the web UI and idempotency keys."""
