"""Observability of work in progress: the fields of log lines, and traces."""
