"""One trace from the request over the broker to the paid exchange, at a collector that speaks OTLP over HTTP.

The collector is a server of its own that decodes what comes with the protocol's own messages; the API and
the worker are processes that know nothing of each other but the database and the broker.
"""

import gzip
import importlib.util
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from holdfast.chaos import stacks
from holdfast.testing.meter import Meter
from tests.acceptance.servers import all_servers
from tests.acceptance.service import Service

pytestmark = pytest.mark.timeout(300)

NEEDS = ("opentelemetry.exporter.otlp.proto.http", "opentelemetry.proto.collector.trace.v1")
TRACE = "0af7651916cd43dd8448eb211c80319c"
ASKED = f"00-{TRACE}-b7ad6b7169203331-01"


def is_installed(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


class Collector:
    """Takes spans as any collector does, and keeps them with the connection that brought them."""

    def __init__(self):
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as wire  # noqa: PLC0415

        self.spans, self.unread = [], []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if self.path != "/v1/traces" or self.headers["Content-Type"] != "application/x-protobuf":
                    outer.unread.append(self.path)
                    return self.send_error(404)
                outer.take(wire.ExportTraceServiceRequest.FromString(body))
                answer = wire.ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                return self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/traces"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, request):
        for resource in request.resource_spans:
            about = {each.key: each.value.string_value for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [(about.get("service.name"), span) for span in scope.spans]

    def named(self, name):
        """The spans of this name in the trace that was asked under."""
        return [span for _, span in list(self.spans) if span.name == name and span.trace_id.hex() == TRACE]


@pytest.fixture
def collector():
    missing = [name for name in NEEDS if not is_installed(name)]
    if missing:
        reason = f"NO OPENTELEMETRY: {', '.join(missing)} is missing; install the extra `otel`"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with Collector() as created:
        yield created


@pytest.mark.parametrize("name", stacks.NAMES)
def test_a_collector_sees_one_trace_from_the_request_to_the_provider(name, require, collector):
    """Request, task and order under one id, each below the one before; no word of the text goes along."""
    for needed in stacks.NEEDED[name]:
        require(needed)
    text = "Words that are to be traced but not told."
    with (
        stacks.opened(all_servers(), name) as stack,
        Meter(honour_keys=True) as meter,
        Service(stack, meter, otel_url=collector.url) as service,
    ):
        service.worker().ready()
        client = service.client
        client.collection("traced")
        body = {"text": text, "title": "Traced"}
        said = client.post("collections/traced/documents", body, headers={"traceparent": ASKED})
        assert said.status == 202
        assert service.ended(said.json["document"]["id"])["index_status"] == "success"
        service.wait(lambda: all(map(collector.named, ("request", "plan", "order"))), "the spans arrive")
    (request,), (plan,), (order,) = map(collector.named, ("request", "plan", "order"))
    assert request.parent_span_id.hex() == "b7ad6b7169203331"
    assert plan.parent_span_id == request.span_id
    assert order.parent_span_id == plan.span_id
    output = {each.key: each.value.string_value for each in plan.attributes}
    assert (output["run"], output["ending"]) == (said.json["run"]["id"], "published")
    assert {service_name for service_name, _ in collector.spans} == {"holdfast"}
    assert collector.unread == []
    assert text not in str(collector.spans)
