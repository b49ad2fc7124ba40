"""Decodes bytes of unknown encoding.

In order of certainty: a byte order mark, the zeros of UTF-16 without a mark, valid UTF-8, the encoding that
the document declares, and only then a guess. The guess uses a sample, so that its time is bounded; an invalid
character elsewhere becomes U+FFFD and is not an error.
"""

import codecs
import re

from holdfast.core.errors import WorkError
from holdfast.core.text import plain
from holdfast.documents.parse.source import Readable

SAMPLE = 32 * 1024
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Bytes that occur in no supported text encoding: C0 controls except tab, line breaks, form feed, escape.
_CONTROLS = bytes(set(range(32)) - {8, 9, 10, 11, 12, 13, 27})
_KANA = re.compile("[\u3041-\u30ff]")
# The letters and the typographic marks of Western Europe among the bytes above ASCII.
_WESTERN = re.compile(rb"[\x80\x82\x84\x85\x8a\x8c\x8e\x91-\x97\x9a\x9c\x9e\xa0\xa7\xab\xb0\xbb\xc0-\xff]")
_HIGH = re.compile(rb"[\x80-\xff]")


def is_text(head: bytes) -> bool:
    """True if the first bytes of a file can be text in some encoding."""
    if marked(head) or _utf16(head):
        return True
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return b"\0" not in head and controls * 100 <= len(head)


def marked(head: bytes) -> str | None:
    """The encoding that a byte order mark names."""
    return next((name for mark, name in _MARKS if head.startswith(mark)), None)


def decode(data: bytes, declared: str | None = None) -> str:
    """The text of `data`, with newlines as line breaks and without characters a database cannot store."""
    return _finished(_decode(data, declared))


def _finished(text: str) -> str:
    text = plain(text)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def decode_certain(data: bytes) -> str | None:
    """As `decode`, if the bytes themselves determine the encoding; None if it would be a guess.

    Guessing takes a slow library, so it is left to the child.
    """
    name = marked(data) or _utf16(data[:SAMPLE])
    try:
        text = data.decode(name, "replace") if name is not None else data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return _finished(text)


def decode_head(head: bytes) -> str:
    """The first bytes of a file as text, good enough to recognise formats; never raises."""
    name = marked(head) or _utf16(head[:SAMPLE]) or "utf-8"
    return head.decode(name, "replace").replace("\r\n", "\n")


def of_file(path: Readable) -> str:
    """The encoding of a file too large to decode at once; reads all of it."""
    with path.open("rb") as file:
        head = file.read(SAMPLE)
        encoding = marked(head) or _utf16(head)
        if encoding is not None:
            return encoding
        decoder = codecs.getincrementaldecoder("utf-8")()
        part = head
        while part:
            try:
                decoder.decode(part)
            except UnicodeDecodeError:
                return _guess(part)
            part = file.read(SAMPLE)
    return "utf-8"


def _decode(data: bytes, declared: str | None) -> str:
    mark = marked(data)
    if mark is not None:
        return data.decode(mark, "replace")
    wide = _utf16(data[:SAMPLE])
    if wide is not None:
        return data.decode(wide, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    if b"\0" in data[:SAMPLE]:
        raise WorkError("the file is not text in any known encoding", code="unknown_format")
    return data.decode(_known(declared) or _guess(data), "replace")


def _utf16(head: bytes) -> str | None:
    """Detect UTF-16 without a mark by the zero bytes of its ASCII characters, all on one side."""
    if b"\0" not in head:
        return None
    pairs = len(head) // 2
    even, odd = head[0 : pairs * 2 : 2].count(0), head[1 : pairs * 2 : 2].count(0)
    if pairs < 2 or max(even, odd) * 10 < pairs * 4 or min(even, odd) * 20 > max(even, odd):
        return None
    return "utf-16-be" if even > odd else "utf-16-le"


def _known(declared: str | None) -> str | None:
    """Python's name of the declared encoding, if it is a text encoding and not the UTF-8 that failed."""
    if not declared:
        return None
    try:
        name = codecs.lookup(declared).name
        "".encode(name)
    except (LookupError, ValueError):
        return None
    # Browsers treat declared Latin-1 as its superset.
    return None if name == "utf-8" else {"iso8859-1": "cp1252", "shift_jis": "cp932"}.get(name, name)


def _guess(data: bytes) -> str:
    """The likeliest legacy encoding, from a sample that ends at a line end if possible."""
    sample = data[:SAMPLE]
    if len(data) > SAMPLE and (end := sample.rfind(b"\n")) > 0:
        sample = sample[:end]
    for name in ("cp932", "euc_jp"):
        if _is_japanese(sample, name):
            return name
    high = len(_HIGH.findall(sample))
    if high < 32 and high * 4 < len(sample) and len(_WESTERN.findall(sample)) == high:
        return "cp1252"  # too little to distinguish Western from Central Europe; the more common one
    import charset_normalizer  # noqa: PLC0415 (30 ms, and nearly every file is UTF-8)

    best = charset_normalizer.from_bytes(sample).best()
    return best.encoding if best is not None else "cp1252"


def _is_japanese(sample: bytes, name: str) -> bool:
    """True if the sample decodes to text with the share of kana that only Japanese has.

    Frequency-based detectors confuse short Japanese text with Korean, which uses the same bytes.
    """
    try:
        text = sample.decode(name)
    except UnicodeDecodeError:
        return False
    foreign = sum(not letter.isascii() for letter in text)
    return len(_KANA.findall(text)) * 5 > foreign
