"""A retriever for LlamaIndex: passages of collections as nodes, with id, title, page, score and link."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.integrations import retrieval
from holdfast.integrations.library import Library

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "llama_index":
        raise
    message = "holdfast.integrations.llamaindex needs LlamaIndex: pip install llama-index-core"
    raise ModuleNotFoundError(message, name=error.name) from error


class HoldfastNodeRetriever(BaseRetriever):
    """Searches the server at `url` with `api_key`, or a `library` of this process.

    `collections` are those searched, all by default; `k` is how many passages. `filter_` and `rerank` are
    those of a search. `retrieval.local_library` opens a library.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        library: Library | None = None,
        collections: Sequence[str] = (),
        k: int = 10,
        filter_: Mapping[str, Any] | None = None,
        rerank: bool | str | None = None,
        **more: Any,
    ) -> None:
        self._library = retrieval.chosen_library(library, url, api_key)
        self._search = (tuple(collections), k, filter_, rerank)
        super().__init__(**more)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(
                node=TextNode(
                    id_=hit.chunk or hit.document_id, text=hit.text, metadata=dict(retrieval.about(hit))
                ),
                score=hit.score,
            )
            for hit in self._library.search(query_bundle.query_str, *self._search)
        ]
