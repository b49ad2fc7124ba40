"""Text is read in the encoding it was written in."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.text import is_plain, plain
from holdfast.documents.parse import encodings, texts
from tests.documents import files

KOREAN = "안녕하세요 이것은 한국어 텍스트입니다. 반갑습니다. 오늘은 날씨가 좋습니다."
RUSSIAN = "Привет, как дела? Это простой текст на русском языке, довольно длинный."


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (files.JAPANESE + files.HEBREW, "utf-8"),
        (files.ARABIC, "utf-8-sig"),
        (files.CHINESE, "utf-16"),
        ("plain words without a mark", "utf-16-le"),
        ("plain words without a mark", "utf-16-be"),
        (files.CHINESE, "utf-32"),
        ("Das Café in Köln, “naïve” façade", "cp1252"),
        (files.JAPANESE, "shift_jis"),
        (files.JAPANESE, "euc_jp"),
        (files.CHINESE * 3, "gb18030"),
        (KOREAN, "euc_kr"),
        (RUSSIAN, "cp1251"),
    ],
)
def test_an_encoding_is_found(read, text, encoding):
    """No letter is lost or changed, with or without a mark."""
    _outline, pages = read(text.encode(encoding), "a.txt")
    assert "".join(block.text for block in pages[0].blocks) == text


def test_a_page_may_declare_its_encoding(read):
    """What HTML says about itself is believed where UTF-8 does not fit."""
    _outline, pages = read(b'<html><head><meta charset="gbk"></head><body><p>' + files.CHINESE.encode("gbk"))
    assert pages[0].blocks[0].text == files.CHINESE


@pytest.mark.parametrize("ending", ["\r\n", "\r", "\n"])
def test_line_breaks_are_newlines(ending):
    """Whatever system wrote the text, a line ends the same way."""
    assert encodings.decode(ending.join(["a", "b", "ü"]).encode()) == "a\nb\nü"


def test_a_bad_byte_far_from_the_sample_is_replaced():
    """One stray byte does not make a long text unreadable."""
    text = encodings.decode(b"caf\xe9 " + b"a" * encodings.SAMPLE + b"\x81 end")
    assert text.endswith("end")


def test_nothing_comes_out_that_a_database_cannot_keep():
    """NUL bytes become the replacement character."""
    assert encodings.decode(b"a" * 2 * encodings.SAMPLE + b"\0b").endswith("\ufffdb")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(files.JAPANESE, "shift_jis"), (files.CHINESE, "utf-16"), ("Müller", "cp1252"), ("שלום", "utf-8")],
)
def test_a_long_table_is_read_in_its_encoding(read, text, encoding):
    """Also when the first letter beyond ASCII comes long after the first sample."""
    rows = ["id,name,city"] + [f"{number},plain,words" for number in range(5000)] + [f"last,{text},end"]
    _outline, pages = read("\n".join(rows).encode(encoding), "a.csv")
    assert pages[0].blocks[-1].text == f"id: last; name: {text}; city: end"


@given(st.text(alphabet=" \t\x1c\u3000\n\x0bab", max_size=40))
def test_spaces_at_the_end_of_lines_part_nothing_and_are_dropped(text):
    """Of every sort; the spaces at the beginning of a line stay."""
    match = re.sub(r"[^\S\n]+\n", "\n", text.strip("\n").rstrip())
    expected = [part for part in re.split(r"\n[^\S\n]*\n\s*", match) if part.strip()]
    assert [block.text for page in texts.plain_pages(text) for block in page.blocks] == expected


@given(st.text(alphabet="a\x00\ud800\udfff\u00e9", max_size=8))
def test_what_no_database_keeps_is_replaced(text):
    """Zero bytes and halves of characters, in ASCII and beyond it."""
    assert plain(text) == "".join("\ufffd" if mark in "\x00\ud800\udfff" else mark for mark in text)
    assert is_plain(text) == (plain(text) == text)
