"""Arguments and results as they are stored: in the serialisation that the application chose for Celery."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from kombu import serialization
from kombu.exceptions import DecodeError, EncodeError

from holdfast.core.errors import BadRequestError

# A result is stored with its run, so that a message that comes again can be answered. Larger ones are not.
MOST_RESULT = 512 * 1024


def dump(value: Any, serializer: str | None) -> dict[str, str]:
    """The value as a small JSON object; EncodeError if the serialiser cannot write it."""
    content_type, encoding, data = serialization.dumps(value, serializer=serializer or "json")
    if isinstance(data, bytes):
        return {"type": content_type, "encoding": encoding, "base64": base64.b64encode(data).decode()}
    return {"type": content_type, "encoding": encoding, "text": data}


def load(stored: Mapping[str, str]) -> Any:
    """The value again. What is stored was written by the application itself."""
    data: str | bytes = stored["text"] if "text" in stored else base64.b64decode(stored["base64"])
    return serialization.loads(data, stored["type"], stored["encoding"], accept=[stored["type"]])


def arguments(args: Sequence[Any], kwargs: Mapping[str, Any], serializer: str | None) -> dict[str, str]:
    """The arguments of a call; BadRequestError if they cannot be sent."""
    try:
        return dump([list(args), dict(kwargs)], serializer)
    except EncodeError as error:
        message = (
            f"an argument of the task cannot be sent with the serializer {serializer or 'json'}: {error}"
        )
        raise BadRequestError(message, code="bad_arguments") from error


def result(value: Any, serializer: str | None) -> dict[str, Any]:
    """The result of a run as it is stored; `lost` says why it is not."""
    try:
        stored = dump(value, serializer)
    except (EncodeError, TypeError, ValueError) as error:
        return {"lost": f"it cannot be written with the serializer {serializer or 'json'}: {error}"[:300]}
    size = sum(len(part) for part in stored.values())
    return stored if size <= MOST_RESULT else {"lost": f"it is {size} bytes, more than {MOST_RESULT}"}


class LostResultError(BadRequestError):
    """The result of an earlier execution was not stored."""

    code = "result_not_stored"


def value_of(stored: Mapping[str, Any] | None) -> Any:
    """The result that was stored; None of a run without one."""
    if stored is None:
        return None
    if "lost" in stored:
        raise LostResultError(f"the result of the earlier execution was not stored: {stored['lost']}")
    try:
        return load(stored)
    except DecodeError as error:
        raise LostResultError(f"the result of the earlier execution cannot be read: {error}") from error
