"""Hybrid search: words (BM25) and meaning (vectors), fused by rank, over what is published at one moment."""
