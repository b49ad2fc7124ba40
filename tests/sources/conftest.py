"""What the tests of sources share: a web server on the loopback, and sources that may reach it."""

import tempfile

import pytest

from holdfast.documents.sources.source import SourceError, SourceItem, SourceLimits, SourceSpec
from holdfast.documents.sources.source_types import open_source
from tests.documents.sites import Site


@pytest.fixture
def site():
    """A server whose pages the test sets."""
    running = Site()
    yield running
    running.close()


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path_factory, monkeypatch):
    """Where temporary files are; after each test it is empty."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def opened():
    """`opened(type, options)` is a source that may reach this machine."""

    def source(kind, options, **limits):
        limits = {"allow_private": True, "seconds": 20.0, "bytes": 1_000_000} | limits
        return open_source(SourceSpec(kind, options), SourceLimits(**limits))

    return source


@pytest.fixture
def refused(opened):
    """`refused(type, options)` is the SourceError of a look: its listing, and every item fetched."""

    def error(kind, options, **limits):
        with pytest.raises(SourceError) as caught:
            look(opened(kind, options, **limits))
        return caught.value

    def look(source):
        for item in list(source.list("").items):
            fetched = source.fetch(item, "")
            if fetched is not None:
                fetched.content.close()

    return error


@pytest.fixture
def content():
    """`content(source, external_id)` is the text of an item, and what else was fetched with it."""

    def read(source, item, version=""):
        item = item if isinstance(item, SourceItem) else SourceItem(item, "", "")
        fetched = source.fetch(item, version)
        if fetched is None:
            return None, None
        with fetched.content as file:
            return file.read(), fetched

    return read
