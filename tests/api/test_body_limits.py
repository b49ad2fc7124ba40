"""How much a request may send is said by its route, and nothing of it is read before its key is known."""

import contextlib
import socket

from holdfast.api.limits import AROUND, MOST_PLAIN
from tests.api.install import PREFIX

HUGE = 20 * 1024**3
JSON, FORM = "application/json", "multipart/form-data; boundary=b"


def begun(install, method, path, *, key=None, size=HUGE, sort=JSON):
    """A connection on which the head of a request was sent, and nothing of the body that it tells of."""
    line = socket.create_connection(("127.0.0.1", install.port), timeout=30)
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{install.port}\r\nContent-Type: {sort}\r\n"
    head += f"X-API-Key: {key}\r\n" if key else ""
    line.sendall(f"{head}Content-Length: {size}\r\n\r\n".encode())
    return line


def answer(line):
    """The status of the answer and its text."""
    said = b""
    with contextlib.closing(line):
        while not said.endswith(b"}") and (part := line.recv(65536)):
            said += part
    return int(said.split(b" ", 2)[1]), said.decode()


def with_body(install):
    """The routes that read a body: method and path of each."""
    for method, path in install.routes():
        if "requestBody" in install.openapi["paths"][path][method.lower()]:
            yield method, path


def test_without_a_key_no_route_reads_a_body(small):
    """401 at once, whatever the body says of itself; what waits for it would be answered 408."""
    small.key("default")
    for method, template in small.routes():
        path = template.replace("{", "").replace("}", "")
        for type_name in (JSON, FORM):
            status, said = answer(begun(small, method, path, sort=type_name))
            expected = 200 if path in {"/healthz", "/readyz"} else 401
            assert status == expected, (method, path, said)


def test_an_unknown_key_that_sends_without_end_is_answered_while_it_sends(small):
    """401 comes before the end of a body that has none, and nothing of it is kept."""
    small.key("default")
    with socket.create_connection(("127.0.0.1", small.port), timeout=30) as line:
        head = f"PATCH {PREFIX}/collections/imports HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {JSON}\r\n"
        line.sendall(f"{head}X-API-Key: wrong\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        line.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        assert b" 401 " in line.recv(65536)


def test_a_key_over_its_rate_is_refused_before_its_body_is_read(small):
    """429 for the second, though neither has sent anything of its body."""
    key = small.access.make(tenant="default", name="slow", scopes=["write"], rate=0.001).token
    lines = [begun(small, "POST", f"{PREFIX}/imports", key=key, sort=FORM, size=100) for _ in range(2)]
    assert {answer(line)[0] for line in lines} == {408, 429}


def test_every_route_holds_its_own_limit(small):
    """One byte above is 413, and names the limit; the end of a path says nothing about it."""
    client = small.key("default", "admin")
    response = client.text("Some words.")
    client.collection("imports")
    limits = small.settings
    large = {
        ("POST", f"{PREFIX}/imports"): limits.most_import + AROUND,
        ("POST", f"{PREFIX}/collections/{{collection_id}}/documents"): limits.most_bytes + AROUND,
        ("PUT", f"{PREFIX}/documents/{{document_id}}/content"): limits.most_bytes + AROUND,
        **{("POST", f"{PREFIX}/{each}"): limits.most_json for each in TEXTS},
    }
    seen = set()
    for method, template in with_body(small):
        path = template.format_map({"collection_id": "imports", "document_id": response["id"]} | _OTHERS)
        limit = large.get((method, template), MOST_PLAIN)
        type_name = FORM if limit > limits.most_json and limit != MOST_PLAIN else JSON
        status, said = answer(begun(small, method, path, key=client.key, size=limit + 1, sort=type_name))
        assert status == 413 or "{job_id}" in template, (method, path, said)
        assert status != 413 or f"{limit:,} bytes" in said, (method, path, said)
        seen.add((method, template))
    assert set(large) <= seen
    status, said = answer(begun(small, "PATCH", f"{PREFIX}/collections/imports", key=client.key))
    assert (status, f"{MOST_PLAIN:,}" in said) == (413, True)


TEXTS = (
    "estimate",
    "flows",
    "flows/check",
    "flows/diff",
    "flows/estimate",
    "documents/{document_id}/dry-run",
)
_OTHERS = {
    "flow_id": "x",
    "job_id": "x",
    "order_id": "x",
    "action_id": "x",
    "entity": "x",
    "community": "x",
    "delivery_id": "x",
    "run_id": "x",
    "source_id": "x",
    "chunk": "x",
}
