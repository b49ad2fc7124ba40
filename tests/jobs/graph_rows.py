"""A small knowledge graph, staged and published as the kind does it, over documents that are indexed."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast import vectors
from holdfast.core import decide
from holdfast.core.records import Ask, Claim, Spent
from holdfast.core.states import Lane
from holdfast.providers import local
from holdfast.providers.local import LocalProvider
from holdfast.search import tokenizer
from holdfast.store.base.database import Database
from holdfast.store.base.schema import calls
from holdfast.store.derived import staging
from holdfast.store.derived.staging import EdgeDraft, NodeDraft, NodeSourceDraft
from holdfast.store.protocol import claims, requests
from holdfast.store.protocol import tasks as fenced


def key(name: str) -> str:
    """The key of a node with this name."""
    return hashlib.sha256(name.lower().encode()).hexdigest()


class GraphRows:
    """Nodes and edges about to be published. Sources are documents by name, with their generation."""

    def __init__(self, db: Database, versions: Mapping[str, int], tenant: str = "default") -> None:
        self.db, self.versions, self.tenant = db, versions, tenant
        self.nodes: list[NodeDraft] = []
        self.edges: list[EdgeDraft] = []
        self.provider: LocalProvider | None = None

    def entity(self, name: str, text: str, *documents: str, mentions: int = 1, **more: Any) -> str:
        data = {"kind": "person", "names": [], "mentions": mentions, "x": 0.5, "y": 0.5, "stand_in": True}
        self._node("entity", name, text, documents, data | more)
        return key(name)

    def relation(self, one: str, other: str, text: str, *documents: str, weight: float = 1.0) -> str:
        title = f"{one} \u2013 {other}"
        data = {"relation": "knows", "weight": weight, "source": key(one), "target": key(other)}
        self._node("relation", title, text, documents, data | {"stand_in": True})
        edge = EdgeDraft("relation", key(one), key(other), "knows", {"node": key(title), "weight": weight})
        self.edges.append(edge)
        return key(title)

    def report(
        self,
        title: str,
        text: str,
        *documents: str,
        level: int = 1,
        children: Sequence[str] = (),
        **more: Any,
    ) -> str:
        data = {"findings": [], "size": len(children), "x": 0.5, "y": 0.5, "stand_in": True}
        self._node("report", title, text, documents, data | more, level, children)
        return key(title)

    def node(self, node_type: str, title: str, text: str, *documents: str, **more: Any) -> str:
        """A node of any type, for other kinds than graphs."""
        self._node(node_type, title, text, documents, {"stand_in": True}, **more)
        return key(title)

    def publish(self, collection: str = "shelf", kind: str = "graph") -> Claim:
        """The generation is published."""
        name = f"collection:{collection}"
        ask = Ask(kind=kind, subject=name, content=self.db.token(), tenant=self.tenant, collection=collection)
        patience = decide.SilenceLimits()
        assert requests.request(self.db, ask, run_id=self.db.token(), patience=patience).created
        claim = claims.claim_best(
            self.db, lanes=tuple(Lane), pipelines=[""], owner="w", token=self.db.token(), ttl=60.0
        )
        assert claim is not None
        assert claim.kind == kind
        put = lambda tx: staging.put(tx, claim, self.nodes, self.edges)
        landed = fenced.finish(self.db, claim, spent=Spent(), also=put)
        assert landed.published  # type: ignore[union-attr]
        return claim

    def _node(
        self,
        kind: str,
        title: str,
        text: str,
        documents: Sequence[str],
        data: Mapping[str, Any],
        level: int = 0,
        children: Sequence[str] = (),
    ) -> None:
        sources = [NodeSourceDraft(each, self.versions[each], 0, 0) for each in documents]
        words = tokenizer.joined(f"{title} {text}")
        draft = NodeDraft(
            key(title),
            kind,
            level,
            title,
            text,
            sources,
            call_key=self._embedded(f"{title}\n{text}"),
            words=words,
            data=data,
            children=children,
        )
        self.nodes.append(draft)

    def _embedded(self, text: str) -> str | None:
        if self.provider is None:
            return None
        name = hashlib.sha256(f"graph\n{text}".encode()).hexdigest()
        row = {"tenant": self.tenant, "key": name, "state": "settled", "estimate": 0}
        row |= {"provider": "local", "model": local.MODEL}
        vector = vectors.encode(self.provider.embed([text])[0])
        paid = upsert(calls).values(**row, result=vector).on_conflict_do_nothing()
        self.db.write("by_hand", lambda tx: tx.execute(paid))
        return name
