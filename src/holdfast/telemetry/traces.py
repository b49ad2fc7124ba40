"""Traces, from the request to the paid exchange, across processes (extra `otel`).

A wake-up carries no ids, so the trace of a request travels with its run, in the database: `carried` is
written into the run when it is made, and whoever works on it goes on under it. Spans: `request`, `plan` or
`slice`, and `order` for each exchange with a provider. They carry ids and counts, never a text or a secret.

Off until `begin`, and then nothing here imports anything of OpenTelemetry. A provider of our own is used, not
the global one: what a user's program traces by itself is its own business.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, select

from holdfast.extras import MissingExtraError
from holdfast.store.base.database import Database
from holdfast.store.base.schema import runs

NAME = "holdfast"
MOST_CARRIED = 100
EXPORT_EVERY_MS = 2000

Facts = Mapping[str, str | int | float | bool]


@dataclass(slots=True)
class _Tracing:
    """What is needed once traces are on; `pid` is the process that they were begun in."""

    pid: int
    provider: Any
    tracer: Any


_on: _Tracing | None = None


def begin(url: str | None, exporter: Any = None) -> None:
    """Spans of this process go to the collector at `url`, or to `exporter`; without either there are none.

    Raises MissingExtraError, which says what to install, when the extra is missing.
    """
    global _on  # noqa: PLW0603 - one set of traces per process is the point
    if (url is None and exporter is None) or (_on is not None and _on.pid == os.getpid()):
        return
    try:
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtraError("otel", "HOLDFAST_OTEL_URL") from error
    provider = TracerProvider(resource=Resource.create({"service.name": NAME}), shutdown_on_exit=True)
    if exporter is not None:
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    else:
        sending = BatchSpanProcessor(_exporter(str(url)), schedule_delay_millis=EXPORT_EVERY_MS)
        provider.add_span_processor(sending)
    _on = _Tracing(os.getpid(), provider, provider.get_tracer(NAME))


def _exporter(url: str) -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

    return OTLPSpanExporter(endpoint=url)


def end() -> None:
    """What was traced so far has been sent, as far as the collector takes it; from now on nothing is."""
    global _on
    tracing, _on = _on, None
    if tracing is not None and tracing.pid == os.getpid():
        tracing.provider.shutdown()


TRACE = select(runs.c.trace).where(runs.c.id == bindparam("run_id"))


def of_run(db: Database, run_id: str) -> str | None:
    """The trace that asked for a run; None when it had none."""
    found = db.look(TRACE, {"run_id": run_id})
    return found[0].trace if found else None


def are_on() -> bool:
    """True when spans are kept."""
    return _on is not None


@dataclass(slots=True)
class Span:
    """A span that is open; every method does nothing when traces are off."""

    inner: Any = None
    token: Any = None

    def tell(self, **facts: str | float | bool) -> None:
        """The span says this of itself."""
        if self.inner is not None:
            self.inner.set_attributes(facts)

    def rename(self, name: str) -> None:
        """The span is called so."""
        if self.inner is not None:
            self.inner.update_name(name)

    def close(self, problem: str = "") -> None:
        """The span is over; with a problem it counts as failed. The one around it is current again."""
        if self.inner is None:
            return
        from opentelemetry import context, trace  # noqa: PLC0415

        if problem:
            self.inner.set_status(trace.StatusCode.ERROR, problem)
        self.inner.end()
        context.detach(self.token)
        self.inner = None


def start(name: str, carried: str | None = None, facts: Facts | None = None) -> Span:
    """An open span below what was carried here, or else below the current one; it is the current one now."""
    if _on is None:
        return Span()
    from opentelemetry import context, trace  # noqa: PLC0415

    inner = _on.tracer.start_span(name, context=_around(carried), attributes=dict(facts or {}))
    return Span(inner, context.attach(trace.set_span_in_context(inner)))


@contextlib.contextmanager
def span(name: str, carried: str | None = None, facts: Facts | None = None) -> Iterator[Span]:
    """As `start`, closed at the end of the block."""
    opened = start(name, carried, facts)
    problem = "it was cut short"
    try:
        yield opened
        problem = ""
    finally:
        opened.close(problem)


def carried() -> str | None:
    """The current span as W3C writes it, to be carried on; None when there is none."""
    if _on is None:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent")


def _around(given: str | None) -> Any:
    """The context of what was carried here; of nonsense, and of nothing, the current one."""
    if given is None or len(given) > MOST_CARRIED:
        return None
    from opentelemetry import trace  # noqa: PLC0415
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    found = TraceContextTextMapPropagator().extract({"traceparent": given})
    return found if trace.get_current_span(found).get_span_context().is_valid else None
