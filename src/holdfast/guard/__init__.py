"""The library for Celery applications: guarded tasks, paid calls and fenced writes, without a server.

Use the names that `holdfast` itself exports (docs/reference/library.md).
"""
