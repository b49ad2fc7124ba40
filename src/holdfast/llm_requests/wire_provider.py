"""A request of a client library as an order: sent over our own sockets, with the caller's credentials.

One provider for each request. What it sends is the body of the order, which another process may have
written; credentials and URL are those of the caller, in memory alone. Nothing is retried here: the response,
whatever it is, goes back to the client library, which decides whether to ask again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from holdfast import faults
from holdfast.clock import boot_time
from holdfast.llm_requests import recorded_responses, usage
from holdfast.llm_requests.http_messages import HOP_BY_HOP, HttpRequest
from holdfast.providers import sockets, statuses, wire
from holdfast.providers.base import Answered, Exchange, NotSent, Outcome, Profile, Profiled, Refused, Unknown
from holdfast.providers.http_provider import estimated_tokens

_DROPPED = HOP_BY_HOP | {"accept-encoding", "content-type", "idempotency-key"}
_SECRET_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
# The payer itself was stopped, or late: that is not the provider's fault, and the ledger decides about it.
_OWN = frozenset({"gate", "late"})

Begin = Callable[[int, Mapping[str, str]], None]
Hear = Callable[[bytes], None]


class WireProvider(Profiled):
    """One request, sent at most once for each order that it pays for."""

    def __init__(
        self,
        profile: Profile,
        connections: wire.Wire,
        request: HttpRequest,
        *,
        idle: float,
        begin: Begin | None = None,
        hear: Hear | None = None,
    ) -> None:
        """`idle` seconds without a byte end it; `begin` and `hear` get a good answer as it arrives."""
        super().__init__(profile)
        self._wire = connections
        self._request = request
        self._idle = idle
        self._begin = begin
        self._hear = hear
        self._streams = hear is not None
        # What came back last: the response, or why there is none; and whether it was a good one.
        self.reply: wire.HttpReply | None = None
        self.failure = ""
        self.has_answered = False
        # The end of a stream, which its reader gets once the answer is recorded.
        self.held_back = b""
        self.order_id = ""

    def encode(self, endpoint: str, model: str, params: Mapping[str, object], inputs: Sequence[str]) -> bytes:
        """The body with its content type, as it is sent and sent again."""
        del endpoint, model, params, inputs
        return self._request.header("content-type").encode("latin-1") + b"\n" + self._request.body

    def send(self, exchange: Exchange, gate: Callable[[], bool]) -> Outcome:
        """Send the order at most once and say what the outcome means for money."""
        sent_as, body = self._message(exchange.body)
        self.order_id = exchange.idempotency_key.removeprefix("hf-")
        facts = usage.StreamFacts() if self._streams else None
        self.reply, self.failure = None, ""
        reply = self._wire.post(
            self._request.url,
            self._headers(sent_as, exchange.idempotency_key),
            body,
            gate,
            send_by=exchange.send_by,
            deadline=min(exchange.deadline, boot_time() + self._idle),
            hear=None if facts is None else self._heard(facts, exchange.deadline),
            begin=self._begin,
        )
        if not isinstance(reply, wire.HttpReply):
            self.failure = reply.reason
            return self._no_response(reply)
        faults.point("send.answered")
        self.reply = reply
        if not 200 <= reply.status < 300:
            return self._refused(reply)
        problem = _problem(reply, facts)
        if problem:
            self.failure = problem
            return Unknown(problem, None, code="unusable_answer")
        self.has_answered = True
        return self._answered(exchange, reply, facts)

    def _message(self, body: bytes) -> tuple[str, bytes]:
        """The content type and the body of an order, as `encode` has put them together."""
        sent_as, _, content = body.partition(b"\n")
        return sent_as.decode("latin-1"), content

    def _answered(
        self, exchange: Exchange, reply: wire.HttpReply, facts: usage.StreamFacts | None
    ) -> Answered:
        record = recorded_responses.recorded(reply.status, reply.headers, reply.body)
        spent = usage.of(_json(reply)) if facts is None else facts.usage
        replayed = reply.headers.get("idempotent-replayed") == "true"
        is_estimated = spent is None
        if spent is None and facts is not None:
            spent = facts.estimated(exchange.body.partition(b"\n")[2])
        if spent is None:
            return Answered((record,), 0, 0, replayed, units=None)
        return Answered((record,), spent.input, spent.output, replayed, is_estimated=is_estimated)

    def _no_response(self, outcome: NotSent | Unknown) -> Outcome:
        if isinstance(outcome, Unknown):
            # Without the status of an answer that broke off: it may be asked for again, as after any cut. One
            # that is too large would be so again.
            status = outcome.status if outcome.reason == wire.TOO_LARGE else None
            return Unknown(outcome.reason, status, code="no_response")
        if outcome.reason in _OWN:
            return outcome
        return Refused(0, "unreachable", f"not sent: {outcome.reason}", None, permanent=True)

    def _refused(self, reply: wire.HttpReply) -> Outcome:
        """Both ways the client library gets the response, and the ledger does not try again by itself."""
        outcome = statuses.judge(reply, self._profile, *self._secrets())
        if isinstance(outcome, Unknown):
            return Unknown(outcome.reason, outcome.status, code="provider_failed")
        return Refused(outcome.status, outcome.code, outcome.message, outcome.retry_after, permanent=True)

    def _headers(self, sent_as: str, idempotency_key: str) -> dict[str, str]:
        headers = {
            name: value
            for name, value in self._request.headers
            if name.lower() not in _DROPPED and not name.lower().startswith(("x-stainless-", "holdfast-"))
        }
        return {
            **headers,
            "Content-Type": sent_as,
            "Accept-Encoding": "identity",
            "Idempotency-Key": idempotency_key,
        }

    def _secrets(self) -> list[str]:
        values = [self._request.header(name) for name in _SECRET_HEADERS]
        return [value.rpartition(" ")[2] for value in values if value]

    def _heard(self, facts: usage.StreamFacts, deadline: float) -> Hear:
        """Each piece of a stream is passed on, and grants the next one as much time again."""

        def hear(chunk: bytes) -> None:
            sockets.current.get().deadline = min(deadline, boot_time() + self._idle)
            facts.feed(chunk)
            faults.point("send.piece")
            if facts.has_ended:
                self.held_back += chunk
            elif self._hear is not None:
                self._hear(chunk)

        return hear

    def count_tokens(self, text: str) -> int:
        """An estimate, rather too high."""
        return estimated_tokens(text)

    def close(self) -> None:
        """The connections are those of the transport."""


def _json(reply: wire.HttpReply) -> object:
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        return None


def _problem(reply: wire.HttpReply, facts: usage.StreamFacts | None) -> str:
    """Why a good status carries an answer that must not be given again; empty if it may."""
    if facts is not None:
        if facts.has_failed:
            return "the provider reported an error in the middle of its answer"
        return "" if facts.is_complete else "the answer broke off"
    if not reply.headers.get("content-type", "").startswith("application/json"):
        return ""
    answer = _json(reply)
    if answer is None:
        return "the answer is no JSON"
    return (
        "the answer is an error" if isinstance(answer, dict) and isinstance(answer.get("error"), dict) else ""
    )
