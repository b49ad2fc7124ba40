"""A filter as a condition over `documents`, the same on both databases.

Built-in fields are columns of the document. Every other field is looked up in `document_values`, whose index
leads straight to the documents that have a value; a statement that uses such a condition binds `tenant` and
`collection`. Statements are cached by the shape of the filter, which has everything but its values.
"""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Double,
    Text,
    and_,
    bindparam,
    cast,
    false,
    func,
    literal_column,
    not_,
    or_,
    select,
    true,
)

from holdfast.core import filters
from holdfast.core.document_metadata import FieldValue, ValueKind
from holdfast.core.filters import And, Exists, Filter, Not, OneOf, Or, Trusted, Within
from holdfast.store.base.dialect import KeyList, bytewise, key_in
from holdfast.store.base.schema import document_values, documents

Shape: TypeAlias = tuple[Any, ...]
EVERYTHING: Shape = ("and", ())


class Prepared(NamedTuple):
    """The shape of a filter, and the values to bind."""

    shape: Shape
    values: dict[str, Any]


def prepared(condition: Filter | None) -> Prepared:
    """The filter in the form that statements take; everything passes None."""
    if condition is None:
        return Prepared(EVERYTHING, {})
    values: dict[str, Any] = {}
    return Prepared(_shape(condition, values), values)


def _shape(condition: Filter, values: dict[str, Any], *, trusted: bool = False) -> Shape:
    match condition:
        case And(parts):
            return "and", tuple(_shape(each, values, trusted=trusted) for each in parts)
        case Or(parts):
            return "or", tuple(_shape(each, values, trusted=trusted) for each in parts)
        case Not(part):
            return "not", _shape(part, values, trusted=trusted)
        case Trusted(part):
            return _shape(part, values, trusted=True)
        case Exists(path):
            if path in filters.FIELDS:
                return "exists", path
            return "exists", None, _paths(path, values, trusted=trusted)
        case OneOf(path, options):
            return _one_of(path, options, values, trusted=trusted)
        case Within(path, bounds):
            return _within(path, bounds, values, trusted=trusted)


def _paths(path: str, values: dict[str, Any], *, trusted: bool) -> tuple[str, ...]:
    return tuple(_bound(values, each) for each in filters.paths(path, trusted=trusted))


def _bound(values: dict[str, Any], value: Any) -> str:
    name = f"f{len(values)}"
    values[name] = value
    return name


def _one_of(path: str, options: tuple[FieldValue, ...], values: dict[str, Any], *, trusted: bool) -> Shape:
    if path in filters.FIELDS:
        kind = ValueKind.TEXT if path in filters.TEXTS else ValueKind.NUMBER
        fitting = tuple(
            _bound(values, each.text if kind is ValueKind.TEXT else each.number)
            for each in options
            if each.kind is kind
        )
        return "or", tuple(("compare", path, (("eq", name),)) for name in fitting)
    keys: dict[ValueKind, list[str]] = {}
    for each in options:
        if each.whole is None:
            keys.setdefault(each.kind, []).append(each.key)
    at = _paths(path, values, trusted=trusted)
    short = tuple((_bound(values, kind.value), _bound(values, some)) for kind, some in keys.items())
    long = tuple(
        (_bound(values, each.key), _bound(values, each.whole)) for each in options if each.whole is not None
    )
    return "one_of", at, short, long


def _within(
    path: str, bounds: tuple[tuple[str, FieldValue], ...], values: dict[str, Any], *, trusted: bool
) -> Shape:
    kind = bounds[0][1].kind
    if path in filters.FIELDS:
        if (kind is ValueKind.TEXT) is not (path in filters.TEXTS):
            return "or", ()
        is_text = kind is ValueKind.TEXT
        limits = tuple((name, _bound(values, each.text if is_text else each.number)) for name, each in bounds)
        return "compare", path, limits
    ends = tuple((name, _bound(values, each.key), _bound(values, each.text)) for name, each in bounds)
    return "within", _paths(path, values, trusted=trusted), _bound(values, kind.value), ends


@functools.lru_cache(256)
def condition(shape: Shape) -> ColumnElement[bool]:
    """The condition that a filter of this shape puts on `documents`."""
    match shape:
        case ("and", parts):
            return and_(true(), *map(condition, parts))
        case ("or", parts):
            return or_(false(), *map(condition, parts))
        case ("not", part):
            return not_(condition(part))
        case ("exists", None, paths):
            return _having(paths)
        case ("exists", field):
            return _column(field).is_not(None)
        case ("compare", field, limits):
            return _compared(field, limits)
        case ("one_of", paths, short, long):
            return _having(paths, or_(false(), *map(_among, short), *map(_same, long)))
        case ("within", paths, kind, limits):
            tests = [each for limit in limits for each in _limited(*limit)]
            return _having(paths, _values.kind == bindparam(kind, type_=Text()), *tests)
    raise ValueError(f"not the shape of a filter: {shape!r}")


_values = document_values.c


def _having(paths: tuple[str, ...], *tests: ColumnElement[bool]) -> ColumnElement[bool]:
    """The document has a value at one of these paths that passes all tests."""
    places = [bindparam(path, type_=Text()) for path in paths]
    documents_with = select(_values.document).where(
        _values.tenant == bindparam("tenant"),
        _values.collection == bindparam("collection"),
        _values.path == places[0] if len(places) == 1 else _values.path.in_(places),
        *tests,
    )
    return documents.c.id.in_(documents_with)


def _among(names: tuple[str, str]) -> ColumnElement[bool]:
    kind, keys = names
    return and_(
        _values.kind == bindparam(kind, type_=Text()),
        key_in(_values.key, bindparam(keys, type_=KeyList())),
        _values.whole.is_(None),
    )


def _same(names: tuple[str, str]) -> ColumnElement[bool]:
    key, whole = names
    return and_(
        _values.kind == literal_column(f"'{ValueKind.TEXT.value}'"),
        _values.key == bindparam(key, type_=Text()),
        _values.whole == bindparam(whole, type_=Text()),
    )


def _limited(name: str, key: str, text: str) -> list[ColumnElement[bool]]:
    """The index finds a range by the beginnings of texts; then the texts themselves are compared."""
    begins, whole = bindparam(key, type_=Text()), bindparam(text, type_=Text())
    compared = func.coalesce(_values.whole, _values.key)
    near = _values.key >= begins if name.startswith("g") else _values.key <= begins
    return [near, _OPERATORS[name](compared, whole)]


_OPERATORS: Mapping[str, Any] = {
    "eq": lambda left, right: left == right,
    "gt": lambda left, right: left > right,
    "gte": lambda left, right: left >= right,
    "lt": lambda left, right: left < right,
    "lte": lambda left, right: left <= right,
}


def _column(field: str) -> ColumnElement[Any]:
    return documents.c[filters.FIELDS[field]]


def _compared(field: str, limits: tuple[tuple[str, str], ...]) -> ColumnElement[bool]:
    """A column compared; with NULL the result is false, so that its negation is true."""
    column = _column(field)
    if field in filters.TEXTS:
        tests = [
            _OPERATORS[name](column if name == "eq" else bytewise(column), bindparam(bound, type_=Text()))
            for name, bound in limits
        ]
    else:
        tests = [
            _OPERATORS[name](cast(column, Double), bindparam(bound, type_=Double())) for name, bound in limits
        ]
    return and_(column.is_not(None), *tests)
