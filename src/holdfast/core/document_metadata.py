"""Metadata of a document: any JSON object within bounds, and its values in the form that filters compare.

A value is stored with its kind and a key. Keys of one kind sort, character by character, as the values do:
text as itself, numbers by `number_key`. So both databases compare exactly what Python does, whatever a number
is as a floating-point value.
"""

import json
import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from holdfast.core.errors import BadRequestError
from holdfast.core.text import is_plain

MOST_BYTES = 16_384
MOST_DEPTH = 8
MOST_VALUES = 500
MOST_NAME = 100  # characters of a name
MOST_PATH = 400  # bytes of a path: it is part of an index
MOST_DIGITS = 100
MOST_KEY = 128  # characters of a key; of a longer text this is the beginning
MOST_LABELS = 50
MOST_LABEL = 100
MOST_EXTERNAL_ID = 500  # characters, of up to four bytes each: it is part of an index
BUILT_IN = "$"  # the first character of fields that are not metadata
LABELS = "$labels"
FILE = "$file."  # before the path of a value that comes from the file itself

Scalar = str | int | float | bool | None


class ValueKind(StrEnum):
    """What a value is. `GROUP` is an object or an array, of which only its being there is known."""

    TEXT = "s"
    NUMBER = "n"
    BOOLEAN = "b"
    NULL = "z"
    GROUP = "g"


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A value in comparable form; `whole` is the text of a key that had to be cut.

    `number` is the nearest floating-point value, for fields that are stored as one.
    """

    kind: ValueKind
    key: str
    whole: str | None = None
    number: float = field(default=0.0, compare=False)

    @property
    def text(self) -> str:
        """The text that is compared."""
        return self.key if self.whole is None else self.whole


def _bad(why: str) -> BadRequestError:
    return BadRequestError(f"the metadata cannot be stored: {why}", code="bad_metadata")


def checked(metadata: object) -> dict[str, Any]:
    """The metadata, if it is within bounds; otherwise BadRequestError `bad_metadata`."""
    if not isinstance(metadata, Mapping):
        raise _bad("it must be a JSON object")
    _check(metadata, 1)
    if len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode()) > MOST_BYTES:
        raise _bad(f"it has more than {MOST_BYTES:,} bytes; shorten it")
    names = [name for name in metadata if name.startswith(BUILT_IN)]
    if names:
        raise _bad(f"{names[0]!r:.80} begins with {BUILT_IN}, as built-in fields do; rename it")
    for number, (path, _) in enumerate(values(metadata), start=1):
        if number > MOST_VALUES:
            raise _bad(f"it has more than {MOST_VALUES} values; leave some out")
        if len(path.encode()) > MOST_PATH:
            raise _bad(f"the path {path!r:.80} is longer than {MOST_PATH} bytes; use shorter names")
    return dict(metadata)


def _check(value: object, depth: int) -> None:
    """Return if databases can store the value; depth is checked first, so the recursion is bounded."""
    if isinstance(value, Mapping | list | tuple):
        if depth > MOST_DEPTH:
            raise _bad(f"it is nested more than {MOST_DEPTH} deep; make it flatter")
        if isinstance(value, Mapping):
            for name in value:
                _check_name(name)
        for each in value.values() if isinstance(value, Mapping) else value:
            _check(each, depth + 1)
    else:
        _check_scalar(value)


def _check_scalar(value: object) -> None:
    if value is not None and not isinstance(value, str | int | float):
        raise _bad(f"{type(value).__name__} is not JSON")
    if isinstance(value, str) and not is_plain(value):
        raise _bad("a text has a NUL or half of a surrogate pair; remove it")
    if isinstance(value, float) and not math.isfinite(value):
        raise _bad("NaN and infinity are not JSON; use null or a text")
    if isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
        raise _bad(f"a number has more than {MOST_DIGITS} digits; use a text")


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME or not is_plain(name):
        raise _bad(f"{name!r:.80} is not a name; use plain text of 1 to {MOST_NAME} characters")


def checked_labels(labels: Sequence[object]) -> list[str]:
    """The labels, sorted, each once; BadRequestError `bad_label` for one that cannot be stored."""
    if len(labels) > MOST_LABELS:
        raise BadRequestError(f"a document has at most {MOST_LABELS} labels", code="bad_label")
    for each in labels:
        if not isinstance(each, str) or not 0 < len(each) <= MOST_LABEL or not is_plain(each):
            message = f"label {each!r:.80} is not plain text of 1 to {MOST_LABEL} characters"
            raise BadRequestError(message, code="bad_label")
    return sorted({str(each) for each in labels})


def checked_external_id(external_id: str | None) -> str | None:
    """The external id exactly as it is; BadRequestError `bad_external_id` if it cannot be stored."""
    if external_id is None:
        return None
    is_short = 0 < len(external_id) <= MOST_EXTERNAL_ID and not external_id.isspace()
    if is_short and is_plain(external_id) and not any(unicodedata.category(c) == "Cc" for c in external_id):
        return external_id
    message = f"external_id must have 1 to {MOST_EXTERNAL_ID} characters, none of them a control character"
    raise BadRequestError(message, code="bad_external_id")


def escaped(name: str) -> str:
    """A name as part of a path, in which a dot separates names."""
    return name.replace("~", "~0").replace(".", "~1")


def values(metadata: Mapping[str, Any]) -> Iterator[tuple[str, FieldValue]]:
    """Every value with its path. Elements of an array have the path of the array."""
    for name, value in metadata.items():
        yield from _values(escaped(name), value)


def file_values(
    properties: Mapping[str, Any], metadata: Mapping[str, Any]
) -> Iterator[tuple[str, FieldValue]]:
    """Every value of a file's properties, with its path. Metadata of the same name takes its place."""
    for path, value in values({name: each for name, each in properties.items() if name not in metadata}):
        yield f"{FILE}{path}", value


def _values(path: str, value: Any) -> Iterator[tuple[str, FieldValue]]:
    if isinstance(value, Mapping):
        yield path, FieldValue(ValueKind.GROUP, "")
        for name, each in value.items():
            yield from _values(f"{path}.{escaped(name)}", each)
    elif isinstance(value, list | tuple):
        yield path, FieldValue(ValueKind.GROUP, "")
        for each in value:
            yield from _values(path, each)
    else:
        yield path, field_value(value)


def field_value(value: Scalar) -> FieldValue:
    """A text, number, truth value or null in comparable form."""
    if value is None:
        return FieldValue(ValueKind.NULL, "")
    if isinstance(value, bool):
        return FieldValue(ValueKind.BOOLEAN, "1" if value else "0")
    if isinstance(value, str):
        return FieldValue(ValueKind.TEXT, value[:MOST_KEY], value if len(value) > MOST_KEY else None)
    return FieldValue(ValueKind.NUMBER, number_key(value), number=float(value))


_COMPLEMENT = str.maketrans("0123456789", "9876543210")
_MIDDLE = 5000  # added to exponents; those of numbers within bounds are far smaller


def number_key(number: float) -> str:
    """A text that sorts among those of other numbers as the number does; equal numbers have the same."""
    exact = Decimal(number) if isinstance(number, int) else Decimal(repr(number))
    sign, digits, _ = exact.as_tuple()
    significant = "".join(map(str, digits)).strip("0")
    if not significant:
        return "1"
    key = f"{_MIDDLE + exact.adjusted():04d}{significant}"
    # Below zero everything is reversed; `~` comes after every digit, so that fewer digits are more.
    return f"2{key}" if not sign else f"0{key.translate(_COMPLEMENT)}~"
