"""A server with three documents, for retrievers of other frameworks."""

import pytest

from holdfast.bootstrap import AppServices
from holdfast.integrations.local_library import LocalLibrary
from tests.api.install import ApiInstall

TEXTS = {
    "Towers": "The Eiffel Tower is 330 metres tall. It was opened on 31 March 1889 in Paris.",
    "Masts": "The mast on the hill is a tower of steel, 180 metres tall.",
    "Castles": "The tower of the castle is 30 metres tall, and older than the town.",
}


@pytest.fixture
def server(sqlite_url, tmp_path):
    """An installation that answers at `url`."""
    installation = ApiInstall(sqlite_url, tmp_path / "data")
    for title, text in TEXTS.items():
        installation.client.indexed(text, title=title)
    yield installation
    installation.close()


@pytest.fixture
def url(server):
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture
def library(server, url):
    """The same installation in this process."""
    return LocalLibrary(AppServices(server.runtime), url)
