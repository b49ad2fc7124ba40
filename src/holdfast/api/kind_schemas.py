"""Adds the parameters and results of every registered kind to the OpenAPI document, by name."""

import json
from collections.abc import Mapping
from typing import Any

from holdfast.api.money import EstimatedAction
from holdfast.api.schemas_actions import NewAction
from holdfast.api.schemas_jobs import JobResultList, NewJob
from holdfast.engine.job_specs import ActionSpec, JobSpec
from holdfast.kinds import parameters
from holdfast.service import results


def add(openapi: dict[str, Any], jobs: Mapping[str, JobSpec], actions: Mapping[str, ActionSpec]) -> None:
    """The description has a schema for the parameters and results of every kind and every action."""
    schemas = openapi["components"]["schemas"]
    taken = {f"{name}_params": parameters.schema(spec) for name, spec in jobs.items()}
    left = {f"{name}_result": results.schema(spec) for name, spec in jobs.items()}
    # A colon, as in the names of actions that keep something up to date, may not be in a component's name.
    done = {f"{name.replace(':', '_')}_action": parameters.schema(spec) for name, spec in actions.items()}
    for name, schema in {**taken, **left, **done}.items():
        schemas[name] = _moved(schema, name)
    _choose(schemas[NewJob.__name__], "kind", jobs, taken)
    _choose(schemas[NewAction.__name__], "sort", actions, done)
    _choose(schemas[EstimatedAction.__name__], "sort", actions, done)
    if left:
        schemas[JobResultList.__name__]["properties"]["results"]["items"] = _any(left)


def _choose(body: dict[str, Any], name: str, known: Mapping[str, object], schemas: Mapping[str, Any]) -> None:
    if known:
        body["properties"][name]["enum"] = list(known)
        body["properties"]["params"] |= _any(schemas)


def _any(names: Mapping[str, object]) -> dict[str, Any]:
    return {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in names]}


def _moved(schema: Mapping[str, Any], name: str) -> Any:
    """The schema where its references lead into the description instead of into itself."""
    inside = f"#/components/schemas/{name}/$defs/"
    return json.loads(json.dumps({"title": name, **schema}).replace('"#/$defs/', f'"{inside}'))
