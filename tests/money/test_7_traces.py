"""Traces from the request to the provider across the database, and log lines that name their work."""

import io
import json
import logging
import subprocess
import sys

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holdfast import settings
from holdfast.chaos.waiting import until
from holdfast.cli import logs
from holdfast.engine.host import ThreadHost
from holdfast.store.base.schema import runs
from holdfast.telemetry import context, traces
from tests.money.conftest import priced


@pytest.fixture
def spans():
    """Everything that is traced, in this process alone."""
    traces.end()
    exporter = InMemorySpanExporter()
    traces.begin(None, exporter)
    yield exporter
    traces.end()


@pytest.fixture
def traced(spans, database_url, tmp_path, meter):
    install = priced(database_url, tmp_path, meter)
    yield install
    install.close()


@pytest.fixture
def embedded(spans, sqlite_url, tmp_path, meter):
    """The same on the embedded database alone."""
    install = priced(sqlite_url, tmp_path, meter)
    yield install
    install.close()


def named(spans, name):
    return [one for one in spans.get_finished_spans() if one.name == name]


def test_one_trace_leads_from_the_request_to_the_paid_exchange(traced, spans):
    """The worker is another runtime with connections of its own; what ties them together is the run's row."""
    text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    traced.client.collection()
    body = {"text": "A text to be traced.", "title": "A title"}
    said = traced.client.post("collections/shelf/documents", body, headers={"traceparent": text})
    assert said.status == 202
    traced.work()
    # A request ends after its answer is read.
    (request,) = until(
        lambda: [one for one in named(spans, "request") if one.parent is not None], 20, "the request ends"
    )
    (plan,), (order,) = named(spans, "plan"), named(spans, "order")
    assert {one.context.trace_id for one in (request, plan, order)} == {0x0AF7651916CD43DD8448EB211C80319C}
    assert (plan.parent.span_id, order.parent.span_id) == (request.context.span_id, plan.context.span_id)
    assert plan.attributes["run"] == said.json["run"]["id"]
    assert (plan.attributes["epoch"], plan.attributes["ending"]) == ("1", "published")
    assert (order.attributes["outcome"], order.attributes["calls"]) == ("answered", 1)
    assert "A text to be traced" not in str([one.to_json() for one in spans.get_finished_spans()])


def test_a_trace_is_no_part_of_what_is_asked_for(embedded):
    """The same content under another trace is unchanged."""
    document = embedded.client.indexed("The same text twice.")
    assert embedded.client.post(f"documents/{document['id']}/index", {}).json["disposition"] == "unchanged"


@pytest.mark.parametrize("nonsense", ["", "00-xyz", "x" * 5000, "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
def test_a_senseless_traceparent_is_ignored(embedded, spans, nonsense):
    """The request has a trace of its own."""
    assert embedded.client.get("collections", headers={"traceparent": nonsense}).status == 200
    (result,) = until(lambda: named(spans, "request"), 20, "the request ends")
    assert result.parent is None


def test_a_failed_task_is_a_failed_span(embedded, spans):
    """With its code, and no span is left open for the next."""
    embedded.client.collection()
    embedded.client.upload("collections/shelf/documents", b"%PDF-1.7 nonsense", "broken.pdf")
    embedded.work()
    (plan,) = named(spans, "plan")
    assert (plan.status.is_ok, plan.attributes["ending"]) == (False, "failed")
    embedded.client.indexed("And another text.")
    assert named(spans, "plan")[1].parent is not None


def test_without_the_setting_nothing_is_traced_and_nothing_imported(small):
    """Neither a span, nor a trace in the run, nor the library."""
    assert not traces.are_on()
    small.client.indexed("A text that nobody traces.")
    rows = small.runtime.db.read(lambda tx: tx.all(runs.select()))
    assert {row.trace for row in rows} == {None}
    program = "import sys, holdfast.bootstrap; print('opentelemetry.sdk.trace' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


@pytest.fixture
def lines(tmp_path):
    """What the root logger writes as JSON from here on."""
    root, stream = logging.getLogger(), io.StringIO()
    before = (list(root.handlers), root.level)
    logs.set_up(settings.Settings(data_dir=tmp_path, log_format="json"))
    root.handlers[0].setStream(stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers[:], level = before
    root.setLevel(level)


def test_each_line_that_is_logged_during_work_names_it(small, lines, monkeypatch):
    """Run, generation and epoch, also from the threads of a payment; before and after there is none."""
    log = logging.getLogger("holdfast.story")
    provider = next(iter(small.worker.providers.values()))
    send = provider.send

    def heard(exchange, gate):
        ThreadHost().gather([lambda: log.info("beside"), lambda: log.info("within")], 2)
        return send(exchange, gate)

    monkeypatch.setattr(provider, "send", heard)
    log.info("before")
    document = small.client.indexed("Words to be logged about.")
    log.info("after")
    output = {line["message"]: line for line in lines()}
    for word in ("within", "beside"):
        line = output[word]
        assert (line["run"], line["generation"], line["epoch"]) == (document["run_id"], 1, 1)
        assert (line["kind"], line["subject"]) == ("index", f"document:{document['id']}")
    assert "run" not in output["before"]
    assert "run" not in output["after"]
    assert context.current() is None
