"""A document from an address: fetched, and fetched again only as far as it changed."""

import http.server
import threading

import pytest

from holdfast.core.errors import BadRequestError, WorkError
from holdfast.core.states import Disposition
from holdfast.documents.fetch import FetchLimits
from holdfast.service.documents import Documents
from tests.indexing.install import WISH


class Site:
    """A web server of one page, which knows the version that a client has."""

    def __init__(self):
        self.body, self.etag, self.answers = b"", '"1"', []
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                known = self.headers.get("If-None-Match") == site.etag
                site.answers.append(304 if known else 200)
                self.send_response(site.answers[-1])
                if site.etag:
                    self.send_header("ETag", site.etag)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", "0" if known else str(len(site.body)))
                self.end_headers()
                if not known:
                    self.wfile.write(site.body)

            def log_message(self, *_arguments):
                """Say nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/news"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def show(self, text, etag):
        self.body, self.etag = f"<html><body><p>{text}</p></body></html>".encode(), etag

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def site():
    created = Site()
    yield created
    created.close()


@pytest.fixture
def news(install, site):
    """A document from the site, published."""
    site.show("The harbour froze over.", '"1"')
    taken = install.documents.add_url(WISH, "shelf", site.url)
    install.work()
    return install.document(taken.document.id)


def test_what_is_at_an_address_is_a_document(install, site, news):
    """It keeps where it came from and which version that was, and is found."""
    assert (news.source, news.url, news.etag, news.format) == ("url", site.url, '"1"', "html")
    assert [hit.document_id for hit in install.find("harbour")] == [news.id]


def test_a_refresh_of_what_has_not_changed_does_nothing(install, site, news):
    """The server says 304: no generation, no charge."""
    paid = install.paid()
    taken = install.documents.refresh(WISH, news.id)
    assert site.answers == [200, 304]
    assert (taken.disposition, taken.document.generation) == (Disposition.UNCHANGED, 1)
    assert install.work() == []
    assert install.paid(since=paid) == 0


def test_a_refresh_with_the_same_content_under_a_new_tag_does_nothing_but_keep_the_tag(install, site, news):
    """No generation; the next refresh shows the tag that the server knows, and is told 304."""
    site.etag = '"2"'
    assert install.documents.refresh(WISH, news.id).disposition is Disposition.UNCHANGED
    assert install.documents.refresh(WISH, news.id).disposition is Disposition.UNCHANGED
    assert site.answers == [200, 200, 304]
    assert install.document(news.id).generation == 1


def test_a_refresh_of_what_has_changed_is_a_new_generation(install, site, news):
    """The old text answers until the new one is published; the new version's tag is kept."""
    site.show("The harbour is open again.", '"2"')
    taken = install.documents.refresh(WISH, news.id)
    assert taken.disposition is Disposition.SUPERSEDING
    assert len(install.find("froze")) == 1
    install.work()
    assert install.find("froze") == []
    assert [hit.generation for hit in install.find("harbour open")] == [2]
    assert install.document(news.id).etag == '"2"'


def test_a_refresh_that_becomes_equal_to_another_document_is_refused(install, site, news):
    """The other's id is named, and the document stays as it is."""
    site.show("Twice told.", '"2"')
    other = install.indexed(site.body, "told.html")
    with pytest.raises(BadRequestError) as caught:
        install.documents.refresh(WISH, news.id)
    assert caught.value.code == "same_content"
    assert other.id in caught.value.message
    assert len(install.find("froze")) == 1


def test_an_address_inside_the_network_is_refused_by_default(install, site):
    """A loopback address is not even asked, and no document is made."""
    careful = Documents(install.engine, install.shelf, install.choices, fetching=FetchLimits())
    with pytest.raises(WorkError) as caught:
        careful.add_url(WISH, "shelf", site.url)
    assert caught.value.code == "url_forbidden"
    assert site.answers == []
    assert list(install.documents.walk("default", "shelf")) == []


def test_an_address_with_nothing_at_it_is_refused(install, site):
    """An empty answer is no document."""
    with pytest.raises(BadRequestError) as caught:
        install.documents.add_url(WISH, "shelf", site.url)
    assert caught.value.code == "empty"


def test_only_what_came_from_an_address_can_be_refreshed(install):
    """An upload has none."""
    document = install.indexed("Just words.")
    with pytest.raises(BadRequestError) as caught:
        install.documents.refresh(WISH, document.id)
    assert caught.value.code == "no_url"
