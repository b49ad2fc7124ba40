"""Input that means no good: a clear refusal, never a 5xx, nothing left behind."""

import json
import os
import shutil
import socket
import time

import pytest

from tests.api.install import PREFIX, ApiInstall, form


@pytest.fixture(scope="module")
def hall(sqlite_template, tmp_path_factory):
    """One installation for all stories here, with low limits: what is refused must leave it as it was."""
    folder = tmp_path_factory.mktemp("hall")
    shutil.copyfile(sqlite_template, folder / "holdfast.db")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
            patch.delenv(name)
        limits = {"most_bytes": 200_000, "most_json": 20_000, "body_pause": 1.0}
        install = ApiInstall(f"sqlite:///{folder}/holdfast.db", folder / "data", **limits)
    yield install
    install.close()


JUNK = [
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "%ff%fe",
    "%0d%0aX-Evil:%20yes",
    "a'%20OR%201=1--",
    "%f0%9f%92%a3",
    "x" * 300,
    "%ed%a0%80",
]


@pytest.mark.parametrize("junk", JUNK)
def test_an_id_that_nothing_can_have_is_not_found(hall, junk):
    """Before any database sees it, and with nothing of it in a header."""
    for path in (f"documents/{junk}", f"collections/{junk}", f"runs/{junk}/log", f"documents/{junk}/chunks"):
        said = hall.client.get(path)
        assert said.status == 404
        assert "x-evil" not in said.headers


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\\\Users\\\\me\\\\plan.txt", "plan.txt"),
        ("/absolute/name.txt", "name.txt"),
        ("..", ""),
        ("na\u00efve \u6587\u4ef6.txt", "na\u00efve \u6587\u4ef6.txt"),
    ],
)
def test_where_a_file_lay_is_forgotten(hall, given, kept):
    """Only the last part of its name is kept, and it names no place here."""
    hall.client.collection()
    said = hall.client.upload("collections/shelf/documents", given.encode(), given)
    assert said.status == 202
    assert said.json["document"]["name"] == kept


@pytest.mark.parametrize("name", ["a\tb.txt", "a\x1b[31m.txt", "a\u202etxt.exe", "a\x7f.txt", "n" * 3000])
def test_a_name_that_deceives_is_refused(hall, name):
    """Control characters change what a terminal or a page shows."""
    hall.client.collection()
    said = hall.client.upload("collections/shelf/documents", b"words", name)
    assert (said.status, said.code) == (400, "bad_name")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'"text"',
        b"\xff\xfe",
        b"[" * 10_000,
        b'{"text": 5}',
        b'{"text": "a", "url": "http://x"}',
        b"{}",
        b'{"text": ""}',
        b'{"text": "a", "surprise": 1}',
        b'{"text": "a", "priority": 10}',
        b'{"text": "a", "priority": true}',
        b'{"text": "a", "lane": "fast"}',
        b'{"text": "a", "title": "\\u0000"}',
        b'{"text": "\\ud800"}',
        b'{"text": "a", "options": {"chunk_size": 1e400}}',
        b'{"text": "a", "options": {"delimiter": "\\u0000"}}',
        b'{"url": "file:///etc/passwd"}',
        b'{"url": "gopher://x/"}',
        b'{"url": "http://"}',
        b'{"url": "http://user:pass@127.0.0.1/"}',
        b'{"url": "http://127.0.0.1:1/"}',
    ],
)
def test_a_body_of_the_wrong_form_is_refused(hall, body):
    """400 with the one shape; what was sent is not repeated at length."""
    path = f"collections/{hall.client.collection('empty')}/documents"
    said = hall.client.post(path, raw=body, headers={"Content-Type": "application/json"})
    assert said.status == 400, said.raw
    assert len(said.raw) < 3000
    assert hall.client.get(path).json["documents"] == []


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"--b",
        b"--b\r\n\r\n",
        b'--b\r\nContent-Disposition: form-data; name="other"\r\n\r\nx\r\n--b--\r\n',
        b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nno file\r\n--b--\r\n',
        form("b", b"x", "a.txt", {"priority": "many"}),
        form("b", b"x", "a.txt", {"options": "{"}),
        form("b", b"x", "a.txt", {"surprise": "1"}),
        form("b", b"x", "a.txt", {f"f{n}": "1" for n in range(20)}),
    ],
)
def test_a_form_of_the_wrong_form_is_refused(hall, raw):
    """Missing, broken, or with more than a form may have."""
    hall.client.collection()
    head = {"Content-Type": "multipart/form-data; boundary=b"}
    assert hall.client.post("collections/shelf/documents", raw=raw, headers=head).status == 400
    assert hall.client.post("collections/shelf/documents", raw=raw, headers={}).status == 400


@pytest.mark.parametrize(
    "query",
    [
        "search?collection=shelf",
        "search?q=x",
        "search?collection=shelf&q=",
        "search?collection=shelf&q=x&k=0",
        "search?collection=shelf&q=x&k=99999999999999999999",
        "search?collection=shelf&q=x&mode=magic",
        "events?limit=0",
        "events?cursor=x",
        "events?cursor=-1",
        "events?cursor=99999999999999999999999",
        "orders?state=settled",
        "bill?by=everything",
        "collections/shelf/documents?cursor=%00",
        "collections/shelf/documents?limit=1e3",
    ],
)
def test_a_question_of_the_wrong_form_is_refused(hall, query):
    """Each parameter has its range."""
    hall.client.collection()
    assert hall.client.get(query).status == 400


def test_any_words_may_be_searched_for(hall):
    """Operators of query languages, quotes, NUL and half characters are words like others, or nothing."""
    hall.client.indexed("Some words.")
    for words in (
        '"',
        "%00",
        "a%20AND%20(",
        "*",
        "%27;%20DROP%20TABLE%20documents;--",
        "%ed%a0%80",
        "x" * 9000,
    ):
        assert hall.client.get(f"search?collection=shelf&q={words}").status == 200
        assert hall.client.get(f"search?collection=shelf&q=x&document={words}").status == 200


def test_a_body_over_the_limit_is_refused_whether_it_says_so_or_not(hall):
    """413 for a file, a text and anything else, each with a limit of its own."""
    hall.client.collection()
    said = hall.client.upload("collections/shelf/documents", b"x" * 300_000)
    assert (said.status, said.code) == (413, "too_large")
    said = hall.client.upload("collections/shelf/documents", b"x" * 201_000)
    assert (said.status, said.code) == (413, "too_large")
    assert hall.client.post("collections/shelf/documents", {"text": "x" * 30_000}).status == 413
    assert hall.client.post("collections", {"title": "x" * 70_000}).status == 413
    assert list((hall.settings.data_dir / "blobs" / "partial").iterdir()) == []
    with talking(hall, "Transfer-Encoding: chunked") as line:
        head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        line.sendall(b"%x\r\n%s\r\n" % (len(head), head))
        for _ in range(10):
            line.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        assert answer(line) == 413


def talking(install, header, path="collections/shelf/documents", sort="multipart/form-data; boundary=b"):
    """A connection on which a request has been begun."""
    line = socket.create_connection(("127.0.0.1", install.port), timeout=10)
    head = f"POST {PREFIX}/{path} HTTP/1.1\r\nHost: 127.0.0.1:{install.port}\r\nContent-Type: {sort}\r\n"
    line.sendall(f"{head}{header}\r\n\r\n".encode())
    return line


def answer(line):
    """The status of the answer; 0 when the connection was closed before it could be read."""
    try:
        return int(line.recv(65536).split(b" ", 2)[1])
    except (OSError, IndexError):
        return 0


def test_a_client_that_stops_in_the_middle_is_not_waited_for(hall):
    """408 after a pause; meanwhile others are served."""
    hall.client.collection()
    lines = [talking(hall, "Content-Length: 1000") for _ in range(60)]
    began = time.monotonic()
    assert hall.client.get("collections").status == 200
    for line in lines:
        assert answer(line) == 408
        line.close()
    assert time.monotonic() - began < 30  # one after the other they would take sixty pauses of a second


def test_a_client_that_goes_away_leaves_nothing(hall):
    """The half of an upload is thrown away."""
    hall.client.collection("empty")
    line = talking(hall, "Content-Length: 100000", "collections/empty/documents")
    line.sendall(b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhalf')
    line.close()
    assert hall.client.get("collections/empty/documents").json["documents"] == []
    assert list((hall.settings.data_dir / "blobs" / "partial").iterdir()) == []


def test_a_header_cannot_smuggle_another(hall):
    """What a client sends is in no header of an answer."""
    with talking(hall, "Content-Length: 2\r\nIdempotency-Key: a\rX-Evil: yes", "collections", "json") as line:
        line.sendall(b"{}")
        said = line.recv(65536)
    assert b"X-Evil" not in said
    assert said.split(b" ")[1] in {b"400", b"201"}


def test_every_route_speaks_of_errors_in_one_shape(hall):
    """Unknown ids, bodies that are no JSON, other methods: always a code and a sentence."""
    for method, template in hall.routes():
        path = template.replace("{", "").replace("}", "")
        head = {"Content-Type": "application/json"}
        if method != "GET":
            said = hall.client.call(method, path, raw=b"{", headers=head)
            assert 400 <= said.status < 500, (method, path)
        elif "{" in template:
            assert hall.client.call(method, path).status == 404
        said = hall.client.call("TRACE" if method != "PATCH" else "PUT", path)
        assert (said.status, said.code) == (405, "method_not_allowed")
        assert said.headers["allow"]
    for path in ("/nowhere", "/api/v1", "/api/v2/collections", "/api/v1/collections/", "//"):
        assert hall.client.get(path).code == "not_found"


def test_openapi_is_complete(hall):
    """Every route has a name, a sentence, what it answers, and the shape of its errors."""
    described = hall.client.get("openapi.json").json
    names = []
    for path, methods in described["paths"].items():
        for method, output in methods.items():
            names.append(output["operationId"])
            assert output["description"], path
            assert output["responses"]["default"]["content"]["application/json"], (method, path)
            assert any(status.startswith("2") for status in output["responses"]), (method, path)
            assert (
                method in {"get", "delete"}
                or path.split("/")[-1] in {"refresh", "cancel", "resend", "retry", "test"}
                or ("requestBody" in output)
            ), (method, path)
            assert path in {"/healthz", "/readyz"} or output["security"], path
    assert len(set(names)) == len(names)
    assert json.dumps(described).count("HTTPValidationError") == 0
