"""The retriever for LlamaIndex, as LlamaIndex calls it."""

import asyncio

import pytest

pytest.importorskip("llama_index.core", reason="LlamaIndex is not installed; run: make integrations")

from holdfast.integrations.llamaindex import HoldfastNodeRetriever


@pytest.mark.parametrize("where", ["http", "in process"])
def test_nodes_carry_where_they_are_from(where, url, library):
    """Text, score, title, page and link; awaited or not; as many as `k`."""
    named = {"url": url} if where == "http" else {"library": library}
    retriever = HoldfastNodeRetriever(**named, collections=["shelf"], k=2)
    nodes = retriever.retrieve("Eiffel Tower")
    assert len(nodes) == 2
    first = nodes[0]
    assert (first.node.metadata["title"], first.node.metadata["page"]) == ("Towers", 1)
    assert first.node.metadata["source"].startswith(f"{url}/documents/{first.node.metadata['id']}?at=")
    assert first.score > 0
    again = asyncio.run(retriever.aretrieve("Eiffel Tower"))
    assert [each.node.node_id for each in again] == [each.node.node_id for each in nodes]
