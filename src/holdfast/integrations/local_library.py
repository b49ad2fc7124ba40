"""The library of an installation in this process, as one caller may see it."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.bootstrap import AppServices
from holdfast.core import filters
from holdfast.core.errors import NotFoundError
from holdfast.core.filters import Filter
from holdfast.core.records import TENANT
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
from holdfast.ledger.prices import NANO
from holdfast.search.hits import Hit
from holdfast.service.answers import AskRequest, CitedAnswer
from holdfast.service.document_views import position_of
from holdfast.service.records import Document, DocumentQuery, SortKey
from holdfast.service.search_pages import MOST_COLLECTIONS, SearchRequest

PAGE = 200


class LocalLibrary:
    """Over services; `only` is the filter that every document must pass to exist for the caller."""

    def __init__(
        self, services: AppServices, base_url: str, tenant: str = "default", only: Filter | None = None
    ) -> None:
        self._services = services
        self._base = base_url.rstrip("/")
        self._tenant, self._only = tenant, only

    def collections(self) -> list[LibraryCollection]:
        """See `Library`."""
        return [
            LibraryCollection(each.id, each.title) for each in self._services.collections.all(self._tenant)
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
        only = filters.both(self._only, None if filter_ is None else filters.parse(dict(filter_)))
        request = SearchRequest(self._tenant, names, query, k=k, only=only, rerank=rerank)
        return [self._hit(each) for each in self._services.search.find(request).hits] if names else []

    def _names(self, collections: Sequence[str]) -> list[str]:
        for name in collections:
            if not TENANT.fullmatch(name):
                raise NotFoundError(f"there is no collection {name!r:.80}", code="unknown_collection")
        return list(dict.fromkeys(collections)) or [each.id for each in self.collections()][:MOST_COLLECTIONS]

    def _hit(self, hit: Hit) -> LibraryHit:
        chunk = f"{hit.document_id}@{hit.slice}.{hit.position}" if hit.chunk_id else None
        url = library.hit_url(self._base, hit.document_id, chunk, hit.collection, hit.node)
        score = hit.score if hit.relevance is None else hit.relevance
        return LibraryHit(hit.document_id, hit.title, hit.collection, hit.page, hit.text, score, chunk, url)

    def read(self, document_id: str, offset: int = 0, most: int = MOST_TEXT) -> LibraryDocument:
        """See `Library`."""
        document = self._document(document_id)
        window, after = TextWindow(offset, most), (-1, -1)
        generation = 0
        while not window.is_full:
            page = self._services.edits.chunks(document, after=after, limit=PAGE, with_disabled=False)
            # A version that was published meanwhile has other pieces: the text would be of both.
            if page is None or (generation and page.generation != generation):
                break
            generation = page.generation
            for each in page.chunks:
                window.add(each.text)
            if len(page.chunks) < PAGE:
                break
            after = (page.chunks[-1].slice, page.chunks[-1].position)
        return self._shown(document, generation, window)

    def _document(self, document_id: str) -> Document:
        if not TENANT.fullmatch(document_id):
            raise NotFoundError(f"there is no document {document_id!r:.80}", code="unknown_document")
        return self._services.documents.get(self._tenant, document_id, only=self._only)

    def _shown(self, document: Document, generation: int, window: TextWindow) -> LibraryDocument:
        return LibraryDocument(
            document.id,
            document.title,
            document.collection,
            generation,
            library.document_url(self._base, document.id),
            window.text,
            window.next_offset,
            document.metadata,
        )

    def documents(self, collection: str, cursor: str | None) -> tuple[list[LibraryDocument], str | None]:
        """See `Library`."""
        query = DocumentQuery(
            self._tenant,
            collection,
            after=position_of(SortKey.ID, cursor),
            limit=LISTED,
            filter=self._only,
        )
        views, following = self._services.views.listed(query)
        empty = TextWindow(0, 0)
        documents = [
            self._shown(
                each.document, each.document.published_generation if each.document.visible else 0, empty
            )
            for each in views
        ]
        return documents, following

    def ask(self, question: str, collections: Sequence[str] = (), k: int = 8) -> LibraryAnswer:
        """See `Library`."""
        request = AskRequest(self._tenant, self._names(collections), question, k, only=self._only)
        return LibraryAnswer(self._answer(self._services.ask.ask(request)))

    def _answer(self, answer: CitedAnswer) -> dict[str, Any]:
        cost = answer.cost
        return {
            "answer": answer.answer,
            "refused": answer.refused,
            "reason": answer.reason,
            "sentences": [
                {"text": each.text, "cites": list(each.cites), "support": each.support.value}
                for each in answer.sentences
            ],
            "sources": [
                {
                    "n": each.n,
                    "document_id": each.document_id,
                    "title": each.title,
                    "collection": each.collection,
                    "page": each.page,
                    "quote": each.quote,
                    "url": library.document_url(self._base, each.document_id, each.chunk),
                }
                for each in answer.sources
            ],
            "cost": {
                "paid": None if cost.unpriced and not cost.paid else cost.paid / NANO,
                "saved": cost.saved / NANO,
                "tokens": cost.tokens,
            },
            "replayed": answer.replayed,
            "stand_in": answer.stand_in,
        }
