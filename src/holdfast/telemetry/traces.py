"""Traces across processes, from the request to the paid exchange (extra `otel`).

A wake-up carries no ids, so the trace of a request is stored with its run in the database, and workers
continue it. Spans: `request`, `plan` or `slice`, and `order` for each exchange with a provider. They contain
ids and counts, never text or secrets.

Off until `begin`; until then OpenTelemetry is not imported. Holdfast uses its own tracer provider, not the
global one, so that a host program's traces are unaffected.
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
    """The state while tracing is on; `pid` is the process it was started in."""

    pid: int
    provider: Any
    tracer: Any


_on: _Tracing | None = None


def begin(url: str | None, exporter: Any = None) -> None:
    """Send spans of this process to the collector at `url`, or to `exporter`; without either do nothing.

    Raises MissingExtraError, which says what to install, if the extra is missing.
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
    """Flush the spans so far, as far as the collector accepts them, and stop tracing."""
    global _on
    tracing, _on = _on, None
    if tracing is not None and tracing.pid == os.getpid():
        tracing.provider.shutdown()


TRACE = select(runs.c.trace).where(runs.c.id == bindparam("run_id"))


def of_run(db: Database, run_id: str) -> str | None:
    """The trace of the request behind a run; None if it had none."""
    rows = db.look(TRACE, {"run_id": run_id})
    return rows[0].trace if rows else None


def are_on() -> bool:
    """True if tracing is on."""
    return _on is not None


@dataclass(slots=True)
class Span:
    """An open span; every method does nothing while tracing is off."""

    inner: Any = None
    token: Any = None

    def tell(self, **facts: str | float | bool) -> None:
        """Set attributes."""
        if self.inner is not None:
            self.inner.set_attributes(facts)

    def rename(self, name: str) -> None:
        """Change the span's name."""
        if self.inner is not None:
            self.inner.update_name(name)

    def close(self, problem: str = "") -> None:
        """End the span, as failed if there is a problem; its parent is current again."""
        if self.inner is None:
            return
        from opentelemetry import context, trace  # noqa: PLC0415

        if problem:
            self.inner.set_status(trace.StatusCode.ERROR, problem)
        self.inner.end()
        context.detach(self.token)
        self.inner = None


def start(name: str, carried: str | None = None, facts: Facts | None = None) -> Span:
    """Open a span under the carried trace, or else under the current span, and make it current."""
    if _on is None:
        return Span()
    from opentelemetry import context, trace  # noqa: PLC0415

    inner = _on.tracer.start_span(name, context=_around(carried), attributes=dict(facts or {}))
    return Span(inner, context.attach(trace.set_span_in_context(inner)))


@contextlib.contextmanager
def span(name: str, carried: str | None = None, facts: Facts | None = None) -> Iterator[Span]:
    """As `start`, closed at the end of the block."""
    opened = start(name, carried, facts)
    problem = "interrupted"
    try:
        yield opened
        problem = ""
    finally:
        opened.close(problem)


def carried() -> str | None:
    """The current span as a W3C `traceparent`; None if there is none."""
    if _on is None:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent")


def _around(traceparent: str | None) -> Any:
    """The context of a `traceparent`; None, meaning the current one, if it is missing or invalid."""
    if traceparent is None or len(traceparent) > MOST_CARRIED:
        return None
    from opentelemetry import trace  # noqa: PLC0415
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    extracted = TraceContextTextMapPropagator().extract({"traceparent": traceparent})
    return extracted if trace.get_current_span(extracted).get_span_context().is_valid else None
