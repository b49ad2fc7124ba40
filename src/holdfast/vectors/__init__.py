"""Similarity search: the vectors of a collection's published chunks, and the nearest of them to a query."""

from __future__ import annotations

from holdfast.vectors.encoding import Vector, decode, encode, normalised

__all__ = ["Vector", "decode", "encode", "normalised"]
