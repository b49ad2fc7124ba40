"""Filters over documents: which of them a search, list, job or export is about, and which a key may see.

A filter is JSON. Each operator has an object of fields, all of which must hold:

    {"eq": {"author": "Ann"}}                        the field has this value
    {"in": {"year": [2023, 2024]}}                   one of these values
    {"range": {"year": {"gte": 2020, "lt": 2025}}}   a value within bounds: gt, gte, lt, lte
    {"exists": "review.date"}                        the field is there, even if it is null
    {"and": [...]}, {"or": [...]}, {"not": {...}}    combinations; two operators in one object: `and`

A field is a path of names joined by dots; a dot within a name is written `~1`, a tilde `~0`. A path goes
through arrays: it leads to every element, and a condition holds if one value holds all of it. Values of
different types are never equal: 1 is not "1", nor true. A built-in field begins with `$`.

A field is that of the metadata; where a document has no metadata of that name, of the properties of its file.
The filter of a key looks at metadata alone: a file must not decide who sees it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias

from holdfast.core import document_metadata
from holdfast.core.document_metadata import BUILT_IN, FILE, LABELS, FieldValue, ValueKind, field_value
from holdfast.core.errors import BadRequestError
from holdfast.core.text import is_plain

MOST_TEXT = 16_384
MOST_DEPTH = 8
MOST_CONDITIONS = 100
MOST_VALUES = 500
BOUNDS = ("gt", "gte", "lt", "lte")
# Built-in fields by the attribute of a document that they show.
TEXTS = {
    "$id": "id",
    "$name": "name",
    "$title": "title",
    "$source": "source",
    "$url": "url",
    "$type": "format",
    "$language": "language",
}
TIMES = {"$created": "created_at", "$updated": "updated_at"}
NUMBERS = {"$size": "size", "$pages": "pages"} | TIMES
FIELDS = TEXTS | NUMBERS
# Fields that the content of a file decides, so that no filter of a key may have them.
OF_CONTENT = frozenset({"$type", "$pages", "$title"})


@dataclass(frozen=True, slots=True)
class OneOf:
    """The field has one of these values."""

    path: str
    values: tuple[FieldValue, ...]


@dataclass(frozen=True, slots=True)
class Within:
    """The field has a value within these bounds, each with its operator; all are of one kind."""

    path: str
    bounds: tuple[tuple[str, FieldValue], ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """The field is there."""

    path: str


@dataclass(frozen=True, slots=True)
class And:
    """Every part holds."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Filter


@dataclass(frozen=True, slots=True)
class Trusted:
    """The part holds by what people and keys have set alone, whatever the properties of the file are."""

    part: Filter


Filter: TypeAlias = OneOf | Within | Exists | And | Or | Not | Trusted


class Filterable(Protocol):
    """What filters look at in a document, besides its built-in fields."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Any JSON object."""

    @property
    def properties(self) -> Mapping[str, Any]:
        """What the file says about itself."""

    @property
    def labels(self) -> Sequence[str]:
        """Its access labels."""


def _bad(why: str) -> BadRequestError:
    return BadRequestError(f"the filter cannot be used: {why}", code="bad_filter")


def read(text: str) -> Filter:
    """The filter of a JSON text; BadRequestError `bad_filter` for one that cannot be used."""
    if len(text) > MOST_TEXT:
        raise _bad(f"it is longer than {MOST_TEXT:,} characters")
    return parse(loads(text))


def loads(text: str) -> Any:
    """The JSON of a filter; a repeated name is refused: JSON would silently drop all but the last."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = dict(pairs)
        if len(names) < len(pairs):
            raise _bad("a name is repeated in one object; combine the conditions with `and`")
        return names

    try:
        return json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise _bad("it is not JSON") from None


def parse(value: object) -> Filter:
    """The filter of a JSON value; BadRequestError `bad_filter` for one that cannot be used."""
    return _Parser().filter(value, 1)


def of_key(value: object) -> Filter:
    """The filter of a key; BadRequestError `bad_filter` if what a file holds could decide who sees it."""
    condition = parse(value)
    for field in sorted(_fields(condition) & OF_CONTENT):
        raise _bad(f"{field} depends on the content of a file, which must not decide who sees it")
    return Trusted(condition)


def _fields(condition: Filter) -> set[str]:
    """The paths that a filter looks at."""
    match condition:
        case And(parts) | Or(parts):
            return {path for part in parts for path in _fields(part)}
        case Not(part) | Trusted(part):
            return _fields(part)
        case Exists(path) | OneOf(path, _) | Within(path, _):
            return {path}


def both(first: Filter | None, second: Filter | None) -> Filter | None:
    """A filter for documents that pass both; None is passed by all."""
    if first is None or second is None:
        return first if second is None else second
    return And((first, second))


class _Parser:
    """Reads one filter, and counts what is in it."""

    def __init__(self) -> None:
        self._conditions = 0
        self._values = 0

    def filter(self, value: object, depth: int) -> Filter:
        if not isinstance(value, dict):
            raise _bad('it must be an object like {"eq": {"author": "Ann"}}')
        if depth > MOST_DEPTH:
            raise _bad(f"it is nested more than {MOST_DEPTH} deep")
        if not value:
            raise _bad(f"an object without an operator; use one of: {', '.join(OPERATORS)}")
        parts: list[Filter] = []
        for name, operand in value.items():
            if name not in OPERATORS:
                raise _bad(f"there is no operator {name!r:.80}; use one of: {', '.join(OPERATORS)}")
            parts.extend(OPERATORS[name](self, operand, depth))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def count(self, *, values: int = 0) -> None:
        self._conditions += 1
        self._values += values
        if self._conditions > MOST_CONDITIONS or self._values > MOST_VALUES:
            raise _bad(f"it has more than {MOST_CONDITIONS} conditions or {MOST_VALUES} values")

    def fields(self, operand: object, operator: str) -> list[tuple[str, Any]]:
        if not isinstance(operand, dict) or not operand:
            raise _bad(f"`{operator}` needs an object of fields")
        return [(_path(name), value) for name, value in operand.items()]

    def eq(self, operand: object, _depth: int) -> Iterable[Filter]:
        for path, value in self.fields(operand, "eq"):
            self.count(values=1)
            yield OneOf(path, (_value(path, value),))

    def one_of(self, operand: object, _depth: int) -> Iterable[Filter]:
        for path, values in self.fields(operand, "in"):
            if not isinstance(values, list):
                raise _bad("`in` needs a list of values for each field")
            self.count(values=len(values))
            yield OneOf(path, tuple(dict.fromkeys(_value(path, each) for each in values)))

    def range(self, operand: object, _depth: int) -> Iterable[Filter]:
        for path, bounds in self.fields(operand, "range"):
            if not isinstance(bounds, dict) or not bounds or not bounds.keys() <= set(BOUNDS):
                raise _bad(f"`range` needs bounds for each field: {', '.join(BOUNDS)}")
            self.count(values=len(bounds))
            limits = tuple((name, _value(path, bounds[name])) for name in BOUNDS if name in bounds)
            kinds = {value.kind for _, value in limits}
            if len(kinds) > 1 or not kinds <= {ValueKind.TEXT, ValueKind.NUMBER}:
                raise _bad("the bounds of a `range` are numbers or texts, not a mixture")
            yield Within(path, limits)

    def exists(self, operand: object, _depth: int) -> Iterable[Filter]:
        self.count()
        yield Exists(_path(operand))

    def every(self, operand: object, depth: int) -> Iterable[Filter]:
        yield And(self._parts(operand, depth, "and"))

    def some(self, operand: object, depth: int) -> Iterable[Filter]:
        yield Or(self._parts(operand, depth, "or"))

    def none(self, operand: object, depth: int) -> Iterable[Filter]:
        self.count()
        yield Not(self.filter(operand, depth + 1))

    def _parts(self, operand: object, depth: int, operator: str) -> tuple[Filter, ...]:
        if not isinstance(operand, list):
            raise _bad(f"`{operator}` needs a list of filters")
        self.count()
        return tuple(self.filter(each, depth + 1) for each in operand)


OPERATORS: Mapping[str, Callable[[_Parser, object, int], Iterable[Filter]]] = {
    "eq": _Parser.eq,
    "in": _Parser.one_of,
    "range": _Parser.range,
    "exists": _Parser.exists,
    "and": _Parser.every,
    "or": _Parser.some,
    "not": _Parser.none,
}


def _path(name: object) -> str:
    if not isinstance(name, str) or not name or len(name) > document_metadata.MOST_PATH or not is_plain(name):
        raise _bad(f"{name!r:.80} is not a field; use names joined by dots")
    if name.startswith(BUILT_IN) and name not in FIELDS and name != LABELS:
        known = ", ".join([*FIELDS, LABELS])
        raise _bad(f"there is no built-in field {name!r:.80}; use one of: {known}")
    return name


def _value(path: str, value: object) -> FieldValue:
    if path in TIMES and isinstance(value, str):
        return field_value(_moment(path, value))
    if isinstance(value, dict | list):
        raise _bad("a field is compared with a text, number, true, false or null")
    try:
        document_metadata.checked({"value": value})
    except BadRequestError as error:
        raise _bad(error.message) from None
    return field_value(value)  # type: ignore[arg-type]  # `checked` leaves nothing else


def _moment(path: str, text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _bad(f"{path} is compared with a time like 2026-01-31T12:00:00Z, not {text!r:.80}") from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def matches(condition: Filter, document: Filterable) -> bool:
    """True if the document passes the filter."""
    fields: dict[str, list[FieldValue]] = {}
    for path, value in document_metadata.values(document.metadata):
        fields.setdefault(path, []).append(value)
    for path, value in document_metadata.file_values(document.properties, document.metadata):
        fields.setdefault(path, []).append(value)
    if document.labels:
        fields[LABELS] = [field_value(each) for each in document.labels]
    for name, attribute in FIELDS.items():
        if (built_in := getattr(document, attribute)) is not None:
            fields[name] = [field_value(built_in)]
    return _holds(condition, fields, trusted=False)


def _holds(condition: Filter, fields: Mapping[str, Sequence[FieldValue]], *, trusted: bool) -> bool:
    match condition:
        case And(parts):
            return all(_holds(each, fields, trusted=trusted) for each in parts)
        case Or(parts):
            return any(_holds(each, fields, trusted=trusted) for each in parts)
        case Not(part):
            return not _holds(part, fields, trusted=trusted)
        case Trusted(part):
            return _holds(part, fields, trusted=True)
        case Exists(path):
            return any(each in fields for each in paths(path, trusted=trusted))
        case OneOf(path, values):
            return any(each in values for each in _at(fields, path, trusted=trusted))
        case Within(path, bounds):
            return any(_is_within(each, bounds) for each in _at(fields, path, trusted=trusted))


def paths(path: str, *, trusted: bool) -> tuple[str, ...]:
    """Where the values of a field are: among the metadata and, if those count, the properties of the file."""
    return (path,) if trusted or path.startswith(BUILT_IN) else (path, f"{FILE}{path}")


def _at(fields: Mapping[str, Sequence[FieldValue]], path: str, *, trusted: bool) -> Iterable[FieldValue]:
    return (value for each in paths(path, trusted=trusted) for value in fields.get(each, ()))


_COMPARE: Mapping[str, Callable[[str, str], bool]] = {
    "gt": lambda value, bound: value > bound,
    "gte": lambda value, bound: value >= bound,
    "lt": lambda value, bound: value < bound,
    "lte": lambda value, bound: value <= bound,
}


def _is_within(value: FieldValue, bounds: Sequence[tuple[str, FieldValue]]) -> bool:
    return all(value.kind is bound.kind and _COMPARE[name](value.text, bound.text) for name, bound in bounds)


@functools.lru_cache(1000)
def restriction(text: str) -> Filter:
    """The filter of a key, from its JSON text; it is used again and again."""
    return of_key(loads(text))
