"""Hybrid search: words (BM25) and meaning (vectors), fused, over what is published at one moment."""
