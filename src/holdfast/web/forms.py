"""The web UI of a kind: a form built from its parameters, and a view of its results."""

import functools
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2
from markupsafe import Markup

from holdfast.engine.job_specs import ActionSpec, JobSpec
from holdfast.kinds import parameters
from holdfast.service.records import FollowUp
from holdfast.web import rendering

# A form is about a whole collection.
LEFT_OUT = frozenset({"documents"})
LONG_TEXT = 500
NUMBERS = {"integer": "1", "number": "any"}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FormField:
    """One parameter as a form asks for it; `control` is the element, `more` are its attributes."""

    name: str
    label: str
    hint: str
    control: str
    value: str
    required: bool
    checked: bool
    choices: Sequence[str]
    suggestions: Sequence[str]
    more: Mapping[str, Any]

    @property
    def is_json(self) -> bool:
        """True where the field is given as JSON."""
        return self.control == "json"


def fields(spec: JobSpec | ActionSpec) -> list[FormField]:
    """The parameters as a form asks for them, in the order in which the kind names them."""
    required = parameters.schema(spec).get("required", ())
    return [
        _field(name, form, required=name in required)
        for name, form in parameters.fields(spec).items()
        if name not in LEFT_OUT
    ]


def _field(name: str, form: Mapping[str, Any], *, required: bool) -> FormField:
    examples = form.get("examples", ())
    control, default = _control(form), form.get("default")
    if default is None and required and examples:
        default = examples[0]
    bounds = {"min": form.get("minimum"), "max": form.get("maximum"), "maxlength": form.get("maxLength")}
    if control == "number":
        bounds["step"] = NUMBERS[str(form["type"])]
    return FormField(
        name=name,
        label=str(form.get("title") or name.replace("_", " ").capitalize()),
        hint=str(form.get("description", "")),
        control=control,
        value=_written(default, control),
        required=required,
        checked=default is True,
        choices=[_written(each, control) for each in form.get("enum", ())],
        suggestions=[str(each) for each in examples] if control == "text" else [],
        more={key: value for key, value in bounds.items() if value is not None},
    )


def _control(form: Mapping[str, Any]) -> str:
    """Which element asks for such a value."""
    if form.get("enum") and all(isinstance(each, str) for each in form["enum"]):
        return "select"
    match form.get("type"):
        case "boolean":
            return "checkbox"
        case "integer" | "number":
            return "number"
        case "string":
            return "textarea" if form.get("maxLength", 0) > LONG_TEXT else "text"
    return "json"


def _written(value: object, control: str) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) and control != "json" else json.dumps(value, indent=2)


@functools.lru_cache(200)
def _template(source: str) -> jinja2.Template:
    return rendering.templates().from_string(source)


def view(source: str | None, **context: Any) -> Markup | None:
    """What a kind's own template makes of its results, escaped; None without one, or where it fails."""
    if source is None:
        return None
    try:
        return Markup(_template(source).render(context))  # noqa: S704 - the template escapes what it is given
    except (jinja2.TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        log.warning("the view of a kind failed; its results are shown as a table", exc_info=True)
        return None


def outcome_view(types: Mapping[str, ActionSpec]) -> Callable[[FollowUp], Markup | None]:
    """Shows the result of a follow-up by the view of its action."""

    def shown(follow_up: FollowUp) -> Markup | None:
        spec = types.get(follow_up.sort)
        return None if spec is None else view(spec.view, result=follow_up.result or {})

    return shown
