"""What retrievers of other frameworks share: a library to search, and what they say of a hit."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from holdfast.core.errors import BadRequestError
from holdfast.integrations.library import Library, LibraryHit
from holdfast.integrations.remote_library import RemoteLibrary


def chosen_library(library: Library | None, url: str | None, key: str | None) -> Library:
    """The library in this process, or the server at the URL; BadRequestError unless exactly one is named."""
    if (library is None) == (url is None):
        raise BadRequestError("set `url` of a server, or `library` of this process", code="bad_request")
    return RemoteLibrary(url, key) if url is not None else library  # type: ignore[return-value]


@contextmanager
def local_library(tenant: str = "default") -> Iterator[Library]:
    """The library of the installation that the settings of this process name; needs the extra `server`."""
    from holdfast import bootstrap, settings  # noqa: PLC0415 - only who works in process needs all of it
    from holdfast.integrations.local_library import LocalLibrary  # noqa: PLC0415

    loaded = settings.load()
    with bootstrap.open_runtime(loaded) as runtime:
        yield LocalLibrary(bootstrap.AppServices(runtime), f"http://127.0.0.1:{loaded.port}", tenant)


def about(hit: LibraryHit) -> Mapping[str, Any]:
    """The metadata of a hit."""
    return {
        "id": hit.document_id,
        "title": hit.title,
        "collection": hit.collection,
        "page": hit.page,
        "score": hit.score,
        "source": hit.url,
        "chunk": hit.chunk,
    }
