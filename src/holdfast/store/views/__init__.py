"""Reads for people: runs, events, counts and the dashboard. Read-only."""
