"""`/mcp` as the official client sees it: tools, resources, keys and limits."""

import pytest
from mcp.shared.exceptions import MCPError

from holdfast.mcp import tools
from holdfast.service.access import Scope
from tests.mcp.conftest import TOWER, over_http, run, told


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_finds_reads_and_asks(install, mode):
    """By the protocol of today and by the one with a handshake; hits carry ids to fetch and links to cite."""
    document = install.client.indexed(TOWER, title="Towers")["id"]

    async def story():
        async with over_http(install, mode=mode) as client:
            names = {each.name: each.description for each in (await client.list_tools()).tools}
            assert set(names) == {"search", "fetch", "list_collections", "ask"}
            assert "costs money" in names["ask"]
            assert told(await client.call_tool("list_collections", {}))["collections"][0]["id"] == "shelf"
            hits = told(await client.call_tool("search", {"query": "how tall is the tower"}))["results"]
            assert (hits[0]["id"], hits[0]["title"]) == (document, "Towers")
            assert hits[0]["url"].startswith(f"http://127.0.0.1:{install.port}/documents/{document}?at=")
            whole = told(await client.call_tool("fetch", {"id": hits[0]["id"]}))
            assert (whole["text"], whole["next_offset"]) == (TOWER, None)
            answer = told(await client.call_tool("ask", {"question": "How tall is the Eiffel Tower?"}))
            assert (answer["stand_in"], answer["sources"][0]["document_id"]) == (True, document)
            listed = (await client.list_resources()).resources
            assert [each.uri for each in listed] == [f"holdfast://documents/{document}"]
            assert (await client.read_resource(listed[0].uri)).contents[0].text == TOWER

    run(story)


def test_what_is_wrong_is_told_to_the_model(install):
    """An unknown document, collection or argument is a result that says so; an unknown tool is an error."""
    install.client.indexed(TOWER)

    async def story():
        async with over_http(install) as client:
            for tool, arguments, code in (
                ("fetch", {"id": "0" * 32}, "unknown_document"),
                ("fetch", {"id": "../etc"}, "unknown_document"),
                ("search", {"query": "x", "collections": ["nowhere"]}, "unknown_collection"),
                ("search", {"query": "x", "collections": ["a\x00b"]}, "unknown_collection"),
                ("search", {"query": "x", "filter": {"like": 1}}, "bad_filter"),
                ("search", {"quary": "x"}, "bad_request"),
            ):
                result = await client.call_tool(tool, arguments)
                assert (result.is_error, f"[{code}]" in result.content[0].text) == (True, True), result
            with pytest.raises(MCPError, match="there is no tool"):
                await client.call_tool("delete", {})
            with pytest.raises(MCPError, match="there is no"):
                await client.read_resource("holdfast://documents/" + "0" * 32)

    run(story)


def test_a_key_sees_what_it_may(install):
    """Another tenant's documents do not exist, a filter of the key holds in every tool, no key is refused."""
    seen = install.client.indexed(TOWER, title="Towers", labels=["open"])["id"]
    hidden = install.client.indexed("The Eiffel Tower has a secret cellar.", title="Cellar")["id"]
    narrow = install.access.make(
        tenant="default", name="narrow", scopes=[Scope.READ], only={"in": {"$labels": ["open"]}}
    ).token
    other = install.access.make(tenant="other", name="other", scopes=[Scope.READ]).token

    async def story():
        async with over_http(install, narrow) as client:
            hits = told(await client.call_tool("search", {"query": "Eiffel Tower"}))["results"]
            assert {each["id"] for each in hits} == {seen}
            assert (await client.call_tool("fetch", {"id": hidden})).is_error
            assert [each.title for each in (await client.list_resources()).resources] == ["Towers"]
            answer = told(await client.call_tool("ask", {"question": "What does the Eiffel Tower have?"}))
            assert {each["document_id"] for each in answer["sources"]} <= {seen}
        async with over_http(install, other) as client:
            assert told(await client.call_tool("list_collections", {})) == {"collections": []}
            assert told(await client.call_tool("search", {"query": "Eiffel Tower"})) == {"results": []}
            assert (await client.call_tool("fetch", {"id": seen})).is_error

    run(story)
    assert install.client.call("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 401


def test_pages_of_other_sites_and_large_bodies_are_refused(install):
    """As everywhere in the API: a foreign Origin without keys, and a body of more than 64 KiB."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Origin": "http://evil.example", "Accept": "application/json, text/event-stream"}
    refused = install.client.call("POST", "/mcp", message, headers=headers)
    assert (refused.status, refused.code) == (403, "foreign_origin")
    large = message | {"params": {"_meta": {"pad": "x" * 70_000}}}
    assert install.client.call("POST", "/mcp", large).status == 413
    assert install.client.call("GET", "/mcp").status == 405


def test_large_results_are_bounded(small):
    """A long passage is cut, a long document comes in parts, and of many collections some are counted."""
    small.client.post("collections", {"id": "shelf", "options": {"chunk_size": 100_000}})
    long = "The Eiffel Tower " + "and the lamp " * 25_000
    document = small.client.indexed(long, title="Long")["id"]
    for number in range(tools.MOST_LISTED):
        small.client.post("collections", {"id": f"c{number}"})

    async def story():
        async with over_http(small) as client:
            hits = told(await client.call_tool("search", {"query": "Eiffel Tower", "collections": ["shelf"]}))
            assert all(len(each["text"]) <= tools.MOST_PASSAGE + 1 for each in hits["results"])
            part = told(await client.call_tool("fetch", {"id": document}))
            assert (len(part["text"]), part["next_offset"]) == (200_000, 200_000)
            rest = told(await client.call_tool("fetch", {"id": document, "offset": part["next_offset"]}))
            assert (part["text"] + rest["text"]).split() == long.split()
            listed = told(await client.call_tool("list_collections", {}))
            assert (len(listed["collections"]), listed["left_out"]) == (tools.MOST_LISTED, 1)

    run(story)


def test_hostile_arguments_are_results_that_say_so(small):
    """Wrong types, numbers beyond bounds, nested filters and half characters end no session."""
    document = small.client.indexed(TOWER, title="Towers")["id"]
    deep: object = 1
    for _ in range(60):
        deep = {"not": deep}
    wrong = (
        ("search", {"query": ""}),
        ("search", {"query": "x" * 10_001}),
        ("search", {"query": ["x"]}),
        ("search", {"query": "x", "k": 51}),
        ("search", {"query": "x", "k": "many"}),
        ("search", {"query": "x", "collections": "shelf"}),
        ("search", {"query": "x", "collections": ["shelf"] * 1000}),
        ("search", {"query": "x", "filter": deep}),
        ("fetch", {"id": document, "offset": -1}),
        ("fetch", {"id": document, "offset": 10**30}),
        ("fetch", {"id": ""}),
        ("ask", {"question": " "}),
        ("ask", {"question": "x" * 5000}),
        ("list_collections", {"all": True}),
    )

    async def story():
        async with over_http(small) as client:
            for tool, arguments in wrong:
                result = await client.call_tool(tool, arguments)
                assert result.is_error, (tool, str(arguments)[:80])
                assert "[" in result.content[0].text
            assert told(await client.call_tool("fetch", {"id": document, "offset": 10**9}))["text"] == ""
            assert told(await client.call_tool("search", {"query": "tower"}))["results"]

    run(story)


def test_a_key_that_is_revoked_is_refused_in_the_middle_of_a_session(small):
    """The next request of a client that had the key is 401, and says so."""
    small.client.indexed(TOWER, title="Towers")
    created = small.access.make(tenant="default", name="reader", scopes=[Scope.READ])

    async def story():
        async with over_http(small, created.token) as client:
            assert told(await client.call_tool("search", {"query": "tower"}))["results"]
            small.access.revoke(created.key.id)
            with pytest.raises(MCPError):
                await client.call_tool("search", {"query": "tower"})

    run(story)
    headers = {"Authorization": f"Bearer {created.token}"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    assert small.client.call("POST", "/mcp", body, headers=headers).status == 401
