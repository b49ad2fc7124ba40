"""A retriever for LangChain: passages of collections as documents, with id, title, page, score and link."""

from typing import Any

from pydantic import ConfigDict, Field, PrivateAttr, SecretStr

from holdfast.integrations import retrieval
from holdfast.integrations.library import Library

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "langchain_core":
        raise
    message = "holdfast.integrations.langchain needs LangChain: pip install langchain-core"
    raise ModuleNotFoundError(message, name=error.name) from error


class HoldfastRetriever(BaseRetriever):
    """Searches the server at `url` with `api_key`, or a `library` of this process.

    `collections` are those searched, all by default; `k` is how many passages. `filter` and `rerank` are
    those of a search. `retrieval.local_library` opens a library.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    url: str | None = None
    api_key: SecretStr | None = None
    library: Any = Field(default=None, exclude=True)
    collections: list[str] = Field(default_factory=list)
    k: int = Field(default=10, ge=1, le=200)
    filter: dict[str, Any] | None = None
    rerank: bool | str | None = None
    _library: Library = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """The library is chosen; BadRequestError unless exactly one is named."""
        super().model_post_init(context)
        key = None if self.api_key is None else self.api_key.get_secret_value()
        self._library = retrieval.chosen_library(self.library, self.url, key)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        _ = run_manager
        hits = self._library.search(query, self.collections, k or self.k, self.filter, self.rerank)
        return [
            Document(
                page_content=hit.text, metadata=dict(retrieval.about(hit)), id=hit.chunk or hit.document_id
            )
            for hit in hits
        ]
