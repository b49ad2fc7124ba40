"""LangChain's own suite of tests for retrievers, over HTTP and in process."""

import pytest

tests = pytest.importorskip(
    "langchain_tests.integration_tests", reason="LangChain is not installed; run: make integrations"
)


class _Suite(tests.RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _server(self, url, library):
        self.url, self.library = url, library

    @property
    def retriever_constructor(self):
        from holdfast.integrations.langchain import HoldfastRetriever  # noqa: PLC0415 - LangChain may be missing

        return HoldfastRetriever

    @property
    def retriever_query_example(self):
        return "how tall is the tower"


class TestOverHttp(_Suite):
    @property
    def retriever_constructor_params(self):
        return {"url": self.url, "collections": ["shelf"]}

    def test_documents_carry_where_they_are_from(self):
        """Id, title, page, score and link of the passage."""
        (first, *_) = self.retriever_constructor(url=self.url).invoke("Eiffel Tower")
        assert (first.metadata["title"], first.metadata["page"]) == ("Towers", 1)
        assert first.metadata["source"].startswith(f"{self.url}/documents/{first.metadata['id']}?at=")
        assert first.id.startswith(first.metadata["id"])
        assert first.metadata["score"] > 0


class TestInProcess(_Suite):
    @property
    def retriever_constructor_params(self):
        return {"library": self.library}


del _Suite
