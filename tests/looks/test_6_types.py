"""Looks at sources of every type that is reached over the network, on servers of this machine."""

import shutil
import threading

import pytest

from holdfast.documents import blobs_s3
from tests.documents import s3_server
from tests.documents.sites import Site
from tests.looks.install import WISH, SourcesInstall, counts
from tests.sources.git_server import Repository


@pytest.fixture
def site():
    running = Site()
    yield running
    running.close()


@pytest.fixture
def reaching(sqlite_url, tmp_path):
    """An installation that may reach this machine."""
    install = SourcesInstall(sqlite_url, tmp_path / "data", tmp_path / "folder", fetch_private=True)
    yield install
    install.close()


def test_a_page_without_a_file_name_is_called_by_its_title(site, reaching):
    """Otherwise every front page would have the name of its host."""
    site.page("/", b"<title>All about apples</title><p>Apples are red.", Content_Type="text/html")
    reaching.sources.add(WISH, "shelf", "urls", {"urls": [site.url]})
    reaching.work()
    (document,) = reaching.shelf().values()
    assert (document.title, document.name) == ("All about apples", "All about apples.html")


def test_pages_are_fetched_four_at_a_time(site, reaching):
    """Each waits until four are there, and a fifth never is; every page becomes its document."""
    four, lock, active, most = threading.Barrier(4), threading.Lock(), [], []

    def answer(handler):
        with lock:
            active.append(handler.path)
            most.append(len(active))
        four.wait(60)
        with lock:
            active.remove(handler.path)
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(f"This is {handler.path}.".encode())

    urls = [f"{site.url}/{number}.txt" for number in range(8)]
    site.pages |= {f"/{number}.txt": answer for number in range(8)}
    reaching.sources.add(WISH, "shelf", "urls", {"urls": urls})
    reaching.work()
    assert len(reaching.shelf()) == 8
    assert max(most) == 4


@pytest.mark.skipif(not shutil.which("git"), reason="serves repositories with git")
def test_documents_come_from_every_type_of_source_and_only_once(site, reaching, tmp_path):
    """The first look takes them in, the second finds nothing to do, and what changes is taken in again."""
    repository = Repository(tmp_path, site)
    with s3_server.serving() as endpoint:
        location = s3_server.made(endpoint)
        client = blobs_s3._client(location)

        def publish(word):
            site.page("/page.txt", f"A page of {word}.".encode(), Content_Type="text/plain")
            site.page("/post.txt", f"A post of {word}.".encode(), Content_Type="text/plain")
            post = f"<item><guid>1</guid><link>{site.url}/post.txt</link><title>{word}</title></item>"
            site.page("/feed.xml", f"<rss>{post}</rss>".encode())
            site.page("/leaf.txt", f"A leaf of {word}.".encode(), Content_Type="text/plain")
            leaf = f"<url><loc>{site.url}/leaf.txt</loc><lastmod>{word}</lastmod></url>"
            site.page("/sitemap.xml", f"<urlset>{leaf}</urlset>".encode())
            client.put_object(
                Bucket=location.bucket, Key="docs/object.txt", Body=f"An object of {word}.".encode()
            )
            repository.commit(repository.files({"docs/file.md": f"A file of {word}.".encode()}))

        keys = {"access_key_id": "key", "secret_access_key": "secret"}
        options = {
            "urls": {"urls": [f"{site.url}/page.txt"]},
            "feed": {"url": f"{site.url}/feed.xml"},
            "sitemap": {"url": f"{site.url}/sitemap.xml"},
            "s3": {"bucket": location.bucket, "endpoint": endpoint, **keys},
            "git": {"url": repository.url},
        }
        publish("apples")
        sources = [reaching.sources.add(WISH, "shelf", kind, own)[0] for kind, own in options.items()]
        reaching.work()
        assert [counts(reaching.again(source)) for source in sources] == [{"new": 1}] * 5
        assert set(reaching.shelf()) == {"page.txt", "post.txt", "leaf.txt", "object.txt", "file.md"}
        assert all(document.visible for document in reaching.shelf().values())
        assert [counts(reaching.look(source)) for source in sources] == [{"unchanged": 1}] * 5
        publish("pears")
        assert [counts(reaching.look(source)) for source in sources] == [{"changed": 1}] * 5
        client.close()
    reaching.work()
    assert [document.generation for document in reaching.shelf().values()] == [2] * 5
