"""The part of JSON Schema that `extract` understands: `checked` refuses the rest, `faults` tests an answer.

A schema comes from a stranger and an answer from a model, so nothing here follows a reference, fetches an
address or runs a pattern (a pattern can be made to run for hours). A word that would be ignored is refused:
whoever wrote it believes that it is kept.
"""

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.core import keys
from holdfast.core.errors import BadRequestError

MOST_BYTES = 32 * 1024
MOST_DEPTH = 8
MOST_PROPERTIES = 200
MOST_FAULTS = 10

NOTES = frozenset({"title", "description", "default", "examples", "$schema", "$id", "$comment"})
BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
LENGTHS = frozenset({"minLength", "maxLength", "minItems", "maxItems"})
PARTS = frozenset({"type", "enum", "const", "format", "properties", "required", "additionalProperties"})
KNOWN = NOTES | BOUNDS | LENGTHS | PARTS | {"items", "uniqueItems"}
FORMATS = frozenset({"date", "date-time", "email", "uri"})
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s.]{1,63}(?:\.[^@\s.]{1,63}){1,8}")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:[^\s]{1,4000}")

TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool))
        or (isinstance(value, float) and value.is_integer())
    ),
}


def checked(schema: object) -> dict[str, Any]:
    """The schema of an object, if every word of it is understood; otherwise BadRequestError."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or not schema.get("properties"):
        raise _bad('it must be an object with "type": "object" and its "properties"')
    if len(keys.canonical(schema).encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise _bad(f"it is larger than {MOST_BYTES} bytes")
    _check(schema, "schema", MOST_DEPTH)
    return schema


def _bad(what: str) -> BadRequestError:
    return BadRequestError(f"the schema cannot be used: {what}", code="bad_schema")


def _check(schema: object, where: str, depth: int) -> None:
    if not isinstance(schema, dict):
        raise _bad(f"{where} is not an object")
    if not depth:
        raise _bad(f"{where} is nested deeper than {MOST_DEPTH}")
    if unknown := sorted(set(schema) - KNOWN):
        raise _bad(
            f"{where} has {unknown[0]!r}, which is not supported; known are {', '.join(sorted(KNOWN))}"
        )
    _check_values(schema, where)
    properties = schema.get("properties", {})
    if not isinstance(properties, dict) or len(properties) > MOST_PROPERTIES:
        raise _bad(f"{where}.properties must be an object of at most {MOST_PROPERTIES} fields")
    for name, inner in properties.items():
        _check(inner, f"{where}.{name}"[:200], depth - 1)
    if "items" in schema:
        _check(schema["items"], f"{where}.items"[:200], depth - 1)


def _check_values(schema: Mapping[str, Any], where: str) -> None:
    sorts = schema.get("type", [])
    for sort in sorts if isinstance(sorts, list) else [sorts]:
        if not isinstance(sort, str) or sort not in TYPES:
            raise _bad(f"{where}.type must be one of {', '.join(TYPES)}, or a list of them")
    for name in sorted(BOUNDS & schema.keys()):
        if not TYPES["number"](schema[name]):
            raise _bad(f"{where}.{name} must be a number")
    for name in sorted(LENGTHS & schema.keys()):
        if type(schema[name]) is not int or schema[name] < 0:
            raise _bad(f"{where}.{name} must be a whole number from 0")
    for name in sorted({"additionalProperties", "uniqueItems"} & schema.keys()):
        if not isinstance(schema[name], bool):
            raise _bad(f"{where}.{name} must be true or false")
    _check_lists(schema, where)


def _check_lists(schema: Mapping[str, Any], where: str) -> None:
    if "enum" in schema and (not isinstance(schema["enum"], list) or not schema["enum"]):
        raise _bad(f"{where}.enum must be a list of values")
    if "format" in schema and schema["format"] not in FORMATS:
        raise _bad(f"{where}.format must be one of {', '.join(sorted(FORMATS))}")
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise _bad(f"{where}.required must be a list of names")


def without_required(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same schema, where any field of the outermost object may be missing."""
    return {name: value for name, value in schema.items() if name != "required"}


def faults(value: object, schema: Mapping[str, Any]) -> list[str]:
    """What is wrong with `value` by a checked schema, in words for a model; empty when nothing is."""
    found: list[str] = []
    _test(value, schema, "answer", found)
    return found[:MOST_FAULTS]


def _test(value: Any, schema: Mapping[str, Any], where: str, found: list[str]) -> None:
    if len(found) >= MOST_FAULTS:
        return
    sorts = schema.get("type")
    wanted = sorts if isinstance(sorts, list) else [sorts] if sorts else []
    if wanted and not any(TYPES[sort](value) for sort in wanted):
        found.append(f"{where} must be of type {' or '.join(wanted)}")
        return
    if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
        found.append(f"{where} must be one of {keys.canonical(schema['enum'])[:300]}")
    if "const" in schema and not _same(value, schema["const"]):
        found.append(f"{where} must be {keys.canonical(schema['const'])[:300]}")
    if isinstance(value, dict):
        _test_object(value, schema, where, found)
    elif isinstance(value, list):
        _test_list(value, schema, where, found)
    elif isinstance(value, str):
        _test_text(value, schema, where, found)
    elif TYPES["number"](value):
        _test_number(value, schema, where, found)


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _test_object(value: Mapping[str, Any], schema: Mapping[str, Any], where: str, found: list[str]) -> None:
    properties: Mapping[str, Any] = schema.get("properties", {})
    found += [f"{where}.{name} is required" for name in schema.get("required", []) if name not in value]
    if schema.get("additionalProperties") is False and (more := sorted(set(value) - set(properties))):
        found.append(f"{where} must not have {', '.join(more)[:200]}")
    for name, inner in properties.items():
        if name in value:
            _test(value[name], inner, f"{where}.{name}", found)


def _test_list(value: Sequence[Any], schema: Mapping[str, Any], where: str, found: list[str]) -> None:
    _test_length(len(value), schema, ("minItems", "maxItems"), f"{where} must have", "items", found)
    if schema.get("uniqueItems") and len({keys.canonical(each) for each in value}) < len(value):
        found.append(f"{where} must not have the same item twice")
    if "items" in schema:
        for number, each in enumerate(value):
            _test(each, schema["items"], f"{where}[{number}]", found)


def _test_text(value: str, schema: Mapping[str, Any], where: str, found: list[str]) -> None:
    _test_length(len(value), schema, ("minLength", "maxLength"), f"{where} must have", "characters", found)
    form = schema.get("format")
    if form is not None and not _has_form(value, form):
        found.append(f"{where} must be a {form}")


def _has_form(value: str, form: str) -> bool:
    try:
        if form == "date":
            return bool(dt.date.fromisoformat(value)) and len(value) == len("2026-11-15")
        if form == "date-time":
            return bool(dt.datetime.fromisoformat(value)) and "T" in value.upper()
    except ValueError:
        return False
    return bool((_EMAIL if form == "email" else _URI).fullmatch(value))


def _test_number(value: float, schema: Mapping[str, Any], where: str, found: list[str]) -> None:
    rules: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
        ("minimum", "at least", lambda bound, given: given >= bound),
        ("maximum", "at most", lambda bound, given: given <= bound),
        ("exclusiveMinimum", "more than", lambda bound, given: given > bound),
        ("exclusiveMaximum", "less than", lambda bound, given: given < bound),
    )
    found += [
        f"{where} must be {words} {schema[name]}"
        for name, words, holds in rules
        if name in schema and not holds(schema[name], value)
    ]


def _test_length(
    length: int, schema: Mapping[str, Any], names: tuple[str, str], opening: str, unit: str, found: list[str]
) -> None:
    least, most = (schema.get(name) for name in names)
    if least is not None and length < least:
        found.append(f"{opening} at least {least} {unit}")
    if most is not None and length > most:
        found.append(f"{opening} at most {most} {unit}")
