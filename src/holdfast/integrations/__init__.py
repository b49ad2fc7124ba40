"""Holdfast for other programs: its documents, in this process or behind the HTTP API, and retrievers."""
