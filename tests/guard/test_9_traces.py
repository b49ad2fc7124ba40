"""Traces of guarded runs."""

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holdfast.telemetry import traces


@pytest.fixture
def spans():
    """Everything that is traced, in this process alone."""
    traces.end()
    exporter = InMemorySpanExporter()
    traces.begin(None, exporter)
    yield exporter
    traces.end()


def test_a_call_its_execution_and_what_it_pays_for_are_one_trace(on_sqlite, spans):
    """The task that it calls is below it as well, though another delivery executes that."""
    guard = on_sqlite.guard

    @guard.paid(price="0.01 USD", verify=lambda order: None)
    def render(prompt):
        return prompt.upper()

    @guard.task("page:{n}", name="render")
    def page(n):
        return render(f"page {n}")

    @guard.task("report:{n}", name="build")
    def build(n):
        return page.delay(n).id

    with on_sqlite.worker(), traces.span("click"):
        called = build.delay(7).get(timeout=10, interval=0.02)
        assert page.AsyncResult(called).get(timeout=10, interval=0.02) == "PAGE 7"
    named = {span.attributes.get("subject", span.name): span for span in spans.get_finished_spans()}
    parents = {name: span.parent and span.parent.span_id for name, span in named.items()}
    ids = {name: span.context.span_id for name, span in named.items()}
    above = {"click": None, "report:7": "click", "page:7": "report:7", "order": "page:7"}
    assert parents == {name: parent and ids[parent] for name, parent in above.items()}
    assert named["order"].attributes["outcome"] == "answered"
