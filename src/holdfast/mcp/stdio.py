"""The server on standard input and output, for a client that starts it."""

from collections.abc import Callable
from typing import TypeVar

import anyio
from anyio import to_thread
from mcp.server.stdio import stdio_server

from holdfast.integrations.library import Library
from holdfast.mcp.tools import LibraryTools

T = TypeVar("T")


def serve(library: Library) -> None:
    """Requests were answered until standard input ended."""
    anyio.run(_served, library)


async def _served(library: Library) -> None:
    server = LibraryTools(library, _in_a_thread).server()
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


async def _in_a_thread(_name: str, work: Callable[[], T]) -> T:
    return await to_thread.run_sync(work)
