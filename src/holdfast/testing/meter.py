"""A metering provider: a server with the OpenAI API that charges, misbehaves on request, and keeps the bill.

It is independent of Holdfast's own records: what was paid is what arrived here. In process::

    with Meter(honour_keys=True) as meter, closing(meter.provider()) as provider:
        meter.plan(script=["charge_then_cut"])
        ...
        assert meter.totals().excess == 0

and standalone: ``python -m holdfast.testing.meter --port 8099 --honour-keys``, controlled over HTTP (`GET
/meter`, `GET /meter/log`, `GET /meter/wait?open=1`, `POST /meter/plan`, `/meter/hold`, `/meter/release`,
`/meter/reset`).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import ssl
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from types import TracebackType
from typing import Any, BinaryIO, Self

from holdfast.clock import boot_time
from holdfast.providers.base import Profile
from holdfast.providers.documents import DOCUMENTS, DocumentProvider
from holdfast.providers.openai import OpenAIProvider
from holdfast.testing import meter_answers
from holdfast.testing.meter_book import Book, MeterEntry, MeterOrder, Totals, When
from holdfast.testing.meter_http import MeterServer, Response
from holdfast.testing.meter_keys import KeyReusedError, MeterKeys, Slot
from holdfast.testing.meter_plan import Act, Director, Plan


class Meter:
    """The server. It listens from construction, answers between `start` (or `with`) and `close`."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        honour_keys: bool = False,
        key_retention: float = 86_400.0,
        dimensions: int = 32,
        plan: Plan | None = None,
        chat: meter_answers.Chat | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.book = Book()
        self.honour_keys = honour_keys
        self._keys = MeterKeys(key_retention)
        self._dimensions = dimensions
        self._chat = chat
        self._director = Director(plan or Plan())
        self._server = MeterServer((host, port), self)
        if ssl_context:
            self._server.socket = ssl_context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.url = f"{'https' if ssl_context else 'http'}://{host}:{self._server.server_port}"
        self.base_url = f"{self.url}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="meter")

    def start(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop listening, cut every open exchange and end every thread of the meter."""
        self.book.close()
        self._keys.close()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def profile(self, *, deadline: float = 30.0, uncharged: frozenset[int] = frozenset()) -> Profile:
        """Return the profile that matches this meter's configuration."""
        retention = self._keys.retention if self.honour_keys else 0.0
        return Profile("meter", self.honour_keys, retention, 256, 100_000, deadline, uncharged)

    def provider(self, profile: Profile | None = None, **options: Any) -> OpenAIProvider:
        """Return a client of this meter; the caller closes it."""
        return OpenAIProvider(self.base_url, "meter-key", profile or self.profile(), **options)

    def document_provider(
        self, open_file: Callable[[str], BinaryIO], *, name: str = "meter-documents", **options: Any
    ) -> DocumentProvider:
        """Return a client of this meter that sends documents; the caller closes it."""
        retention = self._keys.retention if self.honour_keys else 0.0
        profile = replace(
            DOCUMENTS, name=name, honours_keys=self.honour_keys, key_retention=retention, deadline=30.0
        )
        return DocumentProvider(self.base_url, "meter-key", open_file, profile, **options)

    def plan(self, **changes: Any) -> Plan:
        """Change the named fields of the plan in force (see `meter_plan.Plan`), and return it."""
        return self._director.change(changes)

    def hold(self, when: When = "after") -> None:
        """Hold back all answers, before, after or (streams) `during` their charge, until `release`."""
        self.book.hold(when)

    def release(self) -> None:
        """Release everything that was held back."""
        self.book.hold(None)

    def wait_open(self, count: int = 1, timeout: float = 10.0, *, charged: bool = False) -> Totals:
        """Return once `count` exchanges are open (and charged) at the same time; else TimeoutError."""
        return self.book.wait(lambda now: sum(one.charged or not charged for one in now) >= count, timeout)

    def wait_idle(self, timeout: float = 10.0) -> Totals:
        """Return once no exchange is open; else TimeoutError."""
        return self.book.wait(lambda now: not now, timeout)

    def wait_quiet(self, timeout: float = 10.0) -> Totals:
        """Return once everything that closed clients sent is in the log; TimeoutError if one stays open.

        Call it before asserting that nothing arrived. Not for a meter with TLS.
        """
        if not self._server.wait_quiet(timeout):
            raise TimeoutError(f"a client kept its connection for {timeout} s; close it first")
        return self.totals()

    def totals(self) -> Totals:
        """Return the current bill."""
        return self.book.totals()

    def charges_of(self, text: str) -> int:
        """Return how often an input was charged."""
        return self.book.charges_of(text)

    def log(self) -> list[dict[str, Any]]:
        """Return every exchange since the last reset, in order of arrival."""
        return self.book.log()

    def reset(self) -> None:
        """Forget charges, log and keys, and behave well again."""
        self.book.hold(None)
        self.book.reset()
        self._keys.clear()
        self._director.change(asdict(Plan()))

    def serve(
        self, entry: MeterEntry, endpoint: str, key: str, body: bytes, content_type: str = ""
    ) -> Response:
        """Process a paid request and return the response."""
        try:
            if endpoint not in meter_answers.ENDPOINTS:
                raise ValueError(f"no such endpoint: {endpoint}")
            request = meter_answers.read_body(endpoint, body, content_type)
            order = meter_answers.read_order(endpoint, request)
        except ValueError as exc:
            return Response(400, meter_answers.error("invalid_request", str(exc)))
        self.book.open(entry, order, key)
        if not (self.honour_keys and key):
            return self._process(entry, order, request, Slot(b"", boot_time()))
        try:
            with self._keys.taken(key, body) as slot:
                return self._process(entry, order, request, slot)
        except KeyReusedError:
            return Response(
                422, meter_answers.error("key_reused", "this key was used before with another body")
            )

    def _process(
        self, entry: MeterEntry, order: MeterOrder, request: Mapping[str, Any], slot: Slot
    ) -> Response:
        """Go through the stages of an exchange: wait, charge, wait, reply. A replay is never charged."""
        act = self._director.next()
        replayed = slot.answer is not None
        self.book.idle(act.latency or 0.0)
        self.book.pause("before")
        self.book.idle(act.stall_before)
        if self.book.is_closed():
            return Response(0, b"", cut=True)
        if act.charge and slot.answer is None:
            slot.answer = meter_answers.answer(order, request, self._dimensions, self._chat)
            self.book.charge(entry, order)
        self.book.pause("after")
        self.book.idle(act.stall_after)
        if self.book.is_closed():
            return Response(0, b"", cut=True)
        response = _said(act, slot.answer, replayed=replayed)
        streams = bool(request.get("stream")) and slot.answer is not None and act.body is None
        if not (streams and response.status == 200 and not response.cut):
            return response
        events = meter_answers.events(order.endpoint, slot.answer or b"", request)
        return replace(response, events=events, cut_after=act.cut_after)

    def control(self, action: str, query: Mapping[str, str], body: Mapping[str, Any]) -> object:
        """Handle a request for the meter's control endpoints; LookupError for an unknown one."""
        match action:
            case "GET /meter":
                return asdict(self.totals())
            case "GET /meter/log":
                return self.log()
            case "GET /meter/wait":
                charged = query.get("charged", "0") in {"1", "true"}
                timeout = float(query.get("timeout", "10"))
                return asdict(self.wait_open(int(query.get("open", "1")), timeout, charged=charged))
            case "POST /meter/plan":
                return asdict(self.plan(**body))
            case "POST /meter/hold":
                named = body.get("when")
                self.hold("before" if named == "before" else "during" if named == "during" else "after")
            case "POST /meter/release":
                self.release()
            case "POST /meter/reset":
                self.reset()
            case _:
                raise LookupError(action)
        return asdict(self.totals())


def _said(act: Act, answer: bytes | None, *, replayed: bool) -> Response:
    good = 200 <= act.status < 300
    body = act.body
    if body is None:
        failure = meter_answers.error("meter", f"the meter is configured to answer {act.status}")
        body = answer if good and answer is not None else failure
    headers = act.headers + ((("Idempotent-Replayed", "true"),) if good and replayed else ())
    return Response(act.status, body, headers, act.cut, act.drip, replayed=replayed)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a meter until SIGTERM or SIGINT; the first line of output is JSON with its address."""
    parser = argparse.ArgumentParser(prog="holdfast.testing.meter", description=main.__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--honour-keys", action="store_true")
    parser.add_argument("--key-retention", type=float, default=86_400.0)
    parser.add_argument("--dimensions", type=int, default=32)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plan", type=json.loads, default={}, help="JSON with fields of the plan")
    options = parser.parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    meter = Meter(
        host=options.host,
        port=options.port,
        honour_keys=options.honour_keys,
        key_retention=options.key_retention,
        dimensions=options.dimensions,
    )
    with meter:
        meter.plan(**{"latency": options.latency, "seed": options.seed, **options.plan})
        line = {"url": meter.base_url, "meter": f"{meter.url}/meter", "pid": os.getpid()}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        stop.wait()


if __name__ == "__main__":
    main()
