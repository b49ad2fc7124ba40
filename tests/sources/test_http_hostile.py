"""Whatever a web server does, a source ends in time, takes little, and says what happened."""

import gzip
import threading

import pytest

from tests.documents.sites import public_once

KINDS = ["feed", "git", "s3", "sitemap", "urls"]
BOMB = gzip.compress(bytes(70_000_000))


def endless(handler):
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b"x" * 65536)
    except OSError:
        pass


def cut(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"half")


def bomb(handler):
    handler.send_response(200)
    handler.send_header("Content-Encoding", "gzip")
    handler.end_headers()
    handler.wfile.write(BOMB)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("page", "code", "part"),
    [
        (endless, "bad_source", "larger than the limit"),
        (bomb, "bad_source", "larger than the limit"),
        (cut, "unreachable", "cannot be fetched"),
    ],
    ids=["endless", "bomb", "cut"],
)
def test_a_bad_response_is_bounded(site, refused, kind, page, code, part):
    """A body without an end, a bomb, and a connection that closes in the middle."""
    site.pages[first_path(kind)] = page
    error = refused(kind, options_of(kind, f"{site.url}/x/"))
    assert (error.code, part in error.message) == (code, True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_slow_server_is_cut_at_the_time_limit(site, refused, kind):
    """A byte now and then keeps nothing alive."""
    stop = threading.Event()

    def drip(handler):
        handler.send_response(200)
        handler.end_headers()
        try:
            while not stop.wait(0.05):
                handler.wfile.write(b"x")
        except OSError:
            pass

    site.pages[first_path(kind)] = drip
    try:
        error = refused(kind, options_of(kind, f"{site.url}/x/"), seconds=0.5)
    finally:
        stop.set()
    assert (error.code, "took longer than 0.5 s" in error.message) == ("unreachable", True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["http://169.254.169.254/latest", "http://127.0.0.1:{port}/secret"])
def test_a_redirect_inside_is_refused(site, refused, monkeypatch, kind, target):
    """A public server cannot send a source to this machine, nor to the keys of its cloud."""
    site.page(first_path(kind), status=302, Location=target.format(port=site.port))
    site.page("/secret", b"secret")
    public_once(monkeypatch)
    error = refused(kind, options_of(kind, f"{site.url}/x/"), allow_private=False)
    assert error.code == ("bad_source" if kind == "s3" else "address_refused")  # a bucket is never elsewhere
    assert [path.partition("?")[0] for path, _headers in site.asked] == [first_path(kind)]


def test_what_is_being_fetched_has_no_name(site, refused, temporary_folder):
    """So that a process that is killed in the middle leaves nothing behind."""
    names = []

    def half(handler):
        cut(handler)
        names.extend(temporary_folder.iterdir())

    site.pages["/x/"] = half
    assert refused("urls", options_of("urls", f"{site.url}/x/")).code == "unreachable"
    assert names == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_private_network_is_refused_by_default(site, refused, kind):
    """The server there is never asked."""
    site.page(first_path(kind), b"secret")
    assert refused(kind, options_of(kind, f"{site.url}/x/"), allow_private=False).code == "address_refused"
    assert site.asked == []


def first_path(kind):
    """What such a source asks for first, if its URL is that of `/x/`."""
    return "/x/info/refs" if kind == "git" else "/x/"


def options_of(kind, url):
    """The options of a source whose first request is for this URL."""
    special = {"urls": {"urls": [url]}, "s3": {"bucket": "x", "endpoint": url.removesuffix("/x/")}}
    return special.get(kind, {"url": url})
