"""Parsers of the user's own, in the same child and the same limits as ours."""

import sys

import pytest

from holdfast.core.errors import WorkError
from holdfast.documents.chunk import ChunkOptions
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.records import MIB, Format, ParseLimits, Role

MODULE = """
import os
import socket


class Subtitles:
    def accepts(self, head, name):
        return b" --> " in head or name.endswith(".bin")

    def read(self, file):
        text = file.read().decode("latin-1")
        if "hang" in text:
            while True:
                pass
        if "eat" in text:
            bytearray(1 << 40)
        if "call" in text:
            socket.create_connection(("127.0.0.1", 1))
        if "look" in text:
            open("/etc/hostname").read()
        lines = [line for line in text.split("\\n") if line and " --> " not in line]
        yield [("heading", "Subtitles", 1), *lines, ("row", "home: " + os.environ.get("HOME", "nowhere"))]


not_a_parser = 1
"""
CUE = b"00:01 --> 00:02\nThe tide is high.\n"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """`own(name)` is a parser process with a parser of the user's own from a folder of theirs."""
    (tmp_path / "foreign_subtitles.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    running = []

    def start(name="Subtitles"):
        limits = ParseLimits(seconds=3, memory=256 * MIB)
        running.append(Parser(limits, own=[f"foreign_subtitles:{name}"]))
        return running[-1]

    yield start
    for parser in running:
        parser.close()


def test_a_parser_of_ones_own_reads_what_it_accepts(own, keep):
    """By content or by name, before any other; what it does not accept is read as ever."""
    parser = own()
    path = keep(CUE)
    outline = parser.outline(path, "a.txt")
    assert outline.format is Format.OWN
    (page,) = parser.read(path, Format.OWN, outline.whole)
    assert [(block.role, block.text) for block in page.blocks] == [
        (Role.HEADING, "Subtitles"), (Role.PARAGRAPH, "The tide is high."), (Role.ROW, "home: nowhere"),
    ]  # fmt: skip
    odd = keep(bytes(range(1, 256)), "odd")
    assert parser.cut(
        odd, Format.OWN, parser.outline(odd, "x.bin").whole, ChunkOptions(), name="x.bin"
    ).pieces
    assert parser.outline(keep(b"# Plain\n\n- words\n", "plain"), "a.md").format is Format.MARKDOWN


@pytest.mark.parametrize(
    ("deed", "code"),
    [("hang", "parse_timeout"), ("eat", "parse_memory"), ("call", "broken_file"), ("look", "broken_file")],
)
def test_it_has_the_limits_of_every_parser(own, keep, deed, code):
    """Neither time nor memory without end, no network, no file of this machine."""
    parser = own()
    with pytest.raises(WorkError) as caught:
        parser.outline(keep(CUE + deed.encode()))
    assert caught.value.code == code
    assert parser.outline(keep(CUE, "good")).units == 1


@pytest.mark.parametrize("name", ["Missing", "not_a_parser"])
def test_a_parser_that_cannot_be_loaded_is_named(own, keep, name):
    """The document is not at fault."""
    with pytest.raises(WorkError) as caught:
        own(name).outline(keep(CUE))
    assert caught.value.code == "parser_unfit"
    assert f"foreign_subtitles:{name}" in caught.value.message
