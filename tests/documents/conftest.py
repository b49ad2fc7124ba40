"""What the tests of documents share: a parser, and files to give it."""

import pytest

from holdfast.core.errors import WorkError
from holdfast.documents.parse.parser import Parser


@pytest.fixture(scope="session")
def parser():
    """One parser for all tests that leave it alive."""
    running = Parser()
    yield running
    running.close()


@pytest.fixture
def keep(tmp_path):
    """`keep(data)` is the path of a file that holds the data."""

    def kept(data, name="document"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return kept


@pytest.fixture
def read(parser, keep):
    """`read(data, name)` is the outline of a document and all its pages."""

    def whole(data, name=""):
        path = keep(data)
        outline = parser.outline(path, name)
        return outline, parser.read(path, outline.format, outline.whole)

    return whole


@pytest.fixture
def failing(read):
    """`failing(data, name)` is the error of a document that cannot be read."""

    def failure(data, name=""):
        with pytest.raises(WorkError) as caught:
            read(data, name)
        return caught.value

    return failure
