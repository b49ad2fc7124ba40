"""`holdfast mcp` as a client starts it: over the local installation, and over a server elsewhere."""

import json
import os
import subprocess
import sys
from contextlib import closing

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from holdfast.core.errors import HoldfastError
from holdfast.integrations.remote_library import RemoteLibrary
from holdfast.service.access import Scope
from tests.api.install import ApiInstall
from tests.mcp.conftest import TOWER, run, told


@pytest.fixture
def quick(sqlite_url, tmp_path):
    """An installation on SQLite: what a database decides is in the tests of `/mcp`."""
    installation = ApiInstall(sqlite_url, tmp_path / "data")
    yield installation
    installation.close()


def started(install, *words, **environ):
    """A client that starts the command with settings of its own."""
    env = {"HOLDFAST_DATA_DIR": str(install.runtime.settings.data_dir)}
    return Client(
        StdioServerParameters(
            command=sys.executable, args=["-m", "holdfast.cli", "mcp", *words], env={**env, **environ}
        )
    )


def test_a_client_uses_the_installation_of_this_machine(quick):
    """No server is needed; the whole document comes back in its parts; links lead to the web UI."""
    document = quick.client.indexed(TOWER, title="Towers")["id"]

    async def story():
        async with started(quick, HOLDFAST_DATABASE_URL=quick.runtime.settings.database) as client:
            hits = told(await client.call_tool("search", {"query": "tower", "collections": ["shelf"]}))
            assert hits["results"][0]["url"].startswith(f"http://127.0.0.1:8642/documents/{document}")
            part = told(await client.call_tool("fetch", {"id": document, "offset": 4}))
            assert part["text"] == TOWER[4:]
            assert (await client.read_resource(f"holdfast://documents/{document}")).contents[0].text == TOWER

    run(story)


def test_a_client_uses_a_server_with_a_key_from_the_environment(quick):
    """The same tools over the API; without the key it says what is missing."""
    document = quick.client.indexed(TOWER, title="Towers")["id"]
    key = quick.access.make(tenant="default", name="reader", scopes=[Scope.READ]).token
    url = f"http://127.0.0.1:{quick.port}"

    async def story():
        async with started(quick, "--url", url, HOLDFAST_API_KEY=key) as client:
            hits = told(await client.call_tool("search", {"query": "how tall is the tower"}))["results"]
            assert (hits[0]["id"], hits[0]["page"]) == (document, 1)
            assert told(await client.call_tool("fetch", {"id": document}))["text"] == TOWER
            answer = told(await client.call_tool("ask", {"question": "How tall is the Eiffel Tower?"}))
            assert answer["sources"][0]["url"].startswith(f"{url}/documents/{document}?at=")
            assert [each.name for each in (await client.list_resources()).resources] == ["Towers"]

    run(story)
    with closing(RemoteLibrary(url)) as library, pytest.raises(HoldfastError, match="send a key") as refused:
        library.search("tower")
    assert refused.value.code == "key_needed"


def test_without_the_extra_one_line_names_it():
    """The SDK is hidden from the command, as if it had never been installed."""
    program = (
        "import sys; sys.modules['mcp'] = None; sys.argv = ['holdfast', 'mcp'];"
        "import holdfast.cli; sys.exit(holdfast.cli.main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert 'holdfast mcp needs the mcp extra: pip install "holdfast[mcp]" [driver_missing]' in done.stderr


def test_standard_output_has_nothing_but_the_protocol(quick):
    """Every line is a message, whatever is sent: what is no request, and a search that logs and warns."""
    quick.client.indexed(TOWER, title="Towers")
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        "garbage",
        {"jsonrpc": "2.0", "id": 2, "method": "nothing"},
        {
            "jsonrpc": "2.0",
            "id": 3,
            "method": "tools/call",
            "params": {"name": "search", "arguments": {"query": "tower"}},
        },
    ]
    env = {
        **os.environ,
        "HOLDFAST_DATA_DIR": str(quick.runtime.settings.data_dir),
        "HOLDFAST_LOG_LEVEL": "debug",
    }
    env["HOLDFAST_DATABASE_URL"] = quick.runtime.settings.database
    command = [sys.executable, "-m", "holdfast.cli", "mcp"]
    with subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        for line in lines:
            process.stdin.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
        process.stdin.flush()
        replies = {}
        while 3 not in replies:
            reply = json.loads(process.stdout.readline())
            assert reply["jsonrpc"] == "2.0"
            replies[reply.get("id")] = reply
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait(30) == 0
    assert replies[3]["result"]["structuredContent"]["results"][0]["title"] == "Towers"
    assert replies[2]["error"]["code"] == -32601
