"""A collection chooses which parser reads which format."""

import sys

import pytest

from holdfast.core.errors import BadRequestError
from holdfast.documents.parse.parser import Parser
from tests.indexing.install import WISH, IndexingInstall

MODULE = """
class Lines:
    def accepts(self, head, name):
        return False

    def read(self, file):
        yield ["LINE " + line for line in file.read().decode().split("\\n") if line]


class Everything(Lines):
    def accepts(self, head, name):
        return True
"""
TEXT = "The tide is high.\nThe lamp is lit."


@pytest.fixture
def install(database_url, tmp_path, meter, monkeypatch):
    """An installation with two parsers of its user: one asks for nothing, one takes everything."""
    (tmp_path / "harbour_parsers.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    names = ("harbour_parsers:Lines", "harbour_parsers:Everything")
    parser = Parser(own=names)
    built = IndexingInstall(database_url, tmp_path / "data", meter, parser, own_parsers=names)
    yield built
    built.close()
    parser.close()


def test_the_chosen_parser_reads_its_format_and_no_other(install):
    """By its full name or the short one; ours by `holdfast`; without a choice the first that accepts."""
    install.collections.make(WISH, "lines", options={"parsers": {"text": "Lines", "markdown": "holdfast"}})
    text = install.indexed(TEXT, "a.txt", to="lines")
    markdown = install.indexed(f"# {TEXT}", "a.md", to="lines")
    taken = install.indexed("<p>The tide</p>", "a.html", to="lines")
    assert (text.format, markdown.format, taken.format) == ("own", "markdown", "own")
    assert "LINE The tide is high." in install.texts(text)[0]
    assert "LINE" not in install.texts(markdown)[0]


@pytest.mark.g4
def test_another_parser_reads_again_and_pays_only_for_other_text(install):
    """Going back to the first one costs nothing: its chunks are known."""
    install.collections.make(WISH, "lines", options={"parsers": {"text": "holdfast"}})
    document = install.indexed(TEXT, "a.txt", to="lines")
    paid = install.paid()
    for choice, more in (("harbour_parsers:Lines", 1), ("harbour_parsers:Everything", 0), ("holdfast", 0)):
        install.collections.change(WISH, "lines", options={"parsers": {"text": choice}})
        install.work()
        assert install.paid(since=paid) == more
        paid = install.paid()
    assert install.document(document.id).published_generation == 4


def test_a_parser_that_is_not_known_is_refused(install):
    """When it is set, before anything is read; the message says which are known."""
    with pytest.raises(BadRequestError, match="harbour_parsers:Lines"):
        install.collections.make(WISH, "other", options={"parsers": {"pdf": "LlamaParse"}})
