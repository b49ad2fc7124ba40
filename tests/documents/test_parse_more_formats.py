"""Books, mail, data and source code: each is told by its content and read as people read it."""

import json
from email.message import EmailMessage

import pytest

from holdfast.documents.parse.records import Format, Role, Unit
from tests.documents import files

RTF = rb"""{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\info{\title Hidden}}\f0 First \b bold\b0  words.\par
Caf\'e9 \u8364?\par{\pict\pngblip 89504e470d0a1a0a}
\trowd Name\cell City\cell\row\trowd Ada\cell Oslo\cell\row}"""
NOTEBOOK = json.dumps(
    {
        "cells": [
            {
                "cell_type": "markdown",
                "source": ["# Analysis\n", "\n", "Some words."],
                "attachments": {"a": "QUJD" * 99},
            },
            {
                "cell_type": "code",
                "source": "# load\nx = 1",
                "outputs": [{"data": {"image/png": "iVBORw0KGgo" * 500}}],
            },
        ],
        "nbformat": 4,
    }
).encode()
PYTHON = (
    b"# Tools for tides\nimport os\n\n\n# Height.\ndef tide():\n    return 1\n\n\nclass Moon:\n    pass\n"
)
XML = b'<?xml version="1.0"?><lib><book><title>Sea</title><p>A <b>bold</b> word</p></book><!-- no --></lib>'


def message(text="The tide is high.", html=None, attachment=b"", **headers):
    """The bytes of an e-mail."""
    mail = EmailMessage()
    for name, value in {
        "Subject": "Tide",
        "From": "Ada <ada@example.org>",
        "To": "Bo <bo@example.org>",
    }.items():
        mail[name] = headers.get(name, value)
    mail["Date"] = "Mon, 02 Nov 2026 10:00:00 +0000"
    mail["Message-ID"] = "<1@example.org>"
    if text:
        mail.set_content(text)
    if html:
        mail.add_alternative(html, subtype="html") if text else mail.set_content(html, subtype="html")
    if attachment:
        mail.add_attachment(attachment, maintype="application", subtype="octet-stream", filename="data.bin")
    return mail.as_bytes()


def blocks(pages):
    return [(block.role, block.text) for page in pages for block in page.blocks]


SAMPLES = {
    Format.EPUB: files.book(["<h1>One</h1><p>Words.</p>"]),
    Format.ODT: files.open_document("text", "<text:p>Words</text:p>"),
    Format.ODP: files.open_document(
        "presentation", "<draw:page><draw:frame><text:p>Words</text:p></draw:frame></draw:page>"
    ),
    Format.RTF: RTF,
    Format.EML: message(attachment=b"\0\1\2" * 999),
    Format.MSG: files.outlook_message("Tide", "High."),
    Format.JSON: b'{"name": "Ada", "born": 1815}',
    Format.JSONL: b'{"a": 1, "b": 2, "c": 3}\n{"a": 4, "b": 5, "c": 6}\n{"a": 7, "b": 8, "c": 9}\n',
    Format.XML: XML,
    Format.NOTEBOOK: NOTEBOOK,
    Format.CODE: b"#!/bin/sh\n# Say it.\necho hello\n",
}


@pytest.mark.parametrize("name", ["", "wrong.pdf", "wrong.txt", "wrong.csv"])
@pytest.mark.parametrize("expected", SAMPLES, ids=str)
def test_the_content_tells_these_formats_too(read, expected, name):
    """A name that says nothing, or something wrong, changes nothing."""
    outline, pages = read(SAMPLES[expected], name)
    assert outline.format is expected
    assert blocks(pages)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tide.py", Format.CODE),
        ("src/tide.TS", Format.CODE),
        ("Makefile", Format.CODE),
        ("a.yml", Format.YAML),
    ],
)
def test_only_a_name_tells_source_code(read, name, expected):
    """A comment in it is no heading."""
    outline, pages = read(PYTHON, name)
    assert outline.format is expected
    assert {role for role, _text in blocks(pages)} == {Role.CODE}


def test_a_message_is_its_header_and_its_words(read):
    """The attachment is named, and not a letter of its encoding is text."""
    outline, pages = read(message(attachment=b"\0\1\2" * 9999), "a.eml")
    assert outline.title == "Tide"
    assert blocks(pages) == [
        (Role.HEADING, "Tide"),
        (
            Role.PARAGRAPH,
            (
                "From: Ada <ada@example.org>\nTo: Bo <bo@example.org>\nDate: Mon, 02 Nov 2026 10:00:00 +0000"
                "\nAttachments: data.bin"
            ),
        ),
        (Role.PARAGRAPH, "The tide is high."),
    ]  # fmt: skip


def test_a_message_without_plain_text_is_read_as_html(read):
    """Its lists and tables are kept as those of a page are."""
    _outline, pages = read(message(text="", html="<ul><li>one</li></ul><p>Größe</p>"))
    assert blocks(pages)[2:] == [(Role.LIST, "one"), (Role.PARAGRAPH, "Größe")]


def test_a_message_of_outlook_is_read_alike(read):
    """Subject, sender, body and the names of attachments."""
    data = files.outlook_message("Tide", "The tide is high.", attachments=[("data.bin", b"x" * 5000)])
    outline, pages = read(data, "a.msg")
    assert outline.title == "Tide"
    assert blocks(pages) == [
        (Role.HEADING, "Tide"),
        (Role.PARAGRAPH, "From: Ada <ada@example.org>\nAttachments: data.bin"),
        (Role.PARAGRAPH, "The tide is high."),
    ]


def test_a_book_is_read_in_the_order_of_its_spine(read):
    """Each chapter is a part with its heading, whatever the order of the archive."""
    outline, pages = read(files.book(["<h1>One</h1><p>a</p>", "<h2>Two</h2><p>b</p>"]))
    assert (outline.title, outline.unit, outline.units) == ("The Book", Unit.PART, 2)
    assert [page.label for page in pages] == ["One", "Two"]


def test_an_open_document_keeps_its_structure(read):
    """Spaces, tabs and breaks are elements; deleted text is none, a comment follows its paragraph."""
    body = (
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
        '<text:h text:outline-level="2">Part</text:h>'
        '<text:p>a<text:s text:c="2"/>b<text:tab/>c<text:line-break/>d'
        "<office:annotation><text:p>comment</text:p></office:annotation></text:p>"
        "<text:list><text:list-item><text:p>point</text:p></text:list-item></text:list>"
        "<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>Name</text:p>"
        "</table:table-cell><table:table-cell><text:p>City</text:p></table:table-cell></table:table-row>"
        "</table:table-header-rows><table:table-row><table:table-cell><text:p>Ada</text:p></table:table-cell>"
        "<table:table-cell><text:p>Oslo</text:p></table:table-cell></table:table-row></table:table>"
    )
    outline, pages = read(files.open_document("text", body, title="Report"))
    assert outline.title == "Report"
    assert blocks(pages) == [
        (Role.HEADING, "Part"), (Role.PARAGRAPH, "a  b\tc\nd"),
        (Role.PARAGRAPH, "Comment: comment"), (Role.LIST, "point"),
        (Role.ROW, "Name: Ada; City: Oslo"),
    ]  # fmt: skip


def test_open_slides_bear_their_titles(read):
    """Each slide is a page; the speaker's notes come last."""
    slide = (
        "<draw:page><draw:frame><draw:text-box><text:p>point</text:p></draw:text-box></draw:frame>"
        '<draw:frame presentation:class="title"><draw:text-box><text:p>Welcome</text:p></draw:text-box>'
        "</draw:frame>"
        "<presentation:notes><draw:frame><draw:text-box><text:p>say it</text:p></draw:text-box></draw:frame>"
        "</presentation:notes></draw:page>"
    )
    outline, pages = read(files.open_document("presentation", slide * 2))
    assert (outline.unit, outline.units, outline.title) == (Unit.SLIDE, 2, "Welcome")
    assert [block.text for block in pages[1].blocks] == ["Welcome", "point", "say it"]


def test_rich_text_has_no_control_words(read):
    """Nor pictures; tables are rows, and escaped characters are themselves."""
    _outline, pages = read(RTF)
    assert blocks(pages) == [
        (Role.PARAGRAPH, "First bold words."), (Role.PARAGRAPH, "Café €"),
        (Role.ROW, "Name: Ada; City: Oslo"),
    ]  # fmt: skip


def test_records_are_rows(read):
    """A record is a row with the names of its values; base64 in it is left out."""
    records = [
        {"name": "Ada", "home": {"city": "Oslo"}, "tags": ["a", "b"], "photo": "aGVsbG8gd29ybGQ3" * 20}
    ] * 2
    lines = "\n".join(map(json.dumps, records)).encode()
    outline, pages = read(lines, "a.jsonl")
    assert (outline.unit, outline.units) == (Unit.ROW, 2)
    row = (Role.ROW, "name: Ada; home.city: Oslo; tags: a, b")
    assert blocks(pages) == [row, row]
    _outline, pages = read(json.dumps({"title": "People", "people": records}).encode())
    assert blocks(pages) == [(Role.ROW, "title: People"), (Role.HEADING, "people"), row, row]


def test_a_notebook_is_its_cells(read):
    """Markdown and code; what the code printed or drew is left out."""
    outline, pages = read(NOTEBOOK, "a.ipynb")
    assert outline.title == "Analysis"
    assert blocks(pages) == [
        (Role.HEADING, "Analysis"), (Role.PARAGRAPH, "Some words."), (Role.CODE, "# load\nx = 1"),
    ]  # fmt: skip


def test_xml_is_the_text_of_its_elements(read):
    """Markup inside a sentence does not tear it."""
    outline, pages = read(XML)
    assert outline.title == "Sea"
    assert blocks(pages) == [(Role.PARAGRAPH, "Sea"), (Role.PARAGRAPH, "A bold word")]


def test_long_source_code_is_cut_at_definitions(read):
    """A definition begins with the comments above it, and a long class is cut at its methods."""
    body = "\n".join(f"        line_{number} = compute({number})" for number in range(20))
    methods = "\n\n".join(f"    # Method {n}.\n    def m{n}(self):\n{body}" for n in range(3))
    source = f"import os\n\n\n# A tide.\ndef tide():\n{body}\n\n\nclass Moon:\n    size = 1\n\n{methods}\n"
    _outline, pages = read(source.encode(), "a.py")
    starts = [text.partition("\n")[0].strip() for _role, text in blocks(pages)]
    assert starts == ["import os", "# A tide.", "class Moon:", "# Method 0.", "# Method 1.", "# Method 2."]


def test_yaml_is_cut_at_its_keys(read):
    """A key and all below it stay together."""
    parts = [f"# About {n}\nkey{n}:\n" + "".join(f"  - item {n} {i}\n" for i in range(60)) for n in range(3)]
    _outline, pages = read("\n".join(parts).encode(), "a.yaml")
    assert [block.text.partition("\n")[0] for block in pages[0].blocks] == [
        "# About 0",
        "# About 1",
        "# About 2",
    ]


@pytest.mark.parametrize(
    ("stream", "advice"), [("WordDocument", "save it as DOCX"), ("PowerPoint Document", "save it as PPTX")]
)
def test_old_office_files_are_refused_with_what_to_do(failing, stream, advice):
    """Nobody is left alone with a format that is not read."""
    error = failing(files.compound_file({stream: b"x" * 5000, "1Table": b""}), "a.doc")
    assert error.code == "old_office"
    assert advice in error.message


def test_a_dialect_of_json_is_text(read):
    """Comments and a comma at the end, as programs allow them in their settings."""
    outline, _pages = read(b'{\n  "strict": true, // as ever\n  "files": ["a.ts",],\n}\n', "tsconfig.json")
    assert outline.format is Format.TEXT
