"""A file that cannot be indexed fails with a code that says why, and never as an empty success."""

import pytest

from holdfast.core.errors import WorkError
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.records import MIB, Format, ParseLimits, UnitRange
from tests.documents import files, pdfs

HELLO = pdfs.make(["Hello there"])
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 504


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"", "a.pdf"),
        (b" \n\t\n ", "a.txt"),
        (b"---\n---\n", "a.md"),
        (pdfs.scan(3), "scan.pdf"),
        (files.word(parts=((None, []),)), "a.docx"),
        (files.slides(pages=(("", [""], ""),)), "a.pptx"),
        (files.workbook({"A": []}), "a.xlsx"),
        (b"\n\n\n", "a.csv"),
        (b"<html><body><script>x</script></body></html>", "a.html"),
    ],
    ids=["zero bytes", "blank", "markdown", "scan", "docx", "pptx", "xlsx", "csv", "html"],
)
def test_no_text_is_a_failure(failing, data, name):
    """Zero bytes, blank files, scans and empty documents of each format."""
    assert failing(data, name).code == "no_text"


@pytest.mark.parametrize(
    "data",
    [
        pdfs.make(["secret"], password="secret"),
        COMPOUND + "EncryptedPackage".encode("utf-16-le") + b"\0" * 512,
    ],
    ids=["pdf", "office"],
)
def test_encrypted_documents_are_named_as_such(failing, data):
    """A password is something a person can do something about."""
    assert failing(data).code == "encrypted"


@pytest.mark.parametrize(
    "data",
    [
        HELLO[: len(HELLO) // 2],
        b"%PDF-1.7\n" + b"\x00\xff" * 500,
        files.word()[:3000],
        files.workbook({"A": [["x", "y"]] * 50})[:-200],
        files.replaced(files.word(), "word/document.xml", b"<broken"),
        files.replaced(files.slides(), "ppt/presentation.xml", b""),
        files.replaced(files.workbook({"A": [["x"]]}), "xl/workbook.xml", b"<workbook"),
        COMPOUND + "Workbook".encode("utf-16-le") + b"\0" * 512,
    ],
    ids=["pdf", "pdf noise", "docx", "xlsx", "docx xml", "pptx xml", "xlsx xml", "xls"],
)
def test_damaged_files_are_broken(failing, data):
    """Truncated, overwritten, garbled: the parser's own words do not matter, the code does."""
    assert failing(data).code == "broken_file"


@pytest.mark.parametrize(
    "data",
    [
        bytes(range(256)) * 8,
        COMPOUND + "VisioDocument".encode("utf-16-le"),
    ],
    ids=["binary", "old drawing"],
)
def test_unknown_formats_are_refused(failing, data):
    """What no parser reads is not indexed as noise, even under a good name."""
    assert failing(data, "a.txt").code == "unknown_format"


def test_an_archive_bomb_is_not_unpacked(failing):
    """200 MB of zeros in 200 KB are refused by their directory."""
    bomb = files.replaced(files.word(), "word/zeros.bin", b"\0" * (200 * MIB))
    assert len(bomb) < MIB
    assert failing(bomb).code == "archive_bomb"


def test_an_archive_may_not_expand_beyond_the_limit(keep):
    """Honest compression counts too, when it comes to more than is allowed."""
    small = Parser(ParseLimits(expanded=10_000))
    with pytest.raises(WorkError) as caught:
        small.outline(keep(files.word()))
    small.close()
    assert caught.value.code == "archive_bomb"


def test_entities_do_not_multiply(failing):
    """A billion laughs in a DOCX end at the parser, in no time and no memory."""
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    text = (
        f'<!DOCTYPE d [<!ENTITY e0 "ha">{entities}]><w:document xmlns:w="{W}"><w:body><w:p><w:r>'
        "<w:t>&e9;</w:t></w:r></w:p></w:body></w:document>"
    )
    assert failing(files.replaced(files.word(), "word/document.xml", text.encode())).code in {
        "broken_file",
        "no_text",
    }


def test_external_entities_are_not_read(read, failing, keep):
    """A document cannot ask for a file of this machine."""
    secret = keep(b"the secret of this machine", "secret")
    text = (
        f'<!DOCTYPE d [<!ENTITY x SYSTEM "file://{secret}">]><w:document xmlns:w="{W}"><w:body><w:p><w:r>'
        "<w:t>seen &x;</w:t></w:r></w:p></w:body></w:document>"
    )
    _outline, pages = read(files.replaced(files.word(), "word/document.xml", text.encode()))
    assert [block.text for block in pages[0].blocks] == ["seen"]


@pytest.mark.parametrize(
    ("limits", "data", "name", "code"),
    [
        (ParseLimits(bytes=100), b"a" * 101, "a.txt", "too_large"),
        (ParseLimits(text_bytes=100), b"a" * 101, "a.txt", "too_large"),
        (ParseLimits(pages=2), pdfs.make(["a", "b", "c"]), "a.pdf", "too_many_pages"),
        (ParseLimits(cells=9), files.workbook({"A": [[1, 2]] * 5}), "a.xlsx", "too_large"),
        (ParseLimits(cells=9), b"a,b\n" * 5, "a.csv", "too_large"),
    ],
    ids=["bytes", "text bytes", "pages", "cells", "csv cells"],
)
def test_limits_of_size_are_kept(keep, limits, data, name, code):
    """One more than the limit is too much."""
    tight = Parser(limits)
    with pytest.raises(WorkError) as caught:
        tight.outline(keep(data), name)
    tight.close()
    assert caught.value.code == code


def test_a_deeply_nested_page_is_read(read):
    """Thousands of nested elements do not exhaust any stack."""
    _outline, pages = read(b"<html><body>" + b"<div>" * 5000 + b"deep" + b"</div>" * 5000)
    assert [block.text for block in pages[0].blocks] == ["deep"]


def test_a_damaged_page_among_good_ones_is_left_empty(parser, keep):
    """One page whose content is gone does not take the others with it."""
    data = pdfs.make(["first page", "second page"])
    path = keep(data.replace(b"/Contents 3 0 R", b"/Contents 99 0 R"))
    pages = parser.read(path, Format.PDF, UnitRange(1, 2))
    assert [[block.text for block in page.blocks] for page in pages] == [[], ["second page"]]
