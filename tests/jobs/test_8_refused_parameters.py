"""A server that refuses a parameter: the job says which one, and what to set."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.api.install import ApiInstall
from tests.jobs.install import Author

TEXT = "The ferry leaves the harbour at noon."


class Strict(BaseHTTPRequestHandler):
    """Answers chats, unless they name a parameter that the model does not take."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        refused = next((name for name in ("temperature", "max_tokens") if name in body), None)
        if refused:
            text = f"Unsupported parameter: '{refused}' is not supported with this model."
            error = {"message": text, "type": "invalid_request_error", "param": refused}
            self.answer(400, {"error": error | {"code": "unsupported_parameter"}})
            return
        message = {"role": "assistant", "content": Author()(body["messages"])}
        usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        choices = [{"index": 0, "finish_reason": "stop", "message": message}]
        self.answer(200, {"id": "1", "model": body["model"], "choices": choices, "usage": usage})

    def answer(self, status, message):
        raw = json.dumps(message).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        pass


@pytest.fixture
def strict():
    with ThreadingHTTPServer(("127.0.0.1", 0), Strict) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def ended(database_url, folder, table):
    """The job of an installation whose model is at this server."""
    install = ApiInstall(
        database_url, folder, providers={"house": table}, llm_provider="house", llm_model="thinker"
    )
    try:
        install.client.collection()
        install.client.post("collections/shelf/documents", {"text": TEXT})
        install.work()
        requested = {"kind": "qa", "params": {"limit": 1, "per_chunk": 1}}
        job_id = install.client.post("collections/shelf/jobs", requested).json["job_id"]
        install.work()
        return install.client.get(f"jobs/{job_id}").json["job"]
    finally:
        install.close()


def test_a_refused_parameter_is_named_with_its_setting(database_url, tmp_path, strict):
    """The job fails at once; with a table that leaves it out the same job succeeds."""
    job = ended(database_url, tmp_path / "data", {"base_url": strict})
    assert (job["state"], job["error"]["code"]) == ("failed", "provider_parameter")
    assert "`temperature`" in job["error"]["message"]
    assert "[providers.NAME" in job["error"]["message"]
    job = ended(database_url, tmp_path / "data", {"base_url": strict, "parameters": {"max_tokens": True}})
    assert "`max_tokens`" in job["error"]["message"]
    expected = {"base_url": strict, "parameters": {"max_completion_tokens": True}}
    assert ended(database_url, tmp_path / "data", expected)["state"] == "success"
