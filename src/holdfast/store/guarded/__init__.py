"""Guarded Celery tasks: the messages of their runs."""
