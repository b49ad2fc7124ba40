"""The parameters of a kind: the JSON Schema that it shows, and what a request gives, checked and complete.

A kind describes them by a JSON Schema, a dataclass or a Pydantic model. What kinds have in common is added
here: `documents` where one reads documents, `provider` and `model` where it asks a model. An error names the
parameter that is wrong.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import pydantic

from holdfast.core import filters
from holdfast.core.errors import BadRequestError
from holdfast.core.text import is_plain
from holdfast.engine.job_specs import ActionSpec, JobSpec, Parameters
from holdfast.kinds import corpus, schemas

DOCUMENTS: Mapping[str, Any] = {
    "type": "array",
    "items": {"type": "string"},
    "minItems": 1,
    "maxItems": corpus.MOST_NAMED,
    "title": "Documents",
    "description": "IDs of documents of the collection. Default: all that are ready.",
}
FILTER: Mapping[str, Any] = {
    "type": "object",
    "title": "Filter",
    "description": 'Only documents that pass it, like {"eq": {"author": "Ann"}}.',
}
MODEL: Mapping[str, Any] = {
    "provider": {
        "type": "string",
        "maxLength": corpus.MOST_NAME,
        "title": "Provider",
        "description": "The name of a provider in the settings file. Default: HOLDFAST_LLM_PROVIDER.",
    },
    "model": {
        "type": "string",
        "maxLength": corpus.MOST_NAME,
        "title": "Model",
        "description": "Default: the provider's default model.",
    },
}
KEPT: Mapping[str, Any] = {
    "quiet_seconds": {
        "type": "number",
        "minimum": 1,
        "maximum": 86_400,
        "default": 60,
        "title": "Quiet time, in seconds",
        "description": "It runs when nothing has changed for so long, at the latest after ten times that.",
    },
    "max_cost": {
        "type": "number",
        "minimum": 0,
        "maximum": 1_000_000,
        "title": "Cost limit of each run (US$)",
    },
}


def schema(spec: JobSpec | ActionSpec) -> dict[str, Any]:
    """The JSON Schema of everything that a request may set."""
    own = schema_of(spec.parameters or {})
    properties = {**own.get("properties", {}), **_shared(spec)}
    return {**own, "type": "object", "properties": properties, "additionalProperties": False}


def schema_of(form: Parameters) -> dict[str, Any]:
    """The JSON Schema of a schema, a dataclass or a Pydantic model."""
    return _adapter(form).json_schema() if isinstance(form, type) else dict(form)


def fields(spec: JobSpec | ActionSpec) -> dict[str, Mapping[str, Any]]:
    """What a person may set in a form or on a command line, by name; references are followed."""
    whole = schema(spec)
    return {name: _plain_field(each, whole) for name, each in whole["properties"].items()}


def checked(spec: JobSpec | ActionSpec, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with their defaults; BadRequestError, which names the first that is wrong."""
    shared = _shared(spec)
    own_schema = schema_of(spec.parameters or {})
    corpus.known(params, *own_schema.get("properties", {}), *shared)
    for name, value in params.items():
        if not all(map(is_plain, _texts(value))):
            raise corpus.bad(name, "text without NUL bytes and lone surrogates")
    own = {name: value for name, value in params.items() if name not in shared}
    complete = _own(spec.parameters or {}, own_schema, own)
    if spec.check is not None:
        complete = spec.check(complete)
    named: dict[str, Any] = {}
    if "documents" in shared:
        documents = corpus.named(params)
        named["documents"] = None if documents is None else list(documents)
    if "filter" in shared and params.get("filter") is not None:
        filters.parse(params["filter"])
        named[corpus.DOCUMENT_FILTER] = params["filter"]
    named |= _kept(params) if "quiet_seconds" in shared else {}
    return {**named, **complete, **(corpus.model_named(params) if "model" in shared else {})}


def _kept(params: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: params[name] for name in KEPT if params.get(name) is not None}
    return _own({}, {"type": "object", "properties": KEPT}, own)


def of_job(options: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the job that an action with these options keeps up to date, as a request has them."""
    apart = {*KEPT, "sort", corpus.DOCUMENT_FILTER}
    params = {name: value for name, value in options.items() if name not in apart}
    chosen = options.get(corpus.DOCUMENT_FILTER)
    return params if chosen is None else {**params, "filter": chosen}


def check_form(form: Parameters | None) -> None:
    """Return if parameters, or results, can be described by `form`; otherwise BadRequestError."""
    if form is None:
        return
    if isinstance(form, type):
        try:
            described = _adapter(form).json_schema()
        except (pydantic.PydanticUserError, pydantic.PydanticSchemaGenerationError) as error:
            message = f"{form.__name__} is neither a dataclass nor a Pydantic model ({error.message})"
            raise BadRequestError(message, code="bad_kind") from error
        if described.get("type") != "object":
            raise BadRequestError(f"{form.__name__} does not describe an object", code="bad_kind")
    elif form.get("properties"):
        schemas.checked(dict(form))
    elif form.get("type") != "object":
        raise BadRequestError('a schema of parameters must have "type": "object"', code="bad_kind")


def _shared(spec: JobSpec | ActionSpec) -> dict[str, Any]:
    shared: dict[str, Any] = {}
    job = spec if isinstance(spec, JobSpec) else spec.keeps
    if job is not None and job.reads_documents:
        # A kind's own parameter of this name stays what it is.
        is_free = "filter" not in schema_of(spec.parameters or {}).get("properties", {})
        shared = {"documents": DOCUMENTS} | ({"filter": FILTER} if is_free else {})
    if isinstance(spec, ActionSpec) and job is not None:
        shared.pop("documents", None)  # it is about the collection as it will be
        shared |= KEPT
    return {**shared, **(MODEL if spec.asks_model else {})}


@functools.cache
def _adapter(form: type) -> pydantic.TypeAdapter[Any]:
    return pydantic.TypeAdapter(form)


def _own(form: Parameters, own_schema: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(form, type):
        try:
            value = _adapter(form).validate_python(dict(params), strict=False)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"])) or "parameters"
            raise BadRequestError(f"{where}: {first['msg']}", code="bad_params") from error
        complete: dict[str, Any] = _adapter(form).dump_python(value, mode="json")
        return complete
    properties = own_schema.get("properties", {})
    defaults = {name: each["default"] for name, each in properties.items() if "default" in each}
    complete = {**defaults, **params}
    if wrong := schemas.faults(complete, own_schema):
        # The checker speaks of a model's answer; here the fields are parameters.
        raise BadRequestError(wrong[0].removeprefix("answer."), code="bad_params")
    return {name: _whole(value, properties.get(name, {})) for name, value in complete.items()}


def _whole(value: Any, form: Mapping[str, Any]) -> Any:
    """3.0 is a whole number in JSON: it is frozen as 3, so that both are the same request."""
    return int(value) if form.get("type") == "integer" and isinstance(value, float) else value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield name
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _plain_field(form: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """The field as a form shows it: a reference followed, and of "this or nothing" the this."""
    if "$ref" in form:
        inner = whole.get("$defs", {}).get(str(form["$ref"]).rpartition("/")[2], {})
        return {**inner, **{name: each for name, each in form.items() if name != "$ref"}}
    options = [each for each in form.get("anyOf", ()) if each.get("type") != "null"]
    if len(options) == 1:
        outer = {name: each for name, each in form.items() if name != "anyOf"}
        return {**_plain_field(options[0], whole), **outer}
    return form
