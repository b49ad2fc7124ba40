"""A document from a URL: within limits, and only from where it is allowed."""

import gzip
import io
import shutil
import socket
import ssl
import subprocess
import threading
import zlib

import pytest

from holdfast.core.errors import WorkError
from holdfast.documents import addresses
from holdfast.documents.fetch import Fetched, FetchLimits, NotModified, RequestDetails, Validators, fetch
from tests.documents.sites import Site, public_once

LOCAL = FetchLimits(allow_private=True, seconds=10.0)


@pytest.fixture
def site():
    running = Site()
    yield running
    running.close()


def get(url, limits=LOCAL, **options):
    into = io.BytesIO()
    return fetch(url, into, limits=limits, **options), into.getvalue()


def code_of(url, limits=LOCAL, **options):
    with pytest.raises(WorkError) as caught:
        get(url, limits, **options)
    return caught.value.code


def test_a_page_is_fetched_with_what_is_needed_to_ask_again(site):
    """The content, where it came from, a name that hints at its format, and the server's validators."""
    site.page("/a", b"<html>", Content_Type="text/html; charset=x", ETag='"1"', Last_Modified="yesterday")
    result, body = get(f"{site.url}/a?q=1#part")
    assert body == b"<html>"
    expected = Validators('"1"', "yesterday")
    assert result == Fetched(f"{site.url}/a?q=1", "a.html", "text/html", 6, expected)


def test_a_version_that_is_known_is_not_sent_again(site):
    """The validators are shown to the server, and 304 means unchanged."""
    url = site.page("/a", status=304)
    known = Validators('"1"', "yesterday")
    assert get(url, known=known) == (NotModified(known), b"")
    headers = site.asked[0][1]
    assert (headers["If-None-Match"], headers["If-Modified-Since"]) == ('"1"', "yesterday")


@pytest.mark.parametrize("status", [204, 304, 404, 429, 500])
def test_a_status_without_content_is_a_failure(site, status):
    """Also 304 where nothing was known."""
    assert code_of(site.page("/a", status=status)) == "url_failed"


@pytest.mark.parametrize(
    ("path", "content_type", "name"),
    [
        ("/", "text/html", "index.html"),
        ("/report.pdf", "application/pdf", "report.pdf"),
        ("/notes.md", "text/plain", "notes.md"),
        ("/page.php", "text/html", "page.php.html"),
        ("/caf%C3%A9", "text/plain", "café.txt"),
    ],
)
def test_the_name_hints_at_the_format(site, path, content_type, name):
    """The end of the path, and the content type where it says more."""
    assert get(site.page(path, b"x", Content_Type=content_type))[0].name == name


def test_a_path_beyond_ascii_is_asked_for_in_ascii(site):
    """People paste addresses as they see them."""
    site.page("/caf%C3%A9", b"x")
    assert get(f"{site.url}/café")[1] == b"x"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/a",
        "file:///etc/passwd",
        "http://",
        "http://user:word@example.com/",
        "http://[::1",
        "a",
    ],
)
def test_only_plain_http_addresses_are_asked(url):
    """Other schemes, credentials and what is no URL are refused before anything is resolved."""
    assert code_of(url) == "url_forbidden"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "10.0.0.1",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "2130706433",
    ],
)
def test_private_addresses_are_refused_by_default(site, host):
    """However they are written; the server there is never asked."""
    site.page("/", b"secret")
    assert code_of(f"http://{host}:{site.port}/", FetchLimits(seconds=5.0)) == "url_forbidden"
    assert site.asked == []


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("64:ff9b::5db8:d822", True),
        ("192.168.1.1", False),
        ("172.16.0.1", False),
        ("100.64.0.1", False),
        ("224.0.0.1", False),
        ("239.1.1.1", False),
        ("240.0.0.1", False),
        ("255.255.255.255", False),
        ("192.0.2.1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("ff02::1", False),
        ("::ffff:93.184.216.34", False),
        ("2002:7f00:1::", False),
        ("64:ff9b::7f00:1", False),
        ("fec0::1", False),
        ("feff::1", False),
        ("64:ff9b::a00:1", False),
        ("64:ff9b:1::5db8:d822", False),
        ("2002:a00:1::1", False),
        ("2002:5db8:d822::1", True),
        ("2001:0:5db8:d822::", False),
        ("2606:2800:220:1::5efe:a00:1", False),
        ("2606:2800:220:1:200:5efe:7f00:1", False),
        ("::a00:1", False),
        ("3fff::1", False),
        ("2001:db8::1", False),
        ("5f00::1", False),
        ("4000::1", False),
        ("192.88.99.1", False),
        ("192.0.0.9", False),
        ("198.18.0.1", False),
        ("nonsense", False),
    ],
)
def test_only_the_public_internet_is_public(address, public):
    """Loopback, private, link-local, multicast, reserved, and what hides one of them in IPv6, are not."""
    assert addresses.is_public(address) is public


def test_the_address_that_was_checked_is_the_one_connected_to(site, monkeypatch):
    """A name that changes its address after the check leads nowhere: it is resolved once and not again."""
    site.page("/", b"x")
    answers = [
        [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", site.port))],
        OSError("asked twice"),
    ]
    real = socket.getaddrinfo

    def resolve(host, *arguments, **options):
        if host != "rebind.example":
            return real(host, *arguments, **options)
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(addresses.socket, "getaddrinfo", resolve)
    assert get(f"http://rebind.example:{site.port}/")[1] == b"x"
    assert site.asked[0][1]["Host"] == f"rebind.example:{site.port}"
    assert len(answers) == 1


def test_redirects_are_followed(site):
    """To where they lead, relative ones too."""
    site.page("/a", status=302, Location="/b?x=1")
    site.page("/b", status=301, Location=f"{site.url}/c")
    site.page("/c", b"end")
    result, body = get(f"{site.url}/a")
    assert (result.url, body) == (f"{site.url}/c", b"end")


@pytest.mark.parametrize("target", ["http://[", "http://[::1/", "//[", "http://a:b:c/", "http://\xff/"])
def test_a_redirect_to_what_is_no_url_is_a_failed_fetch(site, target):
    """It is said in a code, and is no defect of ours."""
    site.page("/", status=302, Location=target)
    assert code_of(f"{site.url}/") in {"url_failed", "url_forbidden"}


def test_an_etag_of_any_bytes_is_shown_to_its_server_again(site):
    """As it came, though it is no ASCII."""
    url = site.page("/", b"words", ETag='"caf\xe9"')
    result, _ = get(url)
    assert result.validators.etag == '"caf\xe9"'
    fetch(url, io.BytesIO(), known=result.validators, limits=FetchLimits(allow_private=True))
    assert site.asked[-1][1]["If-None-Match"] == '"caf\xe9"'


def test_a_refusal_tells_nothing_of_the_names_inside(monkeypatch):
    """What a name server inside answers is not repeated."""
    inside = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.1.2.3", 80))]
    monkeypatch.setattr(addresses.socket, "getaddrinfo", lambda *_, **__: inside)
    with pytest.raises(WorkError) as caught:
        fetch("http://ledger.internal/", io.BytesIO())
    assert caught.value.message == "the URL may not be fetched: ledger.internal is not on the public internet"


def test_redirects_end(site):
    """Five may be followed, not six."""
    for number in range(6):
        site.page(f"/{number}", status=307, Location=f"/{number + 1}")
    site.page("/6", b"end")
    assert code_of(f"{site.url}/0") == "url_failed"
    assert get(f"{site.url}/1")[1] == b"end"


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:{port}/secret", "file:///etc/passwd", "http://[::1]:{port}/"]
)
def test_a_redirect_is_checked_like_the_first_address(site, monkeypatch, target):
    """A public page cannot send us inside."""
    site.page("/", status=302, Location=target.format(port=site.port))
    site.page("/secret", b"secret")
    public_once(monkeypatch)
    assert code_of(f"{site.url}/", FetchLimits(seconds=5.0)) == "url_forbidden"
    assert [path for path, _headers in site.asked] == ["/"]


def test_a_key_goes_only_to_the_host_that_it_is_for(site):
    """A redirect to another origin is followed without the headers of the first."""
    other = Site()
    try:
        other.page("/b", b"end")
        site.page("/a", status=302, Location="/c")
        site.page("/c", status=302, Location=f"{other.url}/b")
        details = RequestDetails((("Authorization", "secret"),))
        assert get(f"{site.url}/a", details=details)[1] == b"end"
        assert [headers.get("Authorization") for _, headers in site.asked] == ["secret", "secret"]
        assert [headers.get("Authorization") for _, headers in other.asked] == [None]
    finally:
        other.close()


def test_a_redirect_that_the_caller_does_not_want_is_not_followed(site):
    """Nor is any redirect of a POST, whose body was meant for one URL."""
    site.page("/a", status=302, Location="/b")
    site.page("/b", b"end")
    assert code_of(f"{site.url}/a", details=RequestDetails(may_follow=lambda _url: False)) == "url_forbidden"
    assert code_of(f"{site.url}/a", details=RequestDetails(body=b"x")) == "url_failed"
    assert [path for path, _headers in site.asked] == ["/a", "/a"]


def test_a_body_is_posted(site):
    """With its length, and the headers that describe it."""
    bodies = []

    def answer(handler):
        bodies.append((handler.command, handler.rfile.read(int(handler.headers["Content-Length"]))))
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b"ok")

    site.pages["/a"] = answer
    details = RequestDetails((("Accept", "text/x"),), b"question")
    assert get(f"{site.url}/a", details=details)[1] == b"ok"
    assert bodies == [("POST", b"question")]
    assert site.asked[0][1]["Accept"] == "text/x"


@pytest.mark.parametrize("encoding", [None, "gzip", "deflate"])
def test_more_bytes_than_allowed_are_not_taken(site, encoding):
    """Counted as they come and as they expand: a bomb of 100 MB stops at the limit."""
    pack = {None: bytes, "gzip": gzip.compress, "deflate": zlib.compress}[encoding]
    size = 100_000_000 if encoding else 5000
    url = site.page("/", pack(b"\0" * size), **({"Content_Encoding": encoding} if encoding else {}))
    into = io.BytesIO()
    with pytest.raises(WorkError) as caught:
        fetch(url, into, limits=FetchLimits(bytes=1000, allow_private=True))
    assert caught.value.code == "url_too_large"
    assert len(into.getvalue()) <= 1000


def test_compressed_content_is_expanded(site):
    """What is kept is the document, not its wrapping."""
    assert get(site.page("/", gzip.compress(b"words " * 100), Content_Encoding="gzip"))[1] == b"words " * 100


@pytest.mark.parametrize(
    ("body", "encoding"),
    [(gzip.compress(b"words " * 100)[:-9], "gzip"), (b"nonsense", "gzip"), (b"x", "br")],
    ids=["cut", "nonsense", "unknown"],
)
def test_damaged_or_unknown_compression_is_a_failure(site, body, encoding):
    """Half of a document is not taken for the whole."""
    assert code_of(site.page("/", body, Content_Encoding=encoding)) == "url_failed"


def test_an_answer_that_stops_early_is_a_failure(site):
    """A cut connection is not the end of a document."""
    url = site.page("/", b"short", Content_Length="100")
    assert code_of(url) == "url_failed"


def test_the_time_is_for_all_of_it(site):
    """A server that drips a byte now and then is cut at the limit, not kept alive by each byte."""
    stop = threading.Event()

    def drip(handler):
        handler.send_response(200)
        handler.end_headers()
        while not stop.wait(0.05):
            try:
                handler.wfile.write(b"x")
            except OSError:
                break

    site.pages["/"] = drip
    try:
        assert code_of(f"{site.url}/", FetchLimits(seconds=0.5, allow_private=True)) == "url_failed"
    finally:
        stop.set()


def test_nobody_listening_is_a_failure():
    """As is a name without an address."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert code_of(f"http://127.0.0.1:{unused.getsockname()[1]}/") == "url_failed"
    assert code_of("http://no-such-name.invalid/") == "url_failed"


@pytest.mark.skipif(not shutil.which("openssl"), reason="makes its certificate with openssl")
def test_the_certificate_is_checked_against_the_name(tmp_path, monkeypatch):
    """The connection goes to the checked address, the certificate must be for the name."""
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=good.example",
    ]
    command += ["-addext", "subjectAltName=DNS:good.example", "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    site = Site(context)
    trusting = ssl.create_default_context(cafile=certificate)
    local = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", site.port))]
    monkeypatch.setattr(addresses.socket, "getaddrinfo", lambda *_a, **_k: local)
    try:
        site.page("/", b"safe")
        assert get(f"https://good.example:{site.port}/", tls=trusting)[1] == b"safe"
        assert code_of(f"https://bad.example:{site.port}/", tls=trusting) == "url_failed"
        assert code_of(f"https://good.example:{site.port}/") == "url_failed"
    finally:
        site.close()


def test_a_disk_that_is_full_here_is_not_a_failure_there(site):
    """What the file raises is passed on as it is."""

    class Full(io.BytesIO):
        def write(self, _data):
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        fetch(site.page("/", b"words"), Full(), limits=LOCAL)
