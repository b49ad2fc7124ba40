"""Leases: the time-limited right to work on a task. Read `base` first; it says what a lease is not."""
