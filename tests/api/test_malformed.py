"""Whatever a stranger writes into a path, a query or a header: it is answered, and never with a 500."""

import contextlib
import itertools
import socket
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from holdfast.testing.meter import Meter
from tests.api.install import PREFIX, ApiInstall

TEXTS = (
    "",
    "[",
    "%00",
    "%ff%fe",
    "%ed%a0%80",
    "-1",
    "9" * 18,
    "9" * 100,
    "%C2%B2",
    "1e400",
    "nan",
    "0001-01-01T00:00:00%2B14:00",
    "9999-12-31T23:59:59-14:00",
    "1.2",
    "1.2.3",
    "9.9999999999999999999",
    "a" * 5000,
    "%F0%9F%92%A3",
    "..%2f..",
    "true",
    "=",
    "eyJ4IjogMX0",
)
VALUES = (
    b"",
    b"[",
    b"http://[",
    b"http://[::1",
    b"//",
    b"\xff\xfe",
    b"caf\xc3\xa9",
    b"\xc2\xb2",
    b"9" * 100,
    b"-1",
    b'"' + b"9" * 400 + b'"',
    b"bytes=9-1",
    b"a" * 3000,
    b"=;=;,",
    b"Bearer ",
    b"multipart/form-data",
    b"multipart/form-data; boundary=",
    b"application/json; charset=\xff",
)
HEADERS = (
    "Host",
    "Origin",
    "Authorization",
    "X-API-Key",
    "Cookie",
    "Idempotency-Key",
    "If-Match",
    "If-None-Match",
    "Last-Event-ID",
    "Content-Type",
    "Content-Length",
    "Sec-Fetch-Site",
    "X-Forwarded-Proto",
    "X-Holdfast-Page",
    "X-Holdfast-Part",
    "Traceparent",
    "Accept",
    "Range",
)
# A machine that is very busy answers late; a server that hangs never does.
SECONDS = 120.0
AT_A_TIME = 8
PAGES = ("/", "/search", "/sign-in", "/bill", "/operations", "/jobs", "/documents/x", "/collections/shelf")


def status(install, method, path, headers=()):
    """What is answered to these very bytes; None when the connection is closed without a word."""
    sent = {"Host": f"127.0.0.1:{install.port}".encode(), "Connection": b"close"} | dict(headers)
    head = b"".join(name.encode() + b": " + value + b"\r\n" for name, value in sent.items())
    line = socket.create_connection(("127.0.0.1", install.port), timeout=SECONDS)
    with contextlib.closing(line):
        line.sendall(f"{method} {path} HTTP/1.1\r\n".encode() + head + b"\r\n")
        said = line.recv(65536)
    return int(said.split(b" ", 2)[1]) if said else None


def answered(install, requests):
    """What is answered to each of these requests: (method, path, headers). Several are sent at a time.

    Some are answered only after the pause that a body may have; the others need not wait for them.
    """
    requests = list(requests)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield from zip(requests, pool.map(lambda one: status(install, *one), requests), strict=True)


def parameters(install):
    """Every query parameter of every route: method, path and name."""
    for method, path in install.routes():
        for each in install.openapi["paths"][path][method.lower()].get("parameters", ()):
            if each["in"] == "query":
                yield method, path.format_map(Known()), each["name"]


class Known(dict):
    """Ids of things that are there, as far as there are any."""

    def __missing__(self, name):
        return "shelf" if name == "collection_id" else self.get(name, "x")


def test_no_query_makes_a_500(install):
    """Every parameter of every route with each text, beside the others that the route needs."""
    client = install.client
    document = client.indexed("Some words.")
    for method, path, name in parameters(install):
        where = path.replace("documents/x", f"documents/{document['id']}")
        rest = {"collection": "shelf", "q": "words"} if path.endswith("/search") else {}
        rest |= {"by": "day"} if path.endswith("/bill") else {}
        beside = "".join(f"&{key}={value}" for key, value in rest.items() if key != name)
        for text in TEXTS:
            if method == "GET":
                result = status(install, method, f"{where}?{name}={text}{beside}")
                assert result is not None, (path, name, text)
                assert result < 500, (path, name, text)


def test_no_sort_takes_a_cursor_of_another(install):
    """Cursors are texts of ours that anybody can change."""
    install.client.indexed("Some words.")
    sorts = ("id", "title", "-title", "status", "updated", "-updated", "pages", "cost", "-cost")
    for type_name, text in itertools.product(sorts, TEXTS):
        path = f"{PREFIX}/collections/shelf/documents?sort={type_name}&cursor={text}"
        assert status(install, "GET", path) < 500, (type_name, text)
    for by, text in itertools.product(("model", "day", "document", "run", "collection"), TEXTS):
        assert status(install, "GET", f"{PREFIX}/bill?by={by}&cursor={text}") < 500, (by, text)


ROUTES = (
    *(("GET", f"{PREFIX}/{path}") for path in ("collections", "events", "events/stream")),
    *(("POST", f"{PREFIX}/{path}") for path in ("collections", "collections/shelf/documents", "imports")),
    *(("PATCH", f"{PREFIX}/documents/x"), ("POST", "/sign-in")),
    *(("GET", path) for path in PAGES),
)


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=[f"{method} {path}" for method, path in ROUTES])
def test_no_header_makes_a_500(small, method, path):
    """Every header with each value, at a route, at one that changes something, and at each page."""
    small.client.collection()
    requests = ((method, path, [pair]) for pair in itertools.product(HEADERS, VALUES))
    for request, result in answered(small, requests):
        assert result is None or result < 500, request


def test_with_keys_no_header_makes_a_500_either(small):
    """What nobody can be identified by is 401."""
    client = small.key("default")
    requests = []
    for name, value in itertools.product(HEADERS, VALUES):
        requests.append(("GET", f"{PREFIX}/collections", [(name, value)]))
        requests.append(("GET", "/", [("Cookie", b"holdfast_session=" + value), (name, value)]))
    for request, result in answered(small, requests):
        assert result is None or result < 500, request
    assert client.get("collections").status == 200


def test_no_page_makes_a_500(install):
    """Their parameters, and the parts of their paths."""
    document = install.client.indexed("Some words.")
    pages = (
        f"/documents/{document['id']}",
        "/collections/shelf",
        "/search",
        "/jobs",
        "/bill",
        "/operations",
        "/",
    )
    names = ("q", "cursor", "at", "status", "sort", "page", "collection", "suggest", "by", "state", "kind")
    every = (
        1 if install.runtime.db.engine.dialect.name == "sqlite" else 3
    )  # each page has each text there, too
    for number, (page, name) in enumerate(itertools.product(pages, names)):
        for text in TEXTS[number % every :: every]:
            assert status(install, "GET", f"{page}?{name}={text}") < 500, (page, name, text)
    for start, text in itertools.product(("/documents/", "/collections/", "/jobs/", "/static/x/"), TEXTS):
        assert status(install, "GET", f"{start}{text}") < 500, (start, text)


@pytest.mark.parametrize("words", ["\x00", "\ud800", "[", "a" * 9999, "\x1b[31m"])
def test_no_question_makes_a_500_where_it_is_paid_for(sqlite_url, tmp_path, words):
    """What goes to a provider and into the ledger is text of a stranger, too."""
    with Meter() as meter:
        provider = {"embedding_provider": "openai", "embedding_base_url": meter.base_url}
        install = ApiInstall(sqlite_url, tmp_path / "data", embedding_api_key="key", **provider)
        install.client.collection()
        text = quote(words, errors="surrogatepass")
        assert status(install, "GET", f"{PREFIX}/search?collection=shelf&q={text}") < 500
        install.close()
