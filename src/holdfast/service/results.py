"""The results of a job as its kind describes them: one as JSON, all as a table."""

from collections.abc import Mapping
from typing import Any

from holdfast.engine.job_specs import JobSpec
from holdfast.kinds import parameters
from holdfast.service.jobs import JobView
from holdfast.store.jobs.job_results import StoredResult

PLACE = ("document_id", "generation", "page", "chunk")
"""Where each result comes from, before what the kind itself says."""


def place(result: StoredResult) -> dict[str, Any]:
    """Where the result comes from."""
    return dict(zip(PLACE, (result.document, result.source, result.page, result.chunk), strict=True))


def shape(spec: JobSpec, result: StoredResult) -> dict[str, Any]:
    """The result as JSON: what its kind says of it, where it comes from, and why there is none."""
    defaults = {name: each.get("default") for name, each in _properties(spec).items()}
    data = {name: value for name, value in result.data.items() if name != "error"}
    return {**defaults, **data, **place(result), "error": result.data.get("error")}


def row(spec: JobSpec, options: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """What the kind says of one result, by column; of no data, the columns."""
    if spec.table is not None:
        return dict(spec.table(options, data))
    names = _properties(spec)
    return {name: data.get(name) for name in names} if names else {"data": dict(data) or None}


def columns(view: JobView) -> list[str]:
    """The columns of the results as a table."""
    return [*row(view.spec, view.job.options, {}), *PLACE, "error"]


def cells(view: JobView, result: StoredResult) -> list[Any]:
    """A result as a row of that table."""
    own = row(view.spec, view.job.options, result.data)
    error = (result.data.get("error") or {}).get("code")
    names = row(view.spec, view.job.options, {})
    return [*(own.get(name) for name in names), *place(result).values(), error]


def schema(spec: JobSpec) -> dict[str, Any]:
    """The JSON Schema of one result as `shape` writes it."""
    whole = {"type": ["integer", "null"]}
    return {
        "type": "object",
        "properties": {
            **_properties(spec),
            "document_id": {"type": "string"},
            "generation": {"type": "integer"},
            "page": whole,
            "chunk": whole,
            "error": {"type": ["object", "null"], "description": "Code and message if there is no result."},
        },
        "required": [*PLACE, "error"],
    }


def _properties(spec: JobSpec) -> dict[str, Any]:
    properties: dict[str, Any] = parameters.schema_of(spec.result or {}).get("properties", {})
    return properties
