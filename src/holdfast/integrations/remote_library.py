"""The library behind the HTTP API of another process."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpcore

from holdfast.core.errors import BadRequestError, HoldfastError, NotFoundError
from holdfast.integrations import library
from holdfast.integrations.library import (
    LISTED,
    MOST_TEXT,
    LibraryAnswer,
    LibraryCollection,
    LibraryDocument,
    LibraryHit,
    TextWindow,
)

# Seconds for an ordinary request, and for an answer of a language model.
PATIENCE, LONG_PATIENCE = 30.0, 180.0
MOST_RESPONSE = 64 * 1024 * 1024
MOST_COLLECTIONS = 20
ANSWER = ("answer", "refused", "reason", "sentences", "cost", "replayed", "stand_in")


class RemoteLibrary:
    """Over the API at `url` (without `/api/v1`), with an API key where the server has any. Thread-safe."""

    def __init__(self, url: str, key: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise BadRequestError(
                "the URL of the server must look like https://host:port", code="bad_request"
            )
        self._base = url.rstrip("/").removesuffix("/api/v1")
        self._key = key
        self._pool = httpcore.ConnectionPool(max_connections=16, keepalive_expiry=5.0)

    def close(self) -> None:
        """The connections are closed."""
        self._pool.close()

    def _call(self, method: str, path: str, body: object = None, patience: float = PATIENCE) -> Any:
        """The JSON of a response; HoldfastError with the server's own code and message for an error."""
        headers = {"Accept": "application/json", "User-Agent": "holdfast", "Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        timeout = dict.fromkeys(("connect", "read", "write", "pool"), patience)
        content = None if body is None else json.dumps(body).encode()
        try:
            response = self._pool.request(
                method,
                f"{self._base}/api/v1/{path}",
                headers=list(headers.items()),
                content=content,
                extensions={"timeout": timeout},
            )
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
            message = f"the server at {self._base} did not answer ({type(error).__name__})"
            raise HoldfastError(message, code="server_unavailable") from error
        try:
            reply = json.loads(response.content)
        except ValueError as error:
            message = f"{self._base} answered {response.status} without JSON: is it Holdfast?"
            raise HoldfastError(message, code="server_unavailable") from error
        if response.status >= 400:
            problem = reply.get("error") if isinstance(reply, dict) else None
            problem = problem if isinstance(problem, dict) else {}
            kind = NotFoundError if response.status == 404 else HoldfastError
            message = str(problem.get("message", f"the server answered {response.status}"))
            raise kind(message, code=str(problem.get("code", "server_unavailable")))
        return reply

    def collections(self) -> list[LibraryCollection]:
        """See `Library`."""
        return [
            LibraryCollection(each["id"], each["title"])
            for each in self._call("GET", "collections")["collections"]
        ]

    def search(
        self,
        query: str,
        collections: Sequence[str] = (),
        k: int = 10,
        filter_: Mapping[str, Any] | None = None,
        rerank: bool | str | None = None,
    ) -> list[LibraryHit]:
        """See `Library`."""
        names = self._names(collections)
        body: dict[str, Any] = {"collections": names, "q": query, "k": k, "filter": filter_, "rerank": rerank}
        sent = {name: value for name, value in body.items() if value is not None}
        hits = self._call("POST", "search", sent)["hits"] if names else []
        return [self._hit(each) for each in hits]

    def _names(self, collections: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(collections)) or [each.id for each in self.collections()][:MOST_COLLECTIONS]

    def _hit(self, hit: Mapping[str, Any]) -> LibraryHit:
        relevance = hit.get("relevance")
        return LibraryHit(
            hit["document_id"],
            hit["title"],
            hit["collection"],
            hit["page"],
            hit["text"],
            hit["score"] if relevance is None else relevance,
            hit["chunk"],
            library.hit_url(self._base, hit["document_id"], hit["chunk"], hit["collection"], hit["node"]),
        )

    def read(self, document_id: str, offset: int = 0, most: int = MOST_TEXT) -> LibraryDocument:
        """See `Library`."""
        path = f"documents/{quote(document_id, safe='')}"
        document = self._call("GET", path)
        window, cursor, generation = TextWindow(offset, most), None, 0
        while not window.is_full:
            query = urlencode({"limit": 200} | ({} if cursor is None else {"cursor": cursor}))
            page = self._call("GET", f"{path}/chunks?{query}")
            generation = page["generation"]
            for each in page["chunks"]:
                if each["enabled"]:
                    window.add(each["text"])
            cursor = page["next"]
            if cursor is None:
                break
        return self._shown(document, generation, window)

    def _shown(self, document: Mapping[str, Any], generation: int, window: TextWindow) -> LibraryDocument:
        return LibraryDocument(
            document["id"],
            document["title"],
            document["collection"],
            generation,
            library.document_url(self._base, document["id"]),
            window.text,
            window.next_offset,
            document.get("metadata") or {},
        )

    def documents(self, collection: str, cursor: str | None) -> tuple[list[LibraryDocument], str | None]:
        """See `Library`."""
        query = urlencode({"limit": LISTED} | ({} if cursor is None else {"cursor": cursor}))
        page = self._call("GET", f"collections/{quote(collection, safe='')}/documents?{query}")
        empty = TextWindow(0, 0)
        documents = [
            self._shown(each, each["published_generation"] or 0, empty) for each in page["documents"]
        ]
        return documents, page["next"]

    def ask(self, question: str, collections: Sequence[str] = (), k: int = 8) -> LibraryAnswer:
        """See `Library`."""
        body = {"collections": self._names(collections), "question": question, "k": k}
        reply = self._call("POST", "ask", body, LONG_PATIENCE)
        sources = [
            {name: each[name] for name in ("n", "document_id", "title", "collection", "page", "quote")}
            | {"url": library.document_url(self._base, each["document_id"], each["chunk"])}
            for each in reply["sources"]
        ]
        return LibraryAnswer({name: reply[name] for name in ANSWER} | {"sources": sources})
