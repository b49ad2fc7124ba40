"""A collection as the `index` kind fills it: requested, claimed, staged, counted, published."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast import vectors
from holdfast.core import decide
from holdfast.core.records import Ask, Chunk, Claim, Landed, Spent
from holdfast.core.states import Lane
from holdfast.search import statistics, tokenizer
from holdfast.store.base.database import Database
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import calls, documents
from holdfast.store.protocol import claims, requests
from holdfast.store.protocol import tasks as fenced
from holdfast.store.search import search_reads as stored

PATIENCE = decide.SilenceLimits()


def meaning(text: str, dimensions: int = 32) -> np.ndarray:
    """A crude embedding: each term is a fixed random direction, a text the sum of its terms."""
    total = np.zeros(dimensions, dtype=np.float32)
    for term in tokenizer.analyse(text):
        seed = int.from_bytes(hashlib.blake2b(term.encode(), digest_size=4).digest())
        total += np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32)
    return total


class Shelf:
    """Documents of one tenant in one collection."""

    def __init__(self, db: Database, tenant: str = "acme", collection: str = "c") -> None:
        self.db = db
        self.tenant = tenant
        self.collection = collection

    def begin(self, document: str) -> Claim:
        """A new generation of the document is requested, and its one task held."""
        ask = Ask(
            kind="index",
            subject=f"document:{document}",
            content=self.db.token(),
            tenant=self.tenant,
            collection=self.collection,
        )
        assert requests.request(self.db, ask, run_id=self.db.token(), patience=PATIENCE).created
        claim = claims.claim_best(
            self.db, lanes=tuple(Lane), pipelines=[""], owner="w", token=self.db.token(), ttl=60.0
        )
        assert claim is not None
        return claim

    def stage(
        self,
        claim: Claim,
        texts: Sequence[str],
        embed: Any = meaning,
        model: str = "m",
        provider: str = "p",
    ) -> list[Chunk]:
        items = []
        for at, text in enumerate(texts):
            key = hashlib.blake2b(f"{provider}\n{model}\n{text}".encode(), digest_size=16).hexdigest()
            if embed is not None:
                self._pay(key, vectors.encode(embed(text)), model, provider)
            page = 1 + at // 2
            items.append(Chunk(at, text, page, key if embed else None, words=tokenizer.joined(text)))
        assert fenced.stage(self.db, claim, items) == Landed()
        return items

    def finish(self, claim: Claim, staged: Sequence[Chunk]) -> None:
        counted = statistics.encode([chunk.words for chunk in staged])
        landed = fenced.finish(
            self.db,
            claim,
            spent=Spent(),
            staged=len(staged),
            also=lambda tx: stored.put_counts(tx, claim, counted),
        )
        assert landed == Landed(published=True)

    def publish(
        self, document: str, *texts: str, embed: Any = meaning, model: str = "m", provider: str = "p"
    ) -> int:
        """The document says `texts` from now on; answers its generation."""
        self._describe(document)
        claim = self.begin(document)
        self.finish(claim, self.stage(claim, texts, embed, model, provider))
        return claim.generation

    def delete(self, document: str) -> None:
        requests.delete(self.db, self.tenant, f"document:{document}")

    def _pay(self, key: str, result: bytes, model: str, provider: str) -> None:
        row = {"tenant": self.tenant, "key": key, "state": "settled", "model": model, "estimate": 0}
        row["provider"] = provider
        paid = upsert(calls).values(**row, result=result).on_conflict_do_nothing()
        self.db.write("by_hand", lambda tx: tx.execute(paid))

    def _describe(self, document: str) -> None:
        row = {
            "tenant": self.tenant,
            "id": document,
            "collection": self.collection,
            "title": f"Title of {document}",
            "source": "text",
            "digest": document,
            "size": 1,
            "chunks": 1,
            "created_at": 1.0,
        }
        described = upsert(documents).values(**row, updated_at=now()).on_conflict_do_nothing()
        self.db.write("by_hand", lambda tx: tx.execute(described))
