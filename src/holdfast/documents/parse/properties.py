"""Properties of a file: what it says about itself, in its metadata, front matter or headers.

They are foreign. Whatever a reader finds is cut to bounds here: names, texts, lists, depth, the number of
values and their size. What does not fit is left out; a file is never refused for its properties.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

from holdfast.core.document_metadata import BUILT_IN, MOST_DIGITS, MOST_PATH, escaped
from holdfast.core.text import plain

MOST_NAME = 100
MOST_TEXT = 1000
MOST_LIST = 50
MOST_VALUES = 100
MOST_DEPTH = 4
MOST_BYTES = 8192
_PDF_DATE = re.compile(r"(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?([Zz+-])?(\d\d)?'?(\d\d)?")


def bounded(properties: Mapping[Any, Any]) -> dict[str, Any]:
    """The properties that can be stored, each within bounds; empty ones are left out."""
    return _Bounds().mapping(properties, 1, "")


class _Bounds:
    """Counts what has been taken of one file."""

    def __init__(self) -> None:
        self._values = MOST_VALUES
        self._bytes = MOST_BYTES

    def mapping(self, properties: Mapping[Any, Any], depth: int, path: str) -> dict[str, Any]:
        taken: dict[str, Any] = {}
        for key, value in properties.items():
            name = " ".join(plain(str(key)).split())
            below = f"{path}.{escaped(name)}" if path else escaped(name)
            if not 0 < len(name) <= MOST_NAME or name.startswith(BUILT_IN) or len(below.encode()) > MOST_PATH:
                continue
            if self._spend(len(name.encode()) + 4) and (each := self._value(value, depth, below)) is not None:
                taken[name] = each
        return taken

    def _value(self, value: Any, depth: int, path: str) -> Any:
        """The value as it is stored; None if there is nothing to store."""
        if isinstance(value, Mapping):
            return (self.mapping(value, depth + 1, path) or None) if depth < MOST_DEPTH else None
        if isinstance(value, list | tuple | set | frozenset):
            if depth >= MOST_DEPTH:
                return None
            items = (self._value(each, depth + 1, path) for each in list(value)[:MOST_LIST])
            return [each for each in items if each is not None] or None
        return self._scalar(value)

    def _scalar(self, value: Any) -> Any:
        if isinstance(value, datetime | date):
            value = moment(value)
        if isinstance(value, float) and not math.isfinite(value):
            return None
        if isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
            return None
        if value is None or isinstance(value, bool | int | float):
            return value if value is not None and self._spend(MOST_DIGITS // 4) else None
        text = " ".join(plain(str(value))[: 2 * MOST_TEXT].split())[:MOST_TEXT]
        return text if text and self._spend(len(text.encode()) + 4) else None

    def _spend(self, size: int) -> bool:
        """True if so many bytes, of one value more, are still allowed."""
        if self._values <= 0 or size > self._bytes:
            return False
        self._values -= 1
        self._bytes -= size
        return True


def moment(value: datetime | date) -> str:
    """A date, or a time in UTC where its zone is known, in a form that sorts as text."""
    if not isinstance(value, datetime):
        return value.isoformat()
    if value.tzinfo is None:
        return value.isoformat(timespec="seconds")
    try:
        return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"
    except OverflowError:
        return value.replace(tzinfo=None).isoformat(timespec="seconds")


def time_text(text: str) -> str | None:
    """A time as office formats and XMP write it (ISO 8601) in the form of `moment`; None if it is none."""
    try:
        return moment(datetime.fromisoformat(text.strip()[:40]))
    except ValueError:
        return None


def pdf_time(text: str) -> str | None:
    """A time as PDF writes it (D:20240131120000+01'00') in the form of `moment`; None if it is none."""
    match = _PDF_DATE.match(text.strip().removeprefix("D:")[:40])
    if match is None:
        return time_text(text)
    year, *rest = (int(part) if part else None for part in match.groups()[:6])
    month, day, hour, minute, second = rest
    sign, hours, minutes = match[7], int(match[8] or 0), int(match[9] or 0)
    try:
        when = datetime(year or 1, month or 1, day or 1, hour or 0, minute or 0, second or 0)  # noqa: DTZ001
        if sign is not None:
            offset = timedelta(hours=hours, minutes=minutes)
            when = when.replace(tzinfo=timezone(-offset if sign == "-" else offset))
        return moment(when)
    except (ValueError, OverflowError):
        return None


def one_or_all(texts: Iterable[str]) -> str | list[str] | None:
    """The one text, or all of several, each once; None for none."""
    unique = list(dict.fromkeys(text for text in (" ".join(each.split()) for each in texts) if text))
    return unique[0] if len(unique) == 1 else unique or None


def keywords(text: str) -> list[str]:
    """The keywords of a text in which commas or semicolons separate them."""
    separator = ";" if ";" in text else ","
    return list(dict.fromkeys(filter(None, (" ".join(part.split()) for part in text.split(separator)))))


_NAMES_OF_NOTHING = frozenset(
    {"untitled", "no title", "unknown", "title", "document", "presentation", "workbook"}
    | {
        "powerpoint presentation",
        "microsoft word",
        "slide 1",
        "none",
        "null",
        "n/a",
        "powerpoint-präsentation",
    }
)
_PROGRAMS = (
    "microsoft word - ",
    "microsoft powerpoint - ",
    "microsoft excel - ",
    "print - ",
    "full page fax",
)
_NUMBERED = re.compile(
    r"(?:document|dokument|presentation|book|mappe|untitled|scan|slide|page)[ _-]?\d{0,9}", re.IGNORECASE
)
MOST_TITLE = 300


def title_of(properties: Mapping[str, Any]) -> str | None:
    """The title that the file gives itself, if a person could have chosen it; None otherwise.

    Programs write their own name, a path or `Document1` into the field: the name of the file says more.
    """
    for name in ("title", "subject") if "from" in properties else ("title",):
        value = properties.get(name)
        if isinstance(value, str) and _is_title(value):
            return value
    return None


def _is_title(text: str) -> bool:
    folded = text.casefold().strip(" .")
    if len(text) > MOST_TITLE or sum(map(str.isalpha, text)) < 2:
        return False
    if folded in _NAMES_OF_NOTHING or folded.startswith(_PROGRAMS) or _NUMBERED.fullmatch(folded):
        return False
    return not _is_path(text)


def _is_path(text: str) -> bool:
    """True for a path, an address or the name of a file."""
    if "\\" in text or "://" in text or text.startswith(("/", "file:", "~")):
        return True
    if " " in text:
        ending = text.rpartition(".")[2].casefold()
        return ending in _ENDINGS
    stem, dot, ending = text.rpartition(".")
    return bool(dot and stem) and ending.isalnum() and 1 < len(ending) <= 5 and not ending.isdigit()


_ENDINGS = frozenset(
    {
        "doc",
        "docx",
        "dot",
        "dotx",
        "rtf",
        "odt",
        "pdf",
        "ps",
        "tex",
        "dvi",
        "txt",
        "md",
        "htm",
        "html",
        "indd",
    }
    | {"ppt", "pptx", "odp", "xls", "xlsx", "ods", "pub", "pages", "qxd", "qxp", "pmd", "wpd", "cdr", "ai"}
)


def merged(*sources: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of all sources; the first that has one wins."""
    result: dict[str, Any] = {}
    for properties in sources:
        for name, value in properties.items():
            if value not in (None, "", [], {}):
                result.setdefault(name, value)
    return result


def named(pairs: Iterable[tuple[str, str | None]]) -> Iterator[tuple[str, str]]:
    """The pairs that have a text."""
    for name, text in pairs:
        if text and not text.isspace():
            yield name, text
