"""What nobody can read is left out or refused, and what people write is left alone."""

import base64
import random

import pytest

from holdfast.documents.chunk import ChunkOptions
from holdfast.documents.parse import machine_data
from tests.documents import files

NOISE = random.Random(1).randbytes(9000)
ENCODED = base64.encodebytes(NOISE).decode()
MINIFIED = "!function(e,t){var n=e.a,r=t[0];for(;r<n.length;)r+=n[r]?1:2;return{a:n,b:r}}(this,{});" * 200


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"The key follows.\n\n-----BEGIN KEY-----\n{ENCODED}-----END KEY-----\n\nThat was it.", "a.txt"),
        (f"# Logo\n\n![logo](data:image/png;base64,{ENCODED.replace(chr(10), '')})\n\nThat was it.", "a.md"),
        (f"<html><p>Hash {NOISE.hex()} ends.</p><p>That was it.</p></html>", "a.html"),
        (f"Before.\n\n{MINIFIED}\n\nThat was it.", "a.txt"),
    ],
    ids=["lines", "data url", "hexadecimal", "minified"],
)
def test_encoded_passages_are_left_out_and_counted(parser, keep, text, name):
    """The words around them stay, and nobody pays for the rest."""
    path = keep(text.encode())
    outline = parser.outline(path, name)
    cut = parser.cut(path, outline.format, outline.whole, ChunkOptions())
    joined = "".join(piece.text for piece in cut.pieces)
    assert joined.endswith("That was it.")
    assert len(joined) < 100
    assert cut.skipped > 9000


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (ENCODED.encode(), "key.txt"),
        (NOISE.hex().encode(), ""),
        (f"/*! Tides 1.0, MIT */\n{MINIFIED}".encode(), "tides.min.js"),
        (MINIFIED.encode(), ""),
    ],
    ids=["base64", "hexadecimal", "minified", "minified without a name"],
)
def test_a_file_of_nothing_else_is_refused(failing, data, name):
    """With a code that says so, not as a document without text."""
    assert failing(data, name).code == "machine_data"


@pytest.mark.parametrize(
    "text",
    [
        "See https://example.org/" + "a-long/path/2026/" * 30 + " for more.",
        ">sequence\n" + "\n".join("ACGTTGCA" * 10 for _ in range(20)),
        files.CHINESE * 200,
        "=" * 500 + "\nTitle\n" + "_" * 500,
        "SELECT a, b FROM c WHERE d = 1; " * 100,
        "\n".join(f"| {n} | {n * 7919 % 1000} | value {n} |" for n in range(200)),
        "x" * 5000,
        "Donaudampfschifffahrtsgesellschaftskapitän " * 30,
    ],
    ids=["url", "sequence", "chinese", "rules", "sql", "table", "one letter", "german"],
)
def test_what_people_write_is_left_alone(text):
    """Long URLs, rules, sequences and scripts without spaces are no encoded data."""
    assert machine_data.readable_text(text) is text
