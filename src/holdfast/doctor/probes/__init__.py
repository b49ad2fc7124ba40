"""Probes: each gathers the facts about one thing. They read, and change nothing."""
