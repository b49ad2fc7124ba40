"""The title of an HTML page, from its beginning: a name for a page whose URL has none.

Only a name is wanted, so that this is a walk over the first bytes and no parser.
"""

import html

from holdfast.core.text import plain

MOST_HEAD = 64 * 1024
MOST_TITLE = 150
# What pages are written in. A page does not choose among all codecs of Python: some take quadratic time.
CHARSETS = frozenset(
    {
        "utf-8",
        "utf8",
        "us-ascii",
        "ascii",
        "latin1",
        "latin-1",
        "iso-8859-1",
        "iso-8859-2",
        "iso-8859-5",
        "iso-8859-7",
        "iso-8859-9",
        "iso-8859-15",
        "windows-1250",
        "windows-1251",
        "windows-1252",
        "windows-1253",
        "windows-1254",
        "windows-1255",
        "windows-1256",
        "windows-1257",
        "koi8-r",
        "koi8-u",
        "gb2312",
        "gbk",
        "gb18030",
        "big5",
        "shift_jis",
        "euc-jp",
        "iso-2022-jp",
        "euc-kr",
    }
)
# In a file name these would be a path.
_SEPARATORS = str.maketrans("/\\", "--")


def title_of(head: bytes) -> str | None:
    """The title as one line, shortened; None if there is none near the beginning, or none that is text."""
    head = head[:MOST_HEAD]
    lowered = head.lower()
    begin = lowered.find(b"<title")
    begin = lowered.find(b">", begin) + 1 if begin >= 0 else 0
    end = lowered.find(b"</title", begin) if begin else -1
    if end < 0:
        return None
    try:
        text = html.unescape(head[begin:end].decode(_charset(lowered)))
    except (LookupError, UnicodeError):
        return None
    return " ".join(plain(text).translate(_SEPARATORS).split())[:MOST_TITLE].strip() or None


def _charset(lowered: bytes) -> str:
    """What it says about its encoding; UTF-8 if that is nothing. LookupError for none of `CHARSETS`."""
    at = lowered.find(b"charset=")
    value = lowered[at + 8 : at + 48].lstrip(b"\"' ") if at >= 0 else b""
    length = next((n for n, byte in enumerate(value) if not chr(byte).isalnum() and byte not in b"-_"), 0)
    name = value[:length].decode("ascii", "replace") or "utf-8"
    if name not in CHARSETS:
        raise LookupError(name)
    return name
