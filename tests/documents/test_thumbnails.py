"""Every document has a picture of what a reader sees first."""

import io
import json
import time

import PIL.Image
import pytest

from holdfast.core.errors import WorkError
from holdfast.documents.parse import typeface
from holdfast.documents.parse.records import PAGED, Format
from tests.documents import files, pdfs

PROSE = "Some words of a page that is long enough to fill a line or two of it. " * 3
PAGES = {
    Format.DOCX: lambda: files.word(
        parts=[("The report", [PROSE])], table=[["Name", "Born"], ["Ada", "1815"]]
    ),
    Format.PPTX: lambda: files.slides(pages=[("The plan", ["One", "Two"], "")]),
    Format.XLSX: lambda: files.workbook({"Costs": [["Item", "Cost"], ["Rent", 1200.0], ["Food", 300.0]]}),
    Format.XLS: lambda: files.old_workbook([["bird", "legs"], ["the heron", 2.0]]),
    Format.ODS: lambda: files.open_workbook([["bird"], ["the heron"]]),
    Format.CSV: lambda: b"name,born\nAda,1815\nAlan,1912\n",
    Format.TSV: lambda: b"name\tborn\nAda\t1815\nAlan\t1912\n",
    Format.HTML: f"<h1>News</h1><p>{PROSE}</p><ul><li>One</li></ul>".encode,
    Format.MARKDOWN: f"# News\n\n{PROSE}\n\n- One\n- Two\n".encode,
    Format.TEXT: PROSE.encode,
    Format.ODT: lambda: files.open_document("text", f"<text:p>{PROSE}</text:p>"),
    Format.ODP: lambda: files.open_document(
        "presentation",
        f'<draw:page draw:name="p"><draw:frame><draw:text-box><text:p>{PROSE}</text:p>'
        "</draw:text-box></draw:frame></draw:page>",
    ),
    Format.EPUB: lambda: files.book([f"<h1>One</h1><p>{PROSE}</p>"]),
    Format.RTF: lambda: b"{\\rtf1\\ansi " + PROSE.encode() + b"\\par}",
    Format.EML: lambda: b"From: ada@example.org\nTo: ben@example.org\nSubject: Tide\n\n" + PROSE.encode(),
    Format.MSG: lambda: files.outlook_message("Tide", PROSE),
    Format.JSON: lambda: json.dumps([{"note": PROSE}, {"note": "more"}]).encode(),
    Format.JSONL: lambda: b'{"note": "some words"}\n{"note": "more words"}\n',
    Format.XML: f'<?xml version="1.0"?><notes><note>{PROSE}</note></notes>'.encode,
    Format.NOTEBOOK: lambda: json.dumps(
        {"nbformat": 4, "cells": [{"cell_type": "markdown", "source": [PROSE]}]}
    ).encode(),
    Format.CODE: lambda: b'def tide(hour):\n    """When it is high."""\n    return hour + 12\n',
    Format.YAML: lambda: b"tide:\n" + b"".join(b"  high_%d: at noon\n" % day for day in range(9)),
}
# An archive has no text of its own; what a parser of the user's own reads is known to that parser alone.
WITHOUT_TEXT = {Format.ZIP, Format.OWN}
BARS = PIL.Image.new("RGB", (1, 1), typeface.BAR).getpixel((0, 0))


def opened(png):
    image = PIL.Image.open(io.BytesIO(png))
    image.load()
    return image


def ink(image, box=None):
    """The share of pixels that are dark."""
    part = (image.crop(box) if box else image).convert("L")
    return sum(part.histogram()[:128]) / (part.width * part.height)


def colours(image):
    return {colour for _count, colour in image.convert("RGB").getcolors(1 << 20)}


def test_a_pdf_shows_its_first_page(parser, keep):
    """The picture has the width asked for, the shape of the page, and ink on it."""
    image = opened(parser.thumbnail(keep(pdfs.make(["A page with words on it"])), Format.PDF, 200))
    assert (image.format, image.width) == ("PNG", 200)
    assert abs(image.height - 200 * 792 / 612) <= 1
    assert len(image.convert("L").getcolors()) > 2


def test_a_very_long_page_is_not_a_very_long_picture(parser, keep):
    """A page a hundred times as high as wide is shown three times as high at most."""
    data = pdfs.make(["words"]).replace(b"[0 0 612 792]", b"[0 0 99 9999]")
    image = opened(parser.thumbnail(keep(data), Format.PDF, 200))
    assert image.height <= 601


@pytest.mark.parametrize("kind", [kind for kind in Format if kind not in PAGED | WITHOUT_TEXT])
def test_every_format_shows_its_own_text(parser, keep, kind):
    """Ink on white paper, the same bytes each time, and not the sheet for what cannot be drawn."""
    path = keep(PAGES[kind]())
    picture = parser.thumbnail(path, kind)
    image = opened(picture)
    assert image.width == 320
    assert image.height == (180 if kind in {Format.PPTX, Format.ODP} else 452)
    assert ink(image) > 0.001
    assert image.getpixel((image.width - 2, image.height // 2)) == (255, 255, 255)
    assert parser.thumbnail(path, kind) == picture != parser.placeholder(kind)
    assert opened(parser.thumbnail(path, kind, 120)).width == 120


def test_a_heading_is_larger_than_its_text(parser, keep):
    """The first lines of the same words have more ink as a heading than as a paragraph."""
    words = "The same few words"
    top = (0, 0, 320, 60)
    heading = opened(parser.thumbnail(keep(f"# {words}\n\nmore\n".encode()), Format.MARKDOWN))
    paragraph = opened(parser.thumbnail(keep(f"{words}\n\nmore\n".encode()), Format.MARKDOWN))
    assert ink(heading, top) > 1.5 * ink(paragraph, top)


def test_nothing_is_drawn_outside_the_margins(parser, keep):
    """Neither a word of 3,000 letters nor a table of 60 columns leaves the paper of a page."""
    row = "|".join(f" column {number} " for number in range(60))
    text = f"{'x' * 3000} end\n\n|{row}|\n|{'---|' * 60}\n|{row}|\n"
    image = opened(parser.thumbnail(keep(text.encode()), Format.MARKDOWN))
    assert ink(image) > 0.01
    for box in ((0, 0, 24, 452), (297, 0, 320, 452), (0, 0, 320, 20), (0, 432, 320, 452)):
        assert colours(image.crop(box)) == {(255, 255, 255)}


def test_a_script_that_no_font_has_is_shown_as_bars(parser, keep):
    """Linear A is in no font of a server: no boxes, grey bars; words of a known script stay words."""
    strange = "".join(chr(0x10600 + number) for number in range(40))
    image = opened(parser.thumbnail(keep(f"{strange}\n\nPlain words after it.\n".encode()), Format.TEXT))
    assert BARS in colours(image.crop((0, 0, 320, 45)))
    assert ink(image, (0, 0, 320, 38)) == 0
    assert ink(image, (0, 38, 320, 100)) > 0


@pytest.mark.parametrize("text", [files.HEBREW, files.ARABIC], ids=["hebrew", "arabic"])
def test_a_script_that_is_read_from_the_right_begins_there(parser, keep, text):
    """A short line of it, drawn or as bars, stands at the right margin."""
    image = opened(parser.thumbnail(keep(text.encode()), Format.TEXT))
    assert colours(image.crop((0, 0, 100, 452))) == {(255, 255, 255)}
    assert len(colours(image.crop((220, 0, 320, 60)))) > 1


def test_whatever_is_in_a_text_it_is_drawn_within_a_moment(parser, keep):
    """Towers of marks, one endless word, half a million short lines: a page's worth of work each."""
    for text in (
        "a" + "\u0301" * 500_000,
        "x" * 2_000_000,
        "- y\n" * 500_000,
        "\u202e\u200d\ufeff" * 300_000,
    ):
        began = time.monotonic()
        image = opened(parser.thumbnail(keep(f"start {text}".encode()), Format.MARKDOWN, seconds=20))
        assert image.size == (320, 452)
        assert time.monotonic() - began < 20


def test_what_cannot_be_read_has_no_picture(parser, keep):
    """The caller decides what that means, and can have a plain sheet that names the format."""
    for kind, data in ((Format.PDF, b"%PDF-1.7 and nothing"), (Format.DOCX, b"anything"), (Format.XLSX, b"")):
        with pytest.raises(WorkError) as caught:
            parser.thumbnail(keep(data), kind)
        assert caught.value.code in {"broken_file", "no_text"}
    with pytest.raises(WorkError) as caught:
        parser.thumbnail(keep(b"\n\n"), Format.TEXT)
    assert caught.value.code == "no_text"
    sheets = [parser.placeholder(kind, 120) for kind in Format]
    assert len(set(sheets)) == len(sheets)
    assert opened(sheets[0]).width == 120
