"""Collections: create, read, change, delete."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.core.errors import BadRequestError
from holdfast.engine.engine import Engine
from holdfast.engine.kinds import Offer
from holdfast.kinds import index
from holdfast.search import rules
from holdfast.service import conflicting_options, names
from holdfast.service.bulk_updates import Rounds
from holdfast.service.documents import Documents
from holdfast.service.flows import Flows
from holdfast.service.requests import RequestContext
from holdfast.service.reranking import Reranking
from holdfast.service.sources import Sources
from holdfast.store.follow_ups import actions
from holdfast.store.library import bulk_updates, collections
from holdfast.store.library.collections import Collection

# What is left of a deleted collection and is seen to before it is made again.
MADE_AGAIN = 1000


@dataclass(frozen=True, slots=True)
class Changed:
    """A collection as changed; how many of its documents were asked for again, how many are still to be."""

    collection: Collection
    requested: int = 0
    to_follow: int = 0


@dataclass(frozen=True, slots=True)
class Emptied:
    """How many documents went with their collection, and of how many the work has still to be ended."""

    deleted: int
    to_follow: int


class Collections:
    """The collections of an installation, as one process sees them."""

    def __init__(
        self,
        engine: Engine,
        defaults: index.Choices,
        documents: Documents,
        sources: Sources | None = None,
        rerankers: Mapping[str, Offer] | None = None,
        flows: Flows | None = None,
    ) -> None:
        self._engine = engine
        self._reranking = Reranking(engine, rerankers or {})
        self._db = engine.db
        self._defaults = defaults
        self._documents = documents
        self._sources = sources
        self._flows = flows
        self.rounds = Rounds(self._db, documents.ask_again, documents.end_for)

    def get(self, tenant: str, collection_id: str) -> Collection:
        """The collection; NotFoundError when there is none."""
        return collections.existing(self._db, tenant, collection_id)

    def all(self, tenant: str) -> list[Collection]:
        """All collections of a tenant."""
        return collections.all_collections(self._db, tenant)

    @property
    def providers(self) -> set[str]:
        """Who may embed what the collections hold, by identity."""
        return {self._defaults.provider, *(each.identity for each in self._defaults.offers.values())}

    def choices(self, collection: Collection) -> index.Choices:
        """How documents of the collection are indexed unless they have options of their own."""
        return index.choices(self._defaults, collection.options, stored=True)

    def make(
        self,
        wish: RequestContext,
        collection_id: str,
        *,
        title: str = "",
        options: Mapping[str, Any] | None = None,
    ) -> Collection:
        """The collection, made if it was not there; what was left of a deleted one is gone first.

        BadRequestError `collection_emptying` while that is more than can be seen to here.
        """
        names.check_id(collection_id)
        index.choices(self._defaults, options)
        self._check_flow(wish, options)
        if collections.collection(self._db, wish.tenant, collection_id) is None:
            self._end_all(wish, collection_id)
        name = names.title(title or collection_id)
        while not collections.make_collection(
            self._db, wish.tenant, collection_id, title=name, options=options or {}
        ):
            self._make_room(wish, collection_id)
        return self.get(wish.tenant, collection_id)

    def _check_flow(self, wish: RequestContext, options: Mapping[str, Any] | None) -> None:
        """Return if the flow that the options name can be carried out here; otherwise an error says why."""
        if self._flows is not None:
            self._flows.check_option(wish.tenant, options)

    def _make_room(self, wish: RequestContext, collection_id: str) -> None:
        """Something of the deleted collection is gone; all of it, or BadRequestError."""
        left = bulk_updates.remains(self._db, wish.tenant, collection_id, after="", limit=MADE_AGAIN + 1)
        for each in left[:MADE_AGAIN]:
            self._documents.end_deleted(wish, each)
        if len(left) > MADE_AGAIN:
            message = f"collection {collection_id!r} is still being deleted; retry in a moment"
            raise BadRequestError(message, code="collection_emptying")

    def change(
        self,
        wish: RequestContext,
        collection_id: str,
        *,
        title: str | None = None,
        options: Mapping[str, Any] | None = None,
        search: Mapping[str, Any] | None = None,
    ) -> Changed:
        """The collection as changed; its documents are asked for again where the options want that.

        Some are asked for here and the rest by the sweep, all at the lowest priority; their old generation
        answers until the new one is there. `search` replaces the rules of search; nothing is indexed for it.
        """
        rules_of_search = None if search is None else rules.checked(search)
        self._reranking.check(rules_of_search or {})
        current = self.get(wish.tenant, collection_id)
        chosen = current.options if options is None else {**current.options, **options}
        chosen = {name: value for name, value in chosen.items() if value is not None}
        index.choices(self._defaults, chosen)
        if options is not None:
            self._check_flow(wish, options)
        begun = collections.set_collection(
            self._db,
            wish.tenant,
            collection_id,
            title=current.title if title is None else names.title(title),
            options=chosen,
            actor=wish.actor,
            ask_again=options is not None,
            max_cost=wish.max_cost,
            check=lambda own: conflicting_options.check(self._defaults, chosen, own),
        )
        if rules_of_search is not None:
            collections.set_search(self._db, wish.tenant, collection_id, rules_of_search)
        changed = self.get(wish.tenant, collection_id)
        return Changed(changed, *(self.rounds.begin(begun) if begun is not None else (0, 0)))

    def delete(self, wish: RequestContext, collection_id: str) -> Emptied:
        """The collection and all its documents are gone for every reader.

        What is at work for them ends here for some of them, and by the sweep for the rest.
        """
        gone, begun = collections.remove_collection(self._db, wish.tenant, collection_id, actor=wish.actor)
        self._end_all(wish, collection_id)
        return Emptied(gone, self.rounds.begin(begun)[1])

    def _end_all(self, wish: RequestContext, collection_id: str) -> None:
        """The collection has no actions and no sources any more, and no jobs of its own."""
        actions.remove_all(self._db, wish.tenant, collection_id, actor=wish.actor)
        self._engine.delete(wish.tenant, f"collection:{collection_id}", actor=wish.actor)
        if self._sources is not None:
            self._sources.remove_all(wish, collection_id)
