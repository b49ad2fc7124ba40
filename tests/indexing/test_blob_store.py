"""Bytes are only looked for where they were kept: blob store and database know each other by an id."""

import shutil

import pytest

from holdfast import bootstrap, settings
from holdfast.core.errors import BadRequestError
from holdfast.documents.blobs import LocalBlobs
from holdfast.documents.blobs_s3 import S3Blobs
from holdfast.service import blob_identity
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from holdfast.store.features import open_database
from tests.documents import s3_server


@pytest.fixture(scope="module")
def server():
    with s3_server.serving() as endpoint:
        yield endpoint


@pytest.fixture(params=["folder", "bucket"])
def store(request, tmp_path, server):
    """`store("a")` is a blob store, of the same name the same one."""
    places = {}

    def named(name):
        if request.param == "folder":
            return LocalBlobs(tmp_path / name)
        where = places.setdefault(name, s3_server.made(server))
        return S3Blobs(where, tmp_path / name)

    return named


@pytest.fixture
def db(database_url):
    opened = open_database(database_url)
    yield opened
    opened.close()


def refusal(db, blobs):
    with pytest.raises(BadRequestError) as refused:
        blob_identity.check(db, blobs, "the folder")
    assert refused.value.code == "other_blobs"
    return refused.value.message


def test_a_new_installation_takes_its_store_and_no_other(db, store):
    """The first process chooses the id; one in another folder is refused, also while that is empty."""
    blob_identity.check(db, store("mine"), "the folder")
    blob_identity.check(db, store("mine"), "the folder")
    output = refusal(db, store("other"))
    assert output.startswith("the folder contains no bytes of this installation (it expects ")
    for name in ("HOLDFAST_DATABASE_URL", "HOLDFAST_BROKER_URL", "HOLDFAST_DATA_DIR", "HOLDFAST_BLOBS_URL"):
        assert name in output
    assert store("other").identity() is None


def test_a_store_of_another_installation_is_refused(db, store, tmp_path):
    """A new database beside somebody else's bytes would have the sweep throw them away."""
    theirs = store("theirs")
    theirs.put(b"their bytes")
    assert "the bytes of another installation (which has no id)" in refusal(db, theirs)
    theirs.identify("feedbeef")
    assert "the bytes of another installation (feedbeef)" in refusal(db, theirs)


def test_a_crash_between_store_and_database_is_mended(db, store):
    """The store was marked and the database was not: the next start takes the id that is there."""
    store("mine").identify("cafe")
    blob_identity.check(db, store("mine"), "the folder")
    assert blob_identity.look(db, store("mine")).database == "cafe"


@pytest.fixture
def installed(database_url, tmp_path, monkeypatch):
    """An installation as an earlier release has left it: a document, and no id anywhere."""
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", database_url)
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(tmp_path / "data"))
    with bootstrap.open_runtime(settings.load()) as runtime:
        services = bootstrap.AppServices(runtime)
        services.collections.make(RequestContext(), "papers")
        services.documents.add(RequestContext(), "papers", [Upload(b"Anchors hold.", "a.txt")])
        yield runtime


def test_an_installation_of_an_earlier_release_is_known_by_its_bytes(installed, tmp_path):
    """Whoever looks elsewhere first does not become the installation."""
    assert "none of the documents' bytes" in refusal(installed.db, LocalBlobs(tmp_path / "elsewhere"))
    bootstrap.check_blobs(installed)
    assert installed.shelf.identity() == blob_identity.look(installed.db, installed.shelf).database


def test_a_store_that_was_moved_is_used_as_it_is_or_adopted(installed, tmp_path):
    """A copy of the folder carries its id; one without it is adopted if the bytes are there."""
    bootstrap.check_blobs(installed)
    shutil.copytree(tmp_path / "data/blobs", tmp_path / "copy")
    blob_identity.check(installed.db, LocalBlobs(tmp_path / "copy"), "the folder")
    (tmp_path / "copy/installation-id").unlink()
    refusal(installed.db, LocalBlobs(tmp_path / "copy"))
    assert blob_identity.adopt(installed.db, LocalBlobs(tmp_path / "copy")).missing == 0
    blob_identity.check(installed.db, LocalBlobs(tmp_path / "copy"), "the folder")
    with pytest.raises(BadRequestError, match="the bytes of 1 of 1 documents are not here"):
        blob_identity.adopt(installed.db, LocalBlobs(tmp_path / "empty"))
