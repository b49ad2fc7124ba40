"""What a call of a guarded task is about: its subject, and the fingerprint of its arguments.

A key template such as `report:{report_id}` names arguments. The subject that it makes is stored, shown and
compared, so whatever an argument contains is written with a few characters, and two different values never
make the same subject. Without a template the arguments themselves are the subject.
"""

import inspect
import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kombu.utils import json

from holdfast.core import keys
from holdfast.core.errors import BadRequestError
from holdfast.core.records import TASK_NAME
from holdfast.store.guarded.messages import OF_ARGUMENTS

_TYPE = re.compile(r"[a-z][a-z0-9_-]{0,39}")
# What a value may contain as it is. Colon and slash are left to the template, so that they keep two values
# apart.
_PLAIN = frozenset(string.ascii_letters + string.digits + "._@-")
_MOST_ID = 200
_DIGEST = 32


class KeyTemplate:
    """A key template, checked against the parameters of the task that has it."""

    def __init__(self, template: str, signature: inspect.Signature) -> None:
        self._template = template
        self._signature = signature
        kind, colon, rest = template.partition(":")
        if not colon or not _TYPE.fullmatch(kind) or not rest:
            message = f"the key {template!r} has the wrong form; it must be like report:{{report_id}}"
            raise BadRequestError(message, code="bad_key")
        self._type, self._id = kind, rest
        self._check()
        literals = "".join(text for text, *_ in string.Formatter().parse(rest))
        if set(literals) - _PLAIN - set(":/"):
            message = f"the key {template!r} may contain letters, digits and . _ : / @ - beside arguments"
            raise BadRequestError(message, code="bad_key")

    def _check(self) -> None:
        fields = [field for _, field, _, _ in string.Formatter().parse(self._id) if field is not None]
        roots = [re.split(r"[.\[]", field, maxsplit=1)[0] for field in fields]
        names = ", ".join(self._signature.parameters) or "none"
        if not roots:
            message = f"the key {self._template!r} names no argument of the task; its arguments are: {names}"
            raise BadRequestError(message, code="bad_key")
        takes_any = any(
            each.kind is inspect.Parameter.VAR_KEYWORD for each in self._signature.parameters.values()
        )
        for root in roots:
            if root not in self._signature.parameters and not takes_any:
                message = f"the key {self._template!r} names {root!r}; the arguments of the task are: {names}"
                raise BadRequestError(message, code="bad_key")

    def subject(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """The subject of a call with these arguments."""
        values = bound(self._signature, args, kwargs)
        try:
            text = _Escaping().vformat(self._id, (), values)
        except (KeyError, IndexError, AttributeError, ValueError) as error:
            message = f"the key {self._template!r} cannot be filled in with these arguments: {error!r}"
            raise BadRequestError(message, code="bad_key") from error
        if not text or not text[0].isalnum():
            text = f"0++{text}"  # no value begins so
        if len(text) > _MOST_ID:
            text = f"{text[: _MOST_ID - _DIGEST - 1]}:{keys.digest(text)[:_DIGEST]}"
        return f"{self._type}:{text}"


class _Escaping(string.Formatter):
    """Writes values in the characters of a subject; different values stay different."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """The value as text, with whatever a subject cannot contain as +XX."""
        return "".join(
            letter
            if letter in _PLAIN
            else "".join(f"+{byte:02X}" for byte in letter.encode(errors="surrogatepass"))
            for letter in format(value, format_spec)
        )


def bound(signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name, defaults included, so that it does not matter how each was passed."""
    try:
        call = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"the task cannot be called with these arguments: {error}") from error
    call.apply_defaults()
    values: dict[str, Any] = {}
    for name, value in call.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            values |= value
        else:
            values[name] = value
    return values


def fingerprint(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """A digest of the arguments, the same however each was passed; None if they are more than JSON."""
    values = bound(inspect.signature(function), args, kwargs)
    try:
        return keys.digest(json.dumps(values, sort_keys=True))
    except (TypeError, ValueError):
        return None


def of_arguments(digest: str) -> str:
    """The subject of a call without a key: the arguments themselves, by their digest."""
    return f"{OF_ARGUMENTS}{digest[:_DIGEST]}"


def kind_of(task_name: str) -> str:
    """The kind of a task: its name, where that can be one."""
    if TASK_NAME.fullmatch(task_name):
        return task_name
    plain = re.sub(r"[^A-Za-z0-9_.-]", "-", task_name)[:120]
    return f"task.{plain}" if plain == task_name else f"task.{plain}-{keys.digest(task_name)[:12]}"


def run_id(celery_id: str, task_name: str) -> str:
    """The run of a message: deliveries, retries and republications of one message belong to one run."""
    return keys.celery_run(celery_id, task_name)
