"""What workers and relays say to each other: ids and outcomes, never a body, a result or a key.

Each message is one JSON object on a line. After connecting, the relay says `hello`. A worker says `carry` and
hears `taken`, then `marked`, then `ended`; or, with nothing sent for it, `busy`, `draining`, `no_provider` or
`lost`. Saying `carry` again attaches another waiter to an order that is being carried. Hanging up, or saying
`drop`, gives an order up that is not marked; one that is marked is carried to its end.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol, TypeAlias

from holdfast.providers.base import NotSent, Refused, Unknown

PROTOCOL = 1
MAX_LINE = 1024 * 1024
# Seconds: for a connection, for the answer to `carry`, and from there to the mark.
CONNECTED_WITHIN, TAKEN_WITHIN, MARKED_WITHIN = 0.2, 1.0, 5.0
# How often a waiting worker checks whether it may go on waiting.
CHECK_EVERY = 0.5
# How often it looks up what has become of a marked order of which nothing is heard.
LOOK_EVERY = 2.0

# Why an order was not carried; nothing was sent for it by the relay that says so.
UNREACHABLE, BUSY, RATE, DRAINING, NO_PROVIDER, LATE, OTHER = (
    "unreachable",
    "busy",
    "rate",
    "draining",
    "no_provider",
    "late",
    "other",
)

Failure: TypeAlias = Refused | NotSent | Unknown
_FAILURES: Mapping[str, type[Failure]] = {"refused": Refused, "not_sent": NotSent, "unknown": Unknown}


@dataclass(frozen=True, slots=True)
class Ended:
    """The relay is done with the order, and what came of it is stored. Without `failure` it is settled.

    `marked` is false if nothing was sent and the order is as it was.
    """

    failure: Failure | None = None
    marked: bool = True


@dataclass(frozen=True, slots=True)
class LostOrder:
    """The order is not the worker's to hand over, or may not be sent; nothing was sent for it here.

    `reason` is that of the fence, or `budget`; `state` that of the order.
    """

    state: str
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class NotCarried:
    """No relay took the order or marked it in time; `after` is how many seconds to wait, if that is known."""

    reason: str
    message: str = ""
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class Unheard:
    """The relay has marked the order, and is not heard of any more: only the ledger says what comes of it."""


Reply: TypeAlias = Ended | LostOrder | NotCarried | Unheard


class Relays(Protocol):
    """The relays that a worker can reach."""

    def is_there(self) -> bool:
        """True if a relay accepts connections now."""
        ...

    def carry(
        self,
        order_id: str,
        holder: str,
        *,
        tries: int,
        check: Callable[[], None],
        is_over: Callable[[], bool] = lambda: False,
        hear: Callable[[str], None] | None = None,
    ) -> Reply:
        """The order was handed over, and what came of it.

        `check` is called while waiting; what it raises is passed on, with the order dropped if it is not
        marked. `is_over` looks up from time to time whether the marked order has ended: a relay may be frozen
        or cut off. `hear` is called with each piece of a streamed answer.
        """
        ...

    def close(self) -> None:
        """Every idle connection is closed."""
        ...


def line(say: str, **facts: Any) -> bytes:
    """A message as bytes."""
    return json.dumps({"say": say, **facts}, separators=(",", ":")).encode() + b"\n"


def parsed(text: bytes) -> dict[str, Any]:
    """A message; ValueError if it is none."""
    message = json.loads(text)
    if not isinstance(message, dict) or not isinstance(message.get("say"), str):
        raise ValueError("not a message")  # noqa: TRY004 - nonsense of the other side, not a wrong argument
    return message


def ended(reply: Ended | LostOrder) -> bytes:
    """The last message about an order."""
    if isinstance(reply, LostOrder):
        return line("lost", **asdict(reply))
    failure = reply.failure
    if failure is None:
        return line("ended", marked=reply.marked)
    kind = next(name for name, known in _FAILURES.items() if isinstance(failure, known))
    return line("ended", marked=reply.marked, failure=kind, details=asdict(failure))


def reply_of(message: Mapping[str, Any]) -> Reply | None:
    """The reply that ends the talk about an order; None if it goes on. ValueError if it is broken."""
    try:
        match message["say"]:
            case "ended":
                return Ended(_failure(message), bool(message["marked"]))
            case "lost":
                return LostOrder(str(message["state"]), str(message["reason"]), str(message["message"]))
            case "busy":
                return NotCarried(str(message["reason"]), str(message["message"]), float(message["after"]))
            case "draining" | "no_provider":
                return NotCarried(str(message["say"]), str(message.get("message", "")))
    except (KeyError, TypeError) as error:
        raise ValueError("not a message") from error
    return None


def _failure(message: Mapping[str, Any]) -> Failure | None:
    kind = message.get("failure")
    if kind is None:
        return None
    return _FAILURES[str(kind)](**message["details"])
