"""Every field of every request, wrong in every way: a clear refusal, and nothing is left behind."""

import os
import shutil
import socket

import pytest
from sqlalchemy import func, select

from holdfast.store.base import schema
from tests.api.accepted_requests import OPENAI, TAKEN
from tests.api.install import PREFIX, ApiInstall
from tests.api.test_3_history import an_order

# What no field of ours is, and what some might be.
NEVER = ([[]], {"$gt": ""}, "\ud800")
PERHAPS = (
    "\x00",
    None,
    True,
    -1,
    1e308,
    10**30,
    "",
    "x" * 5000,
    "../../etc/passwd",
    "a\r\nX-Evil: yes",
    "\x1b[31m\u202e",
)
ADDRESSES = [
    "",
    "file:///etc/passwd",
    "gopher://example.org/",
    "http://",
    "http://user:word@example.org/",
    "http://example.org:99999/",
    "http://exa mple.org/",
    "http://example.org/\r\nX-Evil: yes",
    "http://[::1",
    "//example.org/",
    "javascript:alert(1)",
    "http://" + "a" * 3000 + ".example.org/",
]


@pytest.fixture(scope="module")
def install(sqlite_template, tmp_path_factory):
    """One for all stories here, with something of everything; the addresses of its network are forbidden."""
    folder = tmp_path_factory.mktemp("house")
    shutil.copyfile(sqlite_template, folder / "holdfast.db")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
            patch.delenv(name)
        url = f"sqlite:///{folder}/holdfast.db"
        installation = ApiInstall(
            url, folder / "data", fetch_private=False, most_json=20_000, api_rate=100_000.0
        )
    yield installation
    installation.close()


@pytest.fixture(scope="module")
def names(install):
    """The ids of what is there."""
    an_order(install, "an-order")
    document = install.client.indexed("All is ready here.", to="shelf")
    listed = {"type": "urls", "options": {"urls": ["http://127.0.0.1:9/a.txt"]}}
    source = install.client.post("collections/shelf/sources", listed).json["source"]["id"]
    about = {"collection_id": "shelf", "document_id": document["id"], "source_id": source}
    chunk = install.client.get(f"documents/{document['id']}/chunks").json["chunks"][0]["id"]
    return {**about, "order_id": "an-order", "chunk": chunk}


def left(install):
    """How many rows there are in each table, and every file."""
    counts = [
        select(func.count()).select_from(each).scalar_subquery() for each in schema.metadata.sorted_tables
    ]
    rows = install.runtime.db.read(lambda tx: tx.one(select(*counts)))
    return tuple(rows), {path for path in (install.settings.data_dir / "blobs").rglob("*") if path.is_file()}


def astray(body, path=()):
    """The body with one field at a time replaced or left out: (where, what, the body)."""
    for key, value in body.items():
        for wrong in (*NEVER, *PERHAPS):
            yield (*path, key), wrong, {**body, key: wrong}
        if isinstance(value, dict) and key != "schema":
            for where, wrong, inner in astray(value, (*path, key)):
                yield where, wrong, {**body, key: inner}
    yield (*path, "surprise"), NEVER[0], {**body, "surprise": 1}


@pytest.mark.parametrize(
    "route", [name for name in TAKEN if not name.startswith("GET") and name not in OPENAI]
)
def test_a_field_that_is_wrong_is_refused(install, names, route):
    """Never a 5xx; what is refused has changed nothing, and is told of in few words."""
    method, _, template = route.partition(" ")
    path = template.removeprefix("/").format(**names)
    for body in TAKEN[route]:
        for where, wrong, sent in astray(body):
            before = left(install)
            said = install.client.call(method, path, sent)
            output = (route, where, str(wrong)[:40], said.status, said.raw[:300])
            assert said.status < 500, output
            if any(wrong is each for each in NEVER):
                assert said.status in {400, 404, 409}, output
            if said.status in {400, 404, 413}:
                assert left(install) == before, output
                assert len(said.raw) < 3000, output
                assert "x-evil" not in said.headers, output


@pytest.mark.parametrize(
    "route", [name for name in TAKEN if not name.startswith("GET") and name not in OPENAI]
)
def test_a_body_that_is_no_object_is_refused(install, names, route):
    """Too deep, too large, another sort of thing, or nothing at all."""
    method, _, template = route.partition(" ")
    path = template.removeprefix("/").format(**names)
    before = left(install)
    deep = b'{"params":' * 5000 + b"1" + b"}" * 5000
    for raw in (
        b"",
        b"null",
        b"[]",
        b"7",
        b'"x"',
        b"{",
        b"\xff\xfe",
        b"[" * 9000,
        deep,
        b'{"a":' + b"1" * 90_000 + b"}",
    ):
        said = install.client.call(method, path, raw=raw, headers={"Content-Type": "application/json"})
        assert said.status in {400, 413}, (raw[:20], said.raw)
    assert left(install) == before


@pytest.mark.parametrize("url", ADDRESSES)
def test_an_address_that_is_none_is_refused_wherever_one_is_asked_for(install, names, url):
    """Of a document, of a webhook, of a callback."""
    before = left(install)
    bodies = {
        "documents": {"url": url},
        "actions": {"sort": "webhook", "params": {"url": url}},
        "jobs": {"kind": "qa", "callback": {"url": url}},
    }
    for name, body in bodies.items():
        said = install.client.post(f"collections/shelf/{name}", body)
        assert said.status == 400, (name, url, said.raw)
        assert "x-evil" not in said.headers
    assert left(install) == before


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "2130706433",
        "0x7f.1",
        "127.1",
        "169.254.169.254",
        "[::ffff:10.0.0.1]",
    ],
)
def test_a_document_of_this_network_is_not_fetched(install, names, host):
    """Whatever its address is written like; nobody is even asked."""
    before = left(install)
    with socket.create_server(("127.0.0.1", 0)) as site:
        site.settimeout(0.0)
        port = site.getsockname()[1]
        said = install.client.post("collections/shelf/documents", {"url": f"http://{host}:{port}/"})
        assert (said.status, said.code) == (400, "url_forbidden"), said.raw
        with pytest.raises(BlockingIOError):
            site.accept()
    assert left(install) == before


@pytest.mark.parametrize(
    "junk", ["..%2f..", "%00", "%0d%0aX-Evil:%20yes", "x" * 300, "%ed%a0%80", "1e5", "-1"]
)
def test_an_id_that_nothing_can_have_is_not_found_on_any_route(install, junk):
    """404 with the same words on all of them, and nothing of it in a header."""
    for method, template in install.routes():
        if "{" not in template:
            continue
        path = template
        while "{" in path:
            head, _, rest = path.partition("{")
            path = head + junk + rest.partition("}")[2]
        body = TAKEN.get(f"{method} {template.removeprefix(PREFIX)}", [{}])[0] if method != "GET" else None
        said = install.client.call(method, path, body)
        assert said.status == 404, (method, path, said.raw)
        assert "x-evil" not in said.headers


def test_ten_gigabytes_are_refused_before_they_are_sent(install, names):
    """By what the client says of them."""
    head = f"POST {PREFIX}/collections/shelf/documents HTTP/1.1\r\nHost: 127.0.0.1:{install.port}\r\n"
    more = f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {10 * 2**30}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", install.port), timeout=30) as line:
        line.sendall(f"{head}{more}".encode())
        said = line.recv(65536)
    assert said.split(b" ", 2)[1] == b"413"
