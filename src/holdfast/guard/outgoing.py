"""Messages on their way to the broker: as they are stored, and published, once more if need be."""

import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from celery.utils.time import maybe_iso8601, maybe_make_aware

from holdfast.guard import serialization
from holdfast.store.guarded.messages import TaskMessage

# In the headers of a message: the run that it belongs to, or the one whose result it is to answer with.
RUN_HEADER, JOIN_HEADER = "holdfast_run", "holdfast_join"
# A task that is to start within this time is published at once; the sweep publishes any later one.
SOON = 2.0
# A message is not to arrive before its task is due by the clock of the database.
CLOCK_SLACK = 0.2
# What concerns one publication, and not the message.
_OF_ONE_SEND = frozenset(
    {
        "producer",
        "publisher",
        "connection",
        "countdown",
        "eta",
        "expires",
        "task_id",
        "add_to_parent",
        "retry",
    }
)
_MOST_SHOWN = 1000


class OutgoingCall:
    """A call of a task as `apply_async` takes it."""

    def __init__(
        self, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> None:
        self.args = tuple(args or ())
        self.kwargs = dict(kwargs or {})
        self.options = dict(options)

    @property
    def delay(self) -> float:
        """Seconds until it may start."""
        if self.options.get("countdown") is not None:
            return float(self.options["countdown"])
        at = self.options.get("eta")
        return 0.0 if at is None else max(0.0, _timestamp(at) - time.time())

    @property
    def expires_at(self) -> float | None:
        """When it must not be started any more."""
        expires = self.options.get("expires")
        if expires is None:
            return None
        if isinstance(expires, int | float):
            return time.time() + float(expires)
        return _timestamp(expires)

    @property
    def in_canvas(self) -> bool:
        """True if others wait for a result under its own id, or for what comes after it."""
        names = ("task_id", "group_id", "chord", "chain", "link", "link_error")
        return any(self.options.get(name) for name in names)

    def message(
        self, celery_id: str, task_name: str, serializer: str | None, *, once: bool = False
    ) -> TaskMessage:
        """What is stored of it. `once`: its success is asked for later, whatever its age."""
        sent = {
            name: value
            for name, value in self.options.items()
            if name not in _OF_ONE_SEND and value is not None
        }
        stored = serialization.arguments(self.args, self.kwargs, serializer)
        stored_options = serialization.arguments((), sent, serializer)
        shown: dict[str, Any] = {"queue": str(sent.get("queue") or "")} | ({"once": True} if once else {})
        for name, value in (("args", self.args), ("kwargs", self.kwargs)):
            # What the caller gave to be shown instead, as secrets are hidden from Celery's logs.
            text = self.options.get(f"{name}repr") or (repr(value) if value else "")
            shown |= {name: str(text)[:_MOST_SHOWN]} if text else {}
        body = json.dumps({"call": stored, "options": stored_options})
        return TaskMessage(celery_id, task_name, body, shown, self.expires_at)


def callbacks_of(
    celery_id: str, name: str, signatures: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The callbacks of a message, each with an id that is the same at every delivery of the message.

    Celery draws a new id whenever it calls one. By a fixed id a guarded callback is recognised that is called
    again, because a worker died after it had called it. Those that are a canvas have ids of their own.
    """
    return [
        {**each, "options": {**(each.get("options") or {}), "task_id": _callback_id(celery_id, name, index)}}
        if not each.get("subtask_type") and not (each.get("options") or {}).get("task_id")
        else each
        for index, each in enumerate(signatures)
    ]


def _callback_id(celery_id: str, name: str, index: int) -> str:
    return str(uuid5(NAMESPACE_URL, f"{celery_id}/{name}/{index}"))


def _timestamp(at: Any) -> float:
    """Seconds since 1970; a time without a zone is in UTC, as Celery reads it."""
    moment = maybe_iso8601(at)
    if not isinstance(moment, datetime):
        raise TypeError(f"a time must be a datetime, not {type(at).__name__}")
    aware: datetime = maybe_make_aware(moment, UTC)
    return aware.timestamp()


def call_of(message: TaskMessage) -> OutgoingCall:
    """The call that a message was stored from, ready to be published once more."""
    body = json.loads(message.body)
    args, kwargs = serialization.load(body["call"])
    _, options = serialization.load(body["options"])
    if message.expires_at is not None:
        options["expires"] = datetime.fromtimestamp(message.expires_at, UTC)
    return OutgoingCall(args, kwargs, options)
