"""Every format comes in, is known for what it is, and is found by a word that only it has."""

import io

import pytest
from PIL import Image

from holdfast.core.errors import WorkError
from holdfast.documents.parse.parser import Parser
from tests.documents import files, pdfs
from tests.indexing.install import endings

FORMATS = {
    "pdf": (lambda: pdfs.make(["first", "the heron", "third"]), 3, 2),
    "docx": (lambda: files.word(parts=[("One", ["first"]), ("Two", ["the heron"])]), 2, 2),
    "pptx": (lambda: files.slides(pages=[("One", ["first"], ""), ("Two", ["the heron"], "note")]), 2, 2),
    "xlsx": (lambda: files.workbook({"A": [["name"], ["first"]], "B": [["bird"], ["the heron"]]}), 2, 2),
    "xls": (lambda: files.old_workbook([["bird", "legs"], ["the heron", 2.0]]), 1, 1),
    "ods": (lambda: files.open_workbook([["bird"], ["the heron"]]), 1, 1),
    "csv": (lambda: b"bird,legs\nthe heron,2\n", 1, 1),
    "tsv": (lambda: b"bird\tlegs\nthe heron\t2\n", 1, 1),
    "html": (lambda: b"<html><body><h1>Birds</h1><p>the heron</p></body></html>", 1, 1),
    "markdown": (lambda: b"# Birds\n\nthe heron\n", 1, 1),
    "text": (lambda: "the heron \u2014 caf\u00e9".encode("utf-16"), 1, 1),
}


@pytest.mark.parametrize("form", FORMATS)
def test_a_document_of_every_format_is_found_on_its_page(install, form):
    """Format, pages and chunks are written with the publication; the name says nothing."""
    build, pages, page = FORMATS[form]
    endings_of = {"csv": "csv", "tsv": "tsv", "markdown": "md"}
    document = install.indexed(build(), f"thing.{endings_of.get(form, 'bin')}")
    assert (document.format, document.pages) == (form, pages)
    assert document.chunks == len(install.texts(document)) >= 1
    (hit,) = install.find("heron")
    assert (hit.document_id, hit.page) == (document.id, page)


def test_facts_are_those_of_the_published_generation(install):
    """While a new content is indexed, the numbers are the old one's; with the publication they change."""
    document = install.indexed(pdfs.make(["one", "two", "three"]), "book.pdf")
    assert (document.format, document.pages, document.chunks) == ("pdf", 3, 3)
    install.put(document.id, "A single text now.", "now.txt")
    assert (install.document(document.id).format, install.document(document.id).pages) == ("pdf", 3)
    install.work()
    after = install.document(document.id)
    assert (after.format, after.pages, after.chunks, after.thumbnail) == ("text", 1, 1, None)


def test_a_pdf_has_a_picture_of_its_first_page(install):
    """It is kept with the publication, as a PNG of its own."""
    document = install.indexed(pdfs.make(["the heron"] * 30), "book.pdf")
    with install.shelf.open(document.thumbnail) as saved:
        picture = Image.open(io.BytesIO(saved.read()))
    assert (picture.format, picture.width) == ("PNG", 320)
    assert install.indexed("No picture of this.").thumbnail is None


class Blind(Parser):
    """A parser that cannot draw."""

    def thumbnail(self, path, document_format, width=320, password=""):
        raise WorkError("it cannot be drawn", code="broken_file")


def test_a_picture_that_fails_never_fails_the_run(install):
    """The document is published without one."""
    parser = Blind()
    taken = install.upload(pdfs.make(["the heron"]), "book.pdf")
    done = install.worker("blind", parser).work_off()
    parser.close()
    assert endings(done) == ["published"]
    document = install.document(taken.document.id)
    assert (document.thumbnail, document.chunks) == (None, 1)
