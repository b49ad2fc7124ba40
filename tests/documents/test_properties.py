"""What files say about themselves: read from every format, bounded, and never a reason to refuse one."""

import io
import json

import pytest
from PIL import Image

from holdfast.documents.parse import front_matter, properties
from holdfast.documents.parse.records import UnitRange
from tests.documents import files, pdfs

XMP = b"""<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/">
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
 xmlns:pdf="http://ns.adobe.com/pdf/1.3/" xmp:ModifyDate="2024-05-01T10:00:00+02:00">
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">From the packet</rdf:li></rdf:Alt></dc:title>
<dc:creator><rdf:Seq><rdf:li>Bo</rdf:li><rdf:li>Cy</rdf:li></rdf:Seq></dc:creator>
<dc:language><rdf:Bag><rdf:li>de</rdf:li></rdf:Bag></dc:language></rdf:Description></rdf:RDF></x:xmpmeta>"""
MAIL = b"""From: =?utf-8?q?=C3=84nne?= <Anne@Example.org>
To: bo@example.org, "Cy, Dr." <cy@example.org>
Date: Wed, 31 Jan 2024 12:00:00 +0100
Subject: The tide table
Message-ID: <1@example.org>
In-Reply-To: <0@example.org>

High water is at noon.
"""
CORE = (
    b'<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"'
    b' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">'
    b"<dc:title>Tides</dc:title><dc:creator>Ann; Bo</dc:creator><cp:keywords>sea, moon</cp:keywords>"
    b"<dcterms:created>2024-01-31T10:00:00Z</dcterms:created></cp:coreProperties>"
)
META = (
    b'<office:document-meta xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    b' xmlns:dc="http://purl.org/dc/elements/1.1/"'
    b' xmlns:meta="urn:oasis:names:tc:opendocument:xmlns:meta:1.0">'
    b"<office:meta><dc:title>Tides</dc:title><meta:initial-creator>Ann</meta:initial-creator>"
    b"<meta:keyword>sea</meta:keyword><meta:keyword>moon</meta:keyword><dc:date>2024-02-01T10:00:00</dc:date>"
    b"</office:meta></office:document-meta>"
)
PAGE = b"""<html lang="de"><head><title>Tides</title><meta name="author" content="Ann">
<meta property="article:published_time" content="2024-01-31T12:00:00+01:00">
<meta name="keywords" content="sea, moon"></head><body><p>High water.</p></body></html>"""


def photo():
    """A JPEG with a time, an artist and a place."""
    image, file = Image.new("L", (40, 40), 255), io.BytesIO()
    tags = image.getexif()
    tags[0x013B], tags[0x010F] = "Ann", "Some Camera"
    tags.get_ifd(0x8769)[0x9003] = "2024:01:31 12:00:00"
    tags.get_ifd(0x8825)[1] = "N"
    image.save(file, "JPEG", exif=tags)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        (
            "a.pdf",
            pdfs.make(
                ["Sea"], title="Tides", info={"Author": "Ann", "CreationDate": "D:20240131120000+01'00'"}
            ),
            {"title": "Tides", "author": "Ann", "created": "2024-01-31T11:00:00Z"},
        ),
        (
            "a.pdf",
            pdfs.make(["Sea"], info={"Keywords": "sea; moon"}, xmp=XMP),
            {
                "keywords": ["sea", "moon"],
                "title": "From the packet",
                "author": ["Bo", "Cy"],
                "language": "de",
                "modified": "2024-05-01T08:00:00Z",
            },
        ),
        (
            "a.docx",
            files.replaced(files.word(), "docProps/core.xml", CORE),
            {
                "title": "Tides",
                "author": ["Ann", "Bo"],
                "keywords": ["sea", "moon"],
                "created": "2024-01-31T10:00:00Z",
            },
        ),
        (
            "a.odt",
            files.open_document("text", "<text:p>Sea</text:p>", more={"meta.xml": META}),
            {
                "title": "Tides",
                "author": "Ann",
                "keywords": ["sea", "moon"],
                "modified": "2024-02-01T10:00:00",
            },
        ),
        ("a.epub", files.book(["<p>Sea</p>"], title="Tides"), {"title": "Tides"}),
        (
            "a.html",
            PAGE,
            {
                "title": "Tides",
                "author": "Ann",
                "created": "2024-01-31T11:00:00Z",
                "keywords": ["sea", "moon"],
                "language": "de",
            },
        ),
        (
            "a.eml",
            MAIL,
            {
                "subject": "The tide table",
                "author": "Änne",
                "from": "anne@example.org",
                "to": ["bo@example.org", "cy@example.org"],
                "date": "2024-01-31T11:00:00Z",
                "message_id": "<1@example.org>",
                "in_reply_to": "<0@example.org>",
            },
        ),
        ("a.jpg", photo(), {"author": "Ann", "created": "2024-01-31T12:00:00"}),
        (
            "a.ipynb",
            json.dumps(
                {
                    "cells": [{"cell_type": "markdown", "source": "Sea"}],
                    "metadata": {"title": "Tides", "language_info": {"name": "python"}},
                    "nbformat": 4,
                }
            ).encode(),
            {"title": "Tides", "code_language": "python"},
        ),
        (
            "a.md",
            b"+++\ntitle = 'Tides'\ndate = 2024-01-31\n[params]\ndraft = true\n+++\nThe sea.\n",
            {"title": "Tides", "date": "2024-01-31", "params": {"draft": True}},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_says_what_it_is(parser, keep, name, data, expected):
    """Title, people, times and words, in one form for all formats; the place of a photo is never read."""
    assert parser.outline(keep(data, name), name, scans=True).properties == expected


def test_front_matter_is_read_and_not_indexed(read):
    """YAML with lists, numbers and nesting; the text begins after it."""
    text = "---\ntitle: 'The tide: a table'\ntags: [sea, moon]\ndate: 2024-01-31\nweight: 3\nopen: yes\n---\n"
    outline, pages = read(f"{text}# Sea\n".encode(), "a.md")
    assert dict(outline.properties) == {
        "title": "The tide: a table",
        "tags": ["sea", "moon"],
        "date": "2024-01-31",
        "weight": 3,
        "open": True,
    }
    assert [block.text for page in pages for block in page.blocks] == ["Sea"]


@pytest.mark.parametrize(
    "head",
    [
        "a: &a [x, x]\nb: *a",
        "a: !!python/object/apply:os.system [ls]",
        "just words, no mapping",
        "a: [1",
        "? [a, b]\n: c",
        "a: " + "[" * 5000,
        "x: 1\n--- \ny: 2\n...\n--- |",
    ],
)
def test_what_is_no_plain_front_matter_stays_text(head):
    """Aliases, tags, damage and prose between two rules are none; nothing of the file is lost."""
    text = f"---\n{head}\n---\nThe sea.\n"
    own, body = front_matter.split(text)
    assert (own, body) == ({}, text) or ("x" in own and "The sea." in body)


def test_properties_are_cut_to_bounds():
    """Any number of names of any length and depth become a small object, and nothing is refused."""
    deep = {}
    for _ in range(50):
        deep = {"a": deep, "b": ["x"] * 1000, "c" * 500: 1, "$labels": ["public"], "": 2, "n": float("nan")}
    own = properties.bounded({**{f"k{n}": "y" * 5000 for n in range(1000)}, "deep": deep})
    assert len(json.dumps(own)) < 2 * properties.MOST_BYTES
    assert set(map(len, own.values())) == {properties.MOST_TEXT}
    assert properties.bounded({"$labels": ["public"], "e": [], "t": " a\n b\0 "}) == {"t": "a b\ufffd"}
    assert properties.bounded({"b": ["x"] * 1000}) == {"b": ["x"] * properties.MOST_LIST}
    assert properties.bounded({"a": {"a": {"a": {"a": 1, "b": {"c": 1}}}}}) == {"a": {"a": {"a": {"a": 1}}}}


@pytest.mark.parametrize(
    ("title", "good"),
    [
        ("The tide: a table", True),
        ("Vol. 3", True),
        ("Node.js in practice", True),
        ("Microsoft Word - Report.doc", False),
        ("Document1", False),
        ("C:\\Users\\ann\\report", False),
        ("/home/ann/report.tex", False),
        ("report_final.docx", False),
        ("Report of May.pdf", False),
        ("untitled", False),
        ("PowerPoint Presentation", False),
        ("---", False),
    ],
)
def test_a_title_that_a_program_wrote_is_none(title, good):
    """Names of programs, paths and files say less than the name of the file."""
    assert (properties.title_of({"title": title}) == title) is good


CHAPTERS = (
    ("One", 1, [("Sand", 1), ("Salt", 2)]),
    ("Two", 3),
)


def test_the_outline_of_a_pdf_gives_chunks_their_section(parser, keep):
    """Bookmarks are in the outline with their pages; pages without headings are under theirs."""
    file = keep(pdfs.make(["The sand.", "The salt.", "The end.", "And more."], bookmarks=CHAPTERS))
    outline = parser.outline(file)
    entries = [(each.level, each.title, each.page) for each in outline.entries]
    assert entries == [(1, "One", 1), (2, "Sand", 1), (2, "Salt", 2), (1, "Two", 3)]
    sections = [page.section for page in parser.read(file, outline.format, outline.whole)]
    assert sections == [("One",), ("One", "Salt"), ("Two",), ("Two",)]
    assert parser.read(file, outline.format, UnitRange(4, 4))[0].section == ("Two",)


def test_a_line_that_a_bookmark_names_is_a_heading(parser, keep):
    """Of the bookmark's level, even if it is set like the text; its number may be missing there."""
    page = [(12, 72, 700, "1.1 Salt"), (12, 72, 650, "It is white."), (12, 72, 600, "It is old.")]
    file = keep(pdfs.make([page], bookmarks=[("Sea", 1, [("Salt", 1)])]))
    blocks = parser.read(file, parser.outline(file).format, UnitRange(1, 1))[0].blocks
    assert (blocks[0].role.value, blocks[0].level, blocks[0].text) == ("heading", 2, "1.1 Salt")


def test_bookmarks_in_a_circle_and_without_end_are_bounded(parser, keep):
    """A chain that leads back ends; of too many the first are taken."""
    two = pdfs.make(["Sea"], bookmarks=[("a", 1), ("b", 1)])
    last = two.index(b"/Title<feff0062>")
    number = int(two[:last].rpartition(b" 0 obj")[0].rpartition(b"\n")[2])
    circle = two[:last] + b"/Next %d 0 R" % number + two[last:]
    assert len(parser.outline(keep(circle, "circle.pdf")).entries) == 2
    many = pdfs.make(["Sea"], bookmarks=[(f"b{n}", 1) for n in range(3000)])
    assert len(parser.outline(keep(many, "many.pdf")).entries) == 2000
