"""JSON and JSON Lines: a row for each record, its values beside their names; encoded data is left out."""

import io
import json
from collections.abc import Iterator
from typing import Any

from holdfast.core.errors import WorkError
from holdfast.core.text import plain
from holdfast.documents.parse import encodings, machine_data, texts
from holdfast.documents.parse.records import (
    Format,
    Outline,
    Page,
    ParseLimits,
    Role,
    TextBlock,
    Unit,
    UnitRange,
)
from holdfast.documents.parse.source import Readable

# The shortest string that may be encoded data.
_ENCODED = 64
_TITLES = ("title", "name")
# How deep records are looked for below the top: {"data": {"items": [{…}, {…}]}}.
_MOST_DEPTH = 8


def read(path: Readable, limits: ParseLimits) -> tuple[str | None, list[Page]]:
    """The title and the one page of a JSON file."""
    value = loads(texts.load(path, limits.text_bytes))
    title = (
        next((value[key] for key in _TITLES if isinstance(value.get(key), str)), None)
        if isinstance(value, dict)
        else None
    )
    return title, [Page(1, tuple(_blocks(value, 1)))]


def loads(text: str) -> Any:
    """The value of a JSON text; `broken_file` if it is none, or nested too deeply."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        raise WorkError(
            f"the file is not valid JSON ({error}); upload it again", code="broken_file"
        ) from error


def _blocks(value: Any, depth: int) -> Iterator[TextBlock]:
    """A list as a row for each element; an object as its own values, then each list and object in it."""
    if isinstance(value, list):
        yield from _rows(value)
        return
    if not isinstance(value, dict):
        yield from _rows([value])
        return
    lists = {key: each for key, each in value.items() if depth < _MOST_DEPTH and _has_records(each)}
    text = record_text({key: each for key, each in value.items() if key not in lists})
    if text:
        yield TextBlock(Role.ROW, text)
    for key, each in lists.items():
        yield TextBlock(Role.HEADING, plain(" ".join(key.split())), min(depth, 6))
        yield from _blocks(each, depth + 1)


def _has_records(value: Any) -> bool:
    """True for a list of records, or an object that has one inside."""
    if isinstance(value, list):
        return len(value) > 1 and any(isinstance(each, dict | list) for each in value)
    return isinstance(value, dict) and any(isinstance(each, dict | list) for each in value.values())


def _rows(values: list[Any]) -> Iterator[TextBlock]:
    for each in values:
        text = record_text(each)
        if text:
            yield TextBlock(Role.ROW, text)


def record_text(record: Any) -> str:
    """`name: Ada; address.city: London; tags: a, b`: every value of a record beside its name."""
    parts = [f"{name}: {value}" if name else value for name, value in _values(record)]
    return plain("; ".join(parts))


def _values(record: Any) -> Iterator[tuple[str, str]]:
    """The paths and values of a record in order, without recursion; plain lists are one value."""
    waiting: list[tuple[str, Any]] = [("", record)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(
                (f"{path}.{key}" if path else str(key), each) for key, each in reversed(value.items())
            )
        elif isinstance(value, list) and not any(isinstance(each, dict | list) for each in value):
            text = ", ".join(filter(None, map(_spelled, value)))
            if text:
                yield path[-120:], text
        elif isinstance(value, list):
            waiting.extend((path, each) for each in reversed(value))
        elif text := _spelled(value):
            yield path[-120:], text


def _spelled(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    if value.startswith("data:") and ";base64," in value[:200]:
        return ""
    if len(value) >= _ENCODED and machine_data.looks_encoded(value):
        return ""
    return " ".join(value.split())


class RecordLines:
    """A JSON Lines file, read forward; its units are its records."""

    def __init__(self, path: Readable, limits: ParseLimits) -> None:
        self._encoding = encodings.of_file(path)
        self._path = path
        self._limits = limits
        self._records = 0
        has_text = False
        for record in self._read():
            self._records += 1
            if self._records > limits.cells:
                raise WorkError(
                    f"the file has more than {limits.cells:,} records; split it", code="too_large"
                )
            has_text = has_text or bool(record_text(record))
        if not has_text:
            raise WorkError("the file has no records with text", code="no_text")
        self._rest = self._read()
        self._next = 1

    def outline(self) -> Outline:
        """All records are one part."""
        return Outline(Format.JSONL, Unit.ROW, self._records, None, (self._records,))

    def ahead(self, units: UnitRange) -> bool:
        """True if the slice has not been passed yet."""
        return units.first >= self._next

    def read(self, units: UnitRange) -> list[Page]:
        """The records of the slice, which must be `ahead`, as one page."""
        blocks: list[TextBlock] = []
        while self._next <= units.last:
            record = next(self._rest, None)
            if self._next >= units.first and (text := record_text(record)):
                blocks.append(TextBlock(Role.ROW, text))
            self._next += 1
        return [Page(1, tuple(blocks))]

    def _read(self) -> Iterator[Any]:
        with io.TextIOWrapper(self._path.open("rb"), encoding=self._encoding, errors="replace") as file:
            number = 0
            while line := file.readline(self._limits.text_bytes):
                number += 1
                if not line.isspace():
                    yield self._record(line, number)

    def _record(self, line: str, number: int) -> Any:
        try:
            return json.loads(line, strict=False)
        except (ValueError, RecursionError) as error:
            raise WorkError(
                f"line {number:,} is not valid JSON ({error}); correct the file and upload it again",
                code="broken_file",
            ) from error
