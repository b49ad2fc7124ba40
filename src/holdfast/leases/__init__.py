"""Leases: the time-limited right to be working on a task. Read `base` first; it says what a lease is not."""
