"""`holdfast mcp`: the collections as tools of the client that started it.

Standard output belongs to the protocol: everything else goes to standard error.
"""

from holdfast.cli import context
from holdfast.integrations.remote_library import RemoteLibrary
from holdfast.mcp import stdio


def serve(url: str | None, tenant: str) -> None:
    """The client was served until it closed standard input."""
    loaded = context.loaded()
    if url is not None:
        key = loaded.api_key.get_secret_value() if loaded.api_key is not None else None
        stdio.serve(RemoteLibrary(url, key))
        return
    from holdfast.integrations.local_library import LocalLibrary  # noqa: PLC0415 - needs the server extra

    with context.services(None) as services:
        stdio.serve(LocalLibrary(services, f"http://127.0.0.1:{loaded.port}", tenant))
