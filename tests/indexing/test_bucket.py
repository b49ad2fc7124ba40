"""Documents whose bytes are in a bucket: handed in on one machine, indexed on another."""

import contextlib

import pytest

from holdfast import bootstrap, settings
from holdfast.core.errors import StoreUnavailableError
from holdfast.documents import blobs_s3
from holdfast.service import maintenance
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from tests.documents import s3_server

WISH = RequestContext()


@pytest.fixture(scope="module")
def endpoint():
    with s3_server.serving() as address:
        yield address


@pytest.fixture
def machines(endpoint, database_url, tmp_path, monkeypatch):
    """Two machines, each with a data folder of its own; they share the database and a bucket."""
    position = s3_server.made(endpoint, "")
    with contextlib.ExitStack() as undo:

        def machine(name):
            mine = {
                "DATABASE_URL": database_url,
                "DATA_DIR": str(tmp_path / name),
                "BLOBS_URL": f"s3://{position.bucket}/docs?endpoint={endpoint}",
                "BLOBS_ACCESS_KEY": "key",
                "BLOBS_SECRET_KEY": "secret",
            }
            for variable, value in mine.items():
                monkeypatch.setenv(f"HOLDFAST_{variable}", value)
            return undo.enter_context(bootstrap.open_runtime(settings.load()))

        yield machine("web"), machine("worker")


def test_a_document_handed_in_on_one_machine_is_indexed_on_another(machines):
    """The worker has never seen the file; what nobody names is gone a day later."""
    web, worker = machines
    services = bootstrap.AppServices(web)
    services.collections.make(WISH, "books")
    added = services.documents.add(
        WISH, "books", [Upload(b"Anchors hold when the copper chain is long.", "a.txt")]
    )[0]
    worker.engine.run_until_idle()
    answer = bootstrap.AppServices(web).search.search("default", "books", "copper chains")
    assert [hit.document_id for hit in answer.hits] == [added.document.id]
    lost = web.shelf.put(b"begun and never named")
    worker.shelf._clock = lambda: blobs_s3.time.time() + 2 * maintenance.KEPT_UNNAMED
    assert maintenance.Shelf(worker.db, worker.shelf)() == 1
    assert (web.shelf.exists(lost.digest), web.shelf.exists(added.document.digest)) == (False, True)


def test_while_the_bucket_is_away_nothing_is_taken_in_and_what_waits_is_done_later(machines, monkeypatch):
    """An upload is refused with the reason; a run is not failed for it."""
    web, worker = machines
    services = bootstrap.AppServices(web)
    services.collections.make(WISH, "books")
    added = services.documents.add(WISH, "books", [Upload(b"Copper.", "a.txt")])[0]
    there = worker.shelf._where
    for shelf in (web.shelf, worker.shelf):
        shelf.close()
        shelf._where = blobs_s3.BucketLocation(
            there.bucket, there.prefix, "http://127.0.0.1:9", None, "key", "secret"
        )
    with pytest.raises(StoreUnavailableError):
        services.documents.add(WISH, "books", [Upload(b"Tin.", "b.txt")])
    worker.engine.work_off(most=1)
    assert services.documents.get("default", added.document.id).status.value != "failed"
    for shelf in (web.shelf, worker.shelf):
        shelf.close()
        shelf._where = there
    worker.engine.run_until_idle()
    assert services.documents.get("default", added.document.id).status.value == "success"
