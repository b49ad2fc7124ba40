"""One request of an MCP client over HTTP, answered at once and from nothing but itself.

The transport is made for the request and gone with it: no session, no stream, nothing that another process of
the API would have to know. Who asks, and what they may see, is decided before.
"""

import logging
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from holdfast.mcp.tools import LibraryTools

# It reports the beginning and the end of every transport.
logging.getLogger("mcp.server.streamable_http_manager").setLevel(logging.WARNING)


@dataclass(slots=True)
class McpReply:
    """What goes back to the client."""

    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


async def reply_to(tools: LibraryTools, scope: MutableMapping[str, Any], body: bytes) -> McpReply:
    """The reply to a POST with this body; `scope` is that of its ASGI request."""
    reply = McpReply()
    has_read = False

    async def receive() -> MutableMapping[str, Any]:
        nonlocal has_read
        if has_read:
            return {"type": "http.disconnect"}
        has_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            reply.status = message["status"]
            reply.headers = {
                name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]
            }
        elif message["type"] == "http.response.body":
            reply.body += message.get("body", b"")

    manager = StreamableHTTPSessionManager(tools.server(), json_response=True, stateless=True)
    async with manager.run():
        await manager.handle_request(scope, receive, send)
    return reply
