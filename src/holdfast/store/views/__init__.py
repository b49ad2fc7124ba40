"""Reads for people: runs, events, counts and the dashboard. Nothing here writes."""
