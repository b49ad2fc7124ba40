"""JSON Schema as `extract` takes it: `checked` refuses what cannot be kept, `faults` tests an answer.

`jsonschema` does the testing. A schema comes from a stranger and an answer from a model, so what the library
leaves open is bounded here: a reference leads into the schema itself, a pattern is matched by the regular
expressions of Pydantic (linear time, no look-around), and the steps of one test are counted. A keyword that
would be ignored is refused: its author expects it to be enforced.
"""

import datetime as dt
import ipaddress
import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import pydantic_core
from pydantic_core import core_schema

from holdfast.core import keys
from holdfast.core.errors import BadRequestError
from holdfast.extras import LazyModule

if TYPE_CHECKING:
    import jsonschema
else:
    jsonschema = LazyModule("jsonschema")

MOST_BYTES = 32 * 1024
MOST_DEPTH = 8
MOST_PROPERTIES = 200
MOST_PATTERNS = 20
MOST_PATTERN = 500
MOST_MATCHED = 10_000  # characters of a text with a pattern
MOST_FAULTS = 10
MOST_STEPS = 100_000  # of one test: one to two seconds

TYPES = ("object", "array", "string", "boolean", "null", "number", "integer")
# What a failed keyword says; the others are in `_sentence`.
SENTENCES: dict[str, str] = {
    "const": "must be {value}",
    "enum": "must be one of {value}",
    "exclusiveMaximum": "must be less than {value}",
    "exclusiveMinimum": "must be more than {value}",
    "format": "must be a {value}",
    "maximum": "must be at most {value}",
    "maxItems": "must have at most {value} items",
    "maxLength": "must have at most {value} characters",
    "maxProperties": "must have at most {value} fields",
    "minimum": "must be at least {value}",
    "minItems": "must have at least {value} items",
    "minLength": "must have at least {value} characters",
    "minProperties": "must have at least {value} fields",
    "multipleOf": "must be a multiple of {value}",
    "not": "must not match {value}",
    "oneOf": "must match exactly one of {value}",
    "pattern": "must match the pattern {value}",
    "uniqueItems": "must not have the same item twice",
}
_NOTES = "title description default examples deprecated readOnly writeOnly discriminator $schema $id $comment"
NOTES = frozenset(_NOTES.split())
# By keyword, where schemas stand in its value.
ONE = frozenset({"items", "additionalProperties", "propertyNames", "not"})
LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
NAMED = frozenset({"properties", "$defs", "definitions"})
# These test the same value again; a reference that comes back by them alone would never end.
SAME_VALUE = frozenset({"anyOf", "oneOf", "allOf", "not"})
OURS = frozenset({"$ref", "pattern", "format", "required", "uniqueItems"})
LIBRARY = (SENTENCES.keys() | ONE | LISTS | {"type", "properties"}) - OURS
KNOWN = NOTES | NAMED | LIBRARY | OURS

# As Pydantic writes a Decimal: not nothing but signs and points.
_NO_MATCH_FIRST = re.compile(r"\^\(\?!([^()]*)\)(.*)", re.DOTALL)
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s.]{1,63}(?:\.[^@\s.]{1,63}){1,8}")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:[^\s]{1,4000}")
_DURATION = re.compile(
    r"-?P(?=.)(?:\d{1,9}Y)?(?:\d{1,9}M)?(?:\d{1,9}W)?(?:\d{1,9}D)?"
    r"(?:T(?=.)(?:\d{1,9}H)?(?:\d{1,9}M)?(?:\d{1,9}(?:\.\d{1,9})?S)?)?"
)
FORMATS: dict[str, Callable[[str], object]] = {
    "date": lambda text: len(text) == len("2026-11-15") and dt.date.fromisoformat(text),
    "date-time": lambda text: "T" in text.upper() and dt.datetime.fromisoformat(text),
    "time": dt.time.fromisoformat,
    "duration": _DURATION.fullmatch,
    "email": _EMAIL.fullmatch,
    "uri": _URI.fullmatch,
    "uuid": lambda text: len(text) == len(str(uuid.NAMESPACE_DNS)) and uuid.UUID(text),
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
}

_steps_left: ContextVar[list[int]] = ContextVar("steps_left")


class _TooManyStepsError(Exception):
    """A test took more than MOST_STEPS."""


def checked(schema: object) -> dict[str, Any]:
    """The schema of an object, if every keyword of it is understood; otherwise BadRequestError.

    A schema that is a reference to one of its own definitions (Pydantic writes so for a model that contains
    itself) comes back as that definition.
    """
    if isinstance(schema, dict) and isinstance(schema.get("$ref"), str) and "properties" not in schema:
        definition = _definitions(schema).get(schema["$ref"])
        if isinstance(definition, dict):
            schema = {**{name: value for name, value in schema.items() if name != "$ref"}, **definition}
    if not isinstance(schema, dict) or schema.get("type") != "object" or not schema.get("properties"):
        raise _bad('it must be an object with "type": "object" and its "properties"')
    if len(keys.canonical(schema).encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise _bad(f"it is larger than {MOST_BYTES} bytes")
    layers = list(_walk(schema, "schema", MOST_DEPTH))
    for where, layer in layers:
        types = layer.get("type", [])
        if any(each not in TYPES for each in (types if isinstance(types, list) else [types])):
            raise _bad(f"{where}.type must be one of {', '.join(TYPES)}, or a list of them")
    if (error := jsonschema.exceptions.best_match(_specification().iter_errors(schema))) is not None:
        raise _bad(_sentence(error, "schema"))
    patterns: set[str] = set()
    for where, layer in layers:
        _check(layer, where, schema, patterns)
    _check_ends(schema)
    return schema


def _bad(what: str) -> BadRequestError:
    return BadRequestError(f"the schema cannot be used: {what}", code="bad_schema")


@cache
def _specification() -> Any:
    """What every schema must follow. Its own patterns are simple, its references included."""
    return jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)


def _definitions(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions of a schema by the reference that leads to each."""
    return {
        f"#/{word}/{name}": definition
        for word in ("$defs", "definitions")
        if isinstance(schema.get(word), dict)
        for name, definition in schema[word].items()
    }


def _walk(schema: object, where: str, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema within a schema, itself first, and where it stands."""
    if not isinstance(schema, dict):
        raise _bad(f"{where} is not an object")
    if not depth:
        raise _bad(f"{where} is nested deeper than {MOST_DEPTH}")
    yield where, schema
    for word, inner in _inner(schema, where):
        yield from _walk(inner, word[:200], depth - 1)


def _inner(schema: Mapping[str, Any], where: str) -> Iterator[tuple[str, object]]:
    for word in schema:
        value = schema[word]
        if word in ONE and not (word == "additionalProperties" and isinstance(value, bool)):
            yield f"{where}.{word}", value
        elif word in LISTS and isinstance(value, list):
            yield from ((f"{where}.{word}[{number}]", inner) for number, inner in enumerate(value))
        elif word in NAMED and isinstance(value, dict):
            prefix = where if word == "properties" else f"{where}.{word}"
            yield from ((f"{prefix}.{name}", inner) for name, inner in value.items())


def _check(schema: dict[str, Any], where: str, root: Mapping[str, Any], patterns: set[str]) -> None:
    if unknown := sorted(set(schema) - KNOWN):
        raise _bad(
            f"{where} has {unknown[0]!r}, which is not supported; known are {', '.join(sorted(KNOWN))}"
        )
    if schema is not root and not {"$defs", "definitions"}.isdisjoint(schema):
        raise _bad(f"{where} has definitions; they belong to the outermost schema")
    if len(schema.get("properties") or ()) > MOST_PROPERTIES:
        raise _bad(f"{where}.properties must be an object of at most {MOST_PROPERTIES} fields")
    reference = schema.get("$ref")
    if reference is not None and reference not in _definitions(root):
        raise _bad(f"{where}.$ref must refer to a definition of this schema, like '#/$defs/NAME'")
    if "enum" in schema and not schema["enum"]:
        raise _bad(f"{where}.enum must be a list of values")
    if "format" in schema and schema["format"] not in FORMATS:
        raise _bad(f"{where}.format must be one of {', '.join(sorted(FORMATS))}")
    if isinstance(schema.get("pattern"), str):
        patterns.add(schema["pattern"])
        _check_pattern(schema["pattern"], where, len(patterns))


def _check_pattern(pattern: str, where: str, number: int) -> None:
    if number > MOST_PATTERNS or len(pattern) > MOST_PATTERN:
        raise _bad(
            f"{where}.pattern is over the limit of {MOST_PATTERNS} patterns of {MOST_PATTERN} characters"
        )
    try:
        _matcher(pattern)
    except pydantic_core.SchemaError as error:
        reason = str(error).rstrip(".").rpartition("error: ")[2].splitlines()[-1].strip()
        raise _bad(f"{where}.pattern cannot be matched in bounded time: {reason}") from error


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> Callable[[str], bool]:
    """A question whether a text has a match, in time linear in the text; SchemaError for what cannot be."""
    if (parts := _NO_MATCH_FIRST.fullmatch(pattern)) is not None:
        unwanted, rest = _matcher(f"^(?:{parts[1]})"), _matcher(f"^{parts[2]}")
        return lambda text: rest(text) and not unwanted(text)
    validator = pydantic_core.SchemaValidator(core_schema.str_schema(pattern=pattern))
    return validator.isinstance_python


def _check_ends(root: Mapping[str, Any]) -> None:
    """Every chain of references comes to an end before the same value is tested by one of them again."""
    definitions = _definitions(root)
    finished: set[str] = set()

    def visit(schema: object, on_the_way: tuple[str, ...]) -> None:
        if not isinstance(schema, dict):
            return
        reference = schema.get("$ref")
        if reference in on_the_way:
            raise _bad(f"{reference} refers to itself endlessly")
        if reference is not None and reference not in finished:
            visit(definitions[reference], (*on_the_way, reference))
            finished.add(reference)
        for word in SAME_VALUE & schema.keys():
            for inner in schema[word] if isinstance(schema[word], list) else [schema[word]]:
                visit(inner, on_the_way)

    for reference, definition in definitions.items():
        visit(definition, (reference,))
        finished.add(reference)


def without_required(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same schema, where any field of the outermost object may be missing."""
    return {name: value for name, value in schema.items() if name != "required"}


def allows_null(name: str, schema: Mapping[str, Any]) -> bool:
    """True when a field of the outermost object may be null."""
    field = schema["properties"].get(name)
    if field is None:
        return False
    return not faults(
        None, {"$defs": schema.get("$defs", {}), "definitions": schema.get("definitions", {}), **field}
    )


def faults(value: object, schema: Mapping[str, Any]) -> list[str]:
    """What is wrong with `value` by a checked schema, in words for a model; empty when nothing is."""
    _steps_left.set([MOST_STEPS])
    try:
        errors = islice(_tester(keys.canonical(dict(schema))).iter_errors(value), MOST_FAULTS)
        return [_sentence(error, "answer") for error in errors]
    except (_TooManyStepsError, RecursionError):
        return ["answer is too large or too deeply nested to be checked against the schema"]
    except OverflowError:
        return ["answer has a number that is too large"]


@lru_cache(maxsize=32)
def _tester(text: str) -> Any:
    """The validator for a schema in its canonical spelling."""
    schema = json.loads(text)
    library = jsonschema.Draft202012Validator.VALIDATORS
    ours = {
        "$ref": partial(_follow, {name: _bare(each) for name, each in _definitions(schema).items()}),
        "pattern": _match,
        "format": _test_format,
        "required": _test_required,
        "uniqueItems": _test_unique,
    }
    rules = {
        word: _counted(rule) for word, rule in {**{word: library[word] for word in LIBRARY}, **ours}.items()
    }
    # `extend` and `$schema` would bring rules back that are left out here.
    validator = jsonschema.validators.create(
        meta_schema={}, validators=rules, type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER
    )
    return validator(_bare(schema))


def _bare(schema: Any) -> Any:
    """The schema without notes and definitions: `$id` and `$schema` would change how the rest is read."""
    bare: dict[str, Any] = {}
    for word, value in schema.items():
        if word in ONE and isinstance(value, dict):
            bare[word] = _bare(value)
        elif word in LISTS:
            bare[word] = [_bare(each) for each in value]
        elif word == "properties":
            bare[word] = {name: _bare(each) for name, each in value.items()}
        elif word not in NOTES | NAMED:
            bare[word] = value
    return bare


Rule = Callable[[Any, Any, Any, Mapping[str, Any]], Iterator[Any] | None]


def _counted(rule: Rule) -> Rule:
    def counted(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        _count(1 + (len(value) if isinstance(value, list) else 0))
        yield from rule(validator, value, instance, schema) or ()

    return counted


def _count(steps: int) -> None:
    left = _steps_left.get()
    left[0] -= steps
    if left[0] < 0:
        raise _TooManyStepsError


def _follow(
    definitions: Mapping[str, Any], validator: Any, reference: str, instance: Any, _schema: Any
) -> Any:
    return validator.descend(instance, definitions[reference])


def _match(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(instance, str):
        _count(min(len(instance), MOST_MATCHED))
        if len(instance) > MOST_MATCHED or not _matcher(pattern)(instance):
            yield jsonschema.ValidationError("pattern")


def _test_format(_validator: Any, form: str, instance: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(instance, str):
        try:
            fits = bool(FORMATS[form](instance))
        except ValueError:
            fits = False
        if not fits:
            yield jsonschema.ValidationError("format")


def _test_required(_validator: Any, names: list[str], instance: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(instance, dict):
        yield from (jsonschema.ValidationError(name) for name in names if name not in instance)


def _test_unique(_validator: Any, unique: bool, instance: Any, _schema: Any) -> Iterator[Any]:
    if unique and isinstance(instance, list):
        _count(len(instance))
        if len({keys.canonical(each) for each in instance}) < len(instance):
            yield jsonschema.ValidationError("uniqueItems")


def _sentence(error: Any, start: str) -> str:
    """What is wrong, and where, in words that a model can follow."""
    error = _most_relevant(error)
    where = start + "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path
    )
    word, value = error.validator, error.validator_value
    match word:
        case "type":
            return f"{where} must be of type {' or '.join([value] if isinstance(value, str) else value)}"
        case "required":
            return f"{where}.{error.message} is required"
        case "additionalProperties":
            more = sorted(set(error.instance) - set(error.schema.get("properties", {})))
            return f"{where} must not have {', '.join(more)[:200]}"
        case "anyOf":
            return f"{where} must match one of {keys.canonical(value)[:300]}"
    spelled = value if isinstance(value, str) else keys.canonical(value)
    return f"{where} {SENTENCES.get(word, 'does not fit').format(value=spelled[:300])}"


def _most_relevant(error: Any) -> Any:
    """The error to report.

    Of a union whose branches are told apart by a constant field (a discriminator), only the branch that the
    value chose counts: "shape.radius must be …", not "shape must match one of …".
    """
    branches: dict[object, list[Any]] = {}
    for each in error.context:
        branches.setdefault(each.schema_path[0], []).append(each)
    chosen = [errors for errors in branches.values() if not any(map(_is_other_tag, errors))]
    if len(chosen) != 1 or len(branches) == 1:
        return jsonschema.exceptions.best_match([error])
    return _most_relevant(max(chosen[0], key=jsonschema.exceptions.relevance))


def _is_other_tag(error: Any) -> bool:
    return error.validator in {"const", "enum"} and len(error.relative_path) == 1
