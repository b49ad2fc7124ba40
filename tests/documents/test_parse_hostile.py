"""Hostile files of the newer formats end with a code, in bounded time and memory, and harm nobody."""

import pytest

from holdfast.core.errors import WorkError
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.records import MIB, Format, ParseLimits
from tests.documents import files

LAUGHS = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
BOMB = f'<!DOCTYPE d [<!ENTITY e0 "ha">{LAUGHS}]>'
ODT = files.open_document("text", "<text:p>words</text:p>")
ODP = files.open_document("presentation", "<draw:page><text:p>words</text:p></draw:page>")
ODS = files.open_workbook([["Name", "Born"], ["Ada", "1815"]])
EPUB = files.book(["<p>words</p>"])
MSG = files.outlook_message("Tide", "High.")
HEAD = b"From: a@example.org\nTo: b@example.org\nMessage-ID: <1>\n"


def parts(depth):
    """A message whose parts lie in each other."""
    lines = [b"MIME-Version: 1.0"]
    for level in range(depth):
        lines += [b'Content-Type: multipart/mixed; boundary="b%d"' % level, b"", b"--b%d" % level]
    return HEAD + b"\n".join([*lines, b"Content-Type: text/plain", b"", b"deep"])


def looped(data):
    """A compound file whose first folder is its own neighbour."""
    at = data.index("__properties".encode("utf-16-le"))
    return data[: at + 72] + b"\x01\0\0\0" * 2 + data[at + 80 :]


CASES = {
    "epub bomb": (files.replaced(EPUB, "OEBPS/z.bin", b"\0" * (200 * MIB)), "", {"archive_bomb"}),
    "epub torn": (EPUB[: len(EPUB) // 2], "", {"broken_file"}),
    "epub loop": (
        files.replaced(
            EPUB, "META-INF/container.xml", b'<c xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            b'<rootfile full-path="META-INF/container.xml"/></c>',
        ), "", {"no_text"},
    ),
    "epub outside": (
        files.replaced(
            EPUB, "OEBPS/content.opf", b'<package xmlns="http://www.idpf.org/2007/opf"><item id="a" href='
            b'"../../../etc/passwd" media-type="text/html"/><itemref idref="a"/></package>',
        ), "", {"broken_file"},
    ),
    "odt laughs": (
        files.replaced(ODT, "content.xml", f"{BOMB}<d>&e9;</d>".encode()), "", {"broken_file"},
    ),
    "odt nested": (
        files.open_document("text", "<text:section>" * 5000 + "<text:p/>" + "</text:section>" * 5000),
        "", {"broken_file"},
    ),
    "odt torn": (ODT[:-40], "", {"broken_file"}),
    "odt content torn": (files.replaced(ODT, "content.xml", b"<office:docu"), "", {"broken_file"}),
    "odp bomb": (files.replaced(ODP, "z.bin", b"\0" * (200 * MIB)), "", {"archive_bomb"}),
    "odp torn": (ODP[:-40], "", {"broken_file"}),
    "ods bomb": (files.replaced(ODS, "z.bin", b"\0" * (200 * MIB)), "", {"archive_bomb"}),
    "ods torn": (ODS[: len(ODS) // 2], "", {"broken_file"}),
    "ods content torn": (files.replaced(ODS, "content.xml", b"<office:docu"), "", {"broken_file"}),
    "zip bomb": (files.archive({f"{n}.txt": b"0" * (40 * MIB) for n in range(8)}), "", {"archive_bomb"}),
    "zip outside": (files.archive({"../../evil.txt": b"words"}), "", {"unsafe_archive"}),
    "zip torn": (files.archive({"a.txt": b"words"})[:-30], "", {"broken_file"}),
    "rtf number": (rb"{\rtf1 \u9999999999?\par words}", "", {"broken_file"}),
    "rtf nested": (b"{\\rtf1" + b"{" * 300_000, "", {"no_text"}),
    "rtf links": (b"{\\rtf1" + b"{\\field{\\*\\fldinst{HYPERLINK " * 30_000, "", {"no_text"}),
    "mail nested": (parts(3000), "", {"broken_file", "parse_timeout"}),
    "msg torn": (MSG[:2000], "", {"no_text", "broken_file", "unknown_format"}),
    "msg loop": (looped(MSG), "", {"broken_file", "unknown_format"}),
    "json nested": (b'{"a":' * 200_000 + b"1" + b"}" * 200_000, "a.json", {"broken_file"}),
    "json torn": (b'{"a": [1, 2, {"b": ' + b'"words", ' * 20_000, "", {"broken_file"}),
    "small json torn": (b'{"a": [1, 2, {"b": "wor', "a.json", {"broken_file"}),
    "jsonl torn": (b'{"a": "words"}\n{"a": "more"}\n{"a":\n', "a.jsonl", {"broken_file"}),
    "jsonl nested": (b'{"a": 1}\n' + b"[" * 100_000 + b"\n", "", {"broken_file"}),
    "xml laughs": (f'<?xml version="1.0"?>{BOMB}<d>&e9;</d>'.encode(), "", {"archive_bomb"}),
    "xml outside": (
        b'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><d>&x;</d>',
        "", {"archive_bomb"},
    ),
    "xml torn": (b'<?xml version="1.0"?><d><p>words', "", {"broken_file"}),
    "xml nested": (b'<?xml version="1.0"?>' + b"<a>" * 500_000, "", {"broken_file", "parse_memory"}),
    "notebook of numbers": (b'{"cells": [1, "a", null], "nbformat": 4}', "a.ipynb", {"no_text"}),
    "notebook torn": (b'{"nbformat": 4, "cells": [{"cell_type": "markdown", "s', "a.ipynb", {"broken_file"}),
    "notebook nested": (b'{"nbformat": 4, "cells": ' + b"[" * 200_000, "a.ipynb", {"broken_file"}),
    "code of one line": (b"x=[1,2];" * 500_000, "a.js", {"machine_data"}),
    "old workbook that is none": (files.compound_file({"Workbook": b"\xff" * 5000}), "", {"broken_file"}),
}  # fmt: skip


@pytest.fixture(scope="module")
def tight():
    """A parser with little time and memory, one for all of them: each must leave it fit for the next."""
    running = Parser(ParseLimits(seconds=10, memory=384 * MIB))
    yield running
    running.close()


def whole(parser, path, name):
    """The outline and all pages."""
    outline = parser.outline(path, name)
    if outline.format is Format.ZIP:
        return parser.members(path, outline.format)
    return parser.read(path, outline.format, outline.whole)


@pytest.mark.parametrize("case", CASES)
def test_a_hostile_file_ends_with_a_code(tight, keep, case):
    """The parser goes on with the next document, and no file is left behind."""
    data, name, codes = CASES[case]
    path = keep(data)
    with pytest.raises(WorkError) as caught:
        whole(tight, path, name)
    assert caught.value.code in codes, caught.value.message
    assert list(path.parent.iterdir()) == [path]
    good = tight.outline(keep(ODT, "good"))
    assert good.units == 1


def test_what_only_pretends_to_be_large_is_read(read):
    """A billion spaces in one element, and a cell that is repeated a billion times, are a few."""
    body = (
        '<text:p>a<text:s text:c="1000000000"/>b</text:p><table:table><table:table-row><table:table-cell'
        ' table:number-columns-repeated="1000000000"><text:p>x</text:p></table:table-cell></table:table-row>'
        "</table:table>"
    )
    _outline, pages = read(files.open_document("text", body))
    assert sum(len(block.text) for block in pages[0].blocks) < 10_000


ALIASES = b"".join(b"%c: [%s]\n" % (98 + n, b", ".join([b"*%c" % (97 + n)] * 9)) for n in range(15))


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"a: &a [lol, lol]\n" + ALIASES, "a.yaml"),
        (b"a: &x\n  b: *x\n  c: words\n", "a.yaml"),
        (b'!!python/object/apply:os.system ["exit 1"]\nname: words\n', "a.yaml"),
        (b"a: " + b"[" * 200_000 + b"\n", "a.yaml"),
        (b"def f():\n" + b"".join(b" " * n + b"if x:\n" for n in range(1, 2000)), "a.py"),
        (b"<?php " + b"{" * 200_000, "a.php"),
        (b"a" * 100 + b"\n" * 400_000 + b"b", "a.sh"),
    ],
    ids=["aliases", "cycle", "tag", "brackets", "nesting", "braces", "lines"],
)
def test_code_and_yaml_are_read_as_they_are_written(tight, keep, data, name):
    """Nothing is expanded, followed or run: what comes out is no longer than what went in."""
    pages = whole(tight, keep(data), name)
    assert 0 < sum(len(block.text) for page in pages for block in page.blocks) <= len(data)
