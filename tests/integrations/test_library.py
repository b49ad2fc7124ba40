"""One library, in this process or behind the API: both see the same."""

import builtins
import importlib
import json
import sys
from contextlib import closing

import pytest

from holdfast.core.errors import HoldfastError
from holdfast.integrations import retrieval
from holdfast.integrations.library import TextWindow
from holdfast.integrations.remote_library import RemoteLibrary


def test_a_library_in_process_and_one_over_http_return_the_same(url, library):
    """Collections, hits with links, documents in parts, and answers with their cost."""
    with closing(RemoteLibrary(f"{url}/api/v1/")) as remote:
        assert remote.collections() == library.collections()
        hits = library.search("how tall is the Eiffel Tower", k=3)
        assert remote.search("how tall is the Eiffel Tower", ["shelf"], 3) == hits
        assert hits[0].url == f"{url}/documents/{hits[0].document_id}?at=0.0#c-0-0"
        for part in ((0, 200_000), (4, 20)):
            assert remote.read(hits[0].document_id, *part) == library.read(hits[0].document_id, *part)
        assert library.read(hits[0].document_id, 4, 20).next_offset == 24
        assert remote.documents("shelf", None) == library.documents("shelf", None)
        question = "How tall is the Eiffel Tower?"
        assert library.ask(question).fields["cost"]["tokens"] > 0
        assert remote.ask(question) == library.ask(question)
        with pytest.raises(HoldfastError) as unknown:
            remote.read("0" * 32)
        assert unknown.value.code == "unknown_document"


def test_what_retrievers_say_of_a_hit(library):
    """Where it is from, how good it is, and a link to cite; every value is one of JSON."""
    hit = library.search("how tall is the Eiffel Tower", k=1)[0]
    about = dict(retrieval.about(hit))
    assert json.loads(json.dumps(about)) == about
    names = ("id", "title", "collection", "page", "chunk", "source")
    assert [about[name] for name in names] == [
        hit.document_id,
        "Towers",
        "shelf",
        1,
        f"{hit.document_id}@0.0",
        hit.url,
    ]
    assert about["score"] > 0


def test_a_part_of_a_text_is_the_same_however_it_is_cut():
    """The parts of a text, put together, are the text; the last one knows that it is."""
    pieces = ["one", "", "two and more", "three"]
    whole, at = "", 0
    while at is not None:
        window = TextWindow(at, 4)
        for piece in pieces:
            window.add(piece)
        whole, at = whole + window.text, window.next_offset
    assert whole == "\n\n".join(pieces)


def test_a_server_that_is_none_is_told_apart():
    """Nothing listens, or the URL is none."""
    with closing(RemoteLibrary("http://127.0.0.1:9")) as nobody, pytest.raises(HoldfastError) as away:
        nobody.collections()
    assert away.value.code == "server_unavailable"
    for library, url in ((None, None), (object(), "http://127.0.0.1:9"), (None, "ftp://x")):
        with pytest.raises(HoldfastError):
            retrieval.chosen_library(library, url, None)


@pytest.mark.parametrize(
    ("name", "package"), [("langchain", "langchain-core"), ("llamaindex", "llama-index-core")]
)
def test_a_retriever_without_its_framework_names_the_package(name, package, monkeypatch):
    """Whether it is installed here or not: the import says what to install."""
    usual = builtins.__import__

    def without(module, *rest):
        if module.partition(".")[0] in {"langchain_core", "llama_index"}:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        return usual(module, *rest)

    monkeypatch.delitem(sys.modules, f"holdfast.integrations.{name}", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match=f"pip install {package}"):
        importlib.import_module(f"holdfast.integrations.{name}")
