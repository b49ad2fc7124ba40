"""Holdfast: background work on documents that is paid for once, never lost and never half visible."""

from importlib import metadata

__version__ = metadata.version("holdfast")
