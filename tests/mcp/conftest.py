"""MCP clients of an installation with a few documents: over HTTP, and as the process that starts a server."""

import json
from contextlib import asynccontextmanager

import anyio
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.api.install import ApiInstall

TOWER = "The Eiffel Tower is 330 metres tall. It was opened on 31 March 1889 in Paris."


@pytest.fixture
def install(database_url, tmp_path):
    installation = ApiInstall(database_url, tmp_path / "data")
    yield installation
    installation.close()


@pytest.fixture
def small(sqlite_url, tmp_path):
    """The same on SQLite alone, for what no database decides."""
    installation = ApiInstall(sqlite_url, tmp_path / "data")
    yield installation
    installation.close()


@asynccontextmanager
async def over_http(install, key=None, mode="auto"):
    """A client of `/mcp`."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with (
        create_mcp_http_client(headers=headers) as http,
        Client(
            streamable_http_client(f"http://127.0.0.1:{install.port}/mcp", http_client=http), mode=mode
        ) as client,
    ):
        yield client


def told(result):
    """What a tool returned; its text and its structure say the same."""
    assert not result.is_error, result.content
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


def run(story):
    """The story of a client, to its end."""
    return anyio.run(story)
