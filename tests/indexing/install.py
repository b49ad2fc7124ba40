"""An installation that indexes: one database, one blob store, a metering provider, and engines that work."""

import contextlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import select, update

from holdfast.core.records import RunRecord
from holdfast.core.retry import Backoff
from holdfast.core.states import Lane
from holdfast.documents.blobs import LocalBlobs
from holdfast.documents.fetch import FetchLimits
from holdfast.documents.parse.parser import Parser
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.engine.events import Done
from holdfast.engine.sweep import SweepRules
from holdfast.engine.wakeups import Recorder
from holdfast.kinds import index
from holdfast.ledger.exchanges import Policy
from holdfast.ledger.prices import PriceTable
from holdfast.providers.documents import DocumentProvider
from holdfast.service.collections import Collections
from holdfast.service.documents import Documents
from holdfast.service.edits import Edits
from holdfast.service.requests import RequestContext
from holdfast.service.search import Searching
from holdfast.service.uploads import Upload, UploadResult
from holdfast.store.base.database import Database
from holdfast.store.base.schema import carriers, chunks, orders, tasks
from holdfast.store.features import open_database
from holdfast.store.library.documents import Document
from holdfast.store.protocol import claims, prune
from holdfast.store.views import reads
from holdfast.testing.meter import Meter
from holdfast.testing.prices import PRICES

MODEL = "text-embedding-3-small"
CHOICES = index.Choices(provider="meter", model=MODEL)
WISH = RequestContext()


class Asking(Parser):
    """A parser that remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, object]] = []
        self.pieces_of: list[int] = []

    def outline(self, path, name="", seconds=None, **more):
        self.asked.append(("outline", name))
        return super().outline(path, name, seconds, **more)

    def recognise(self, path, document_format, page, languages, **more):
        self.asked.append(("recognise", page))
        return super().recognise(path, document_format, page, languages, **more)

    def cut(self, path, document_format, wanted, options, known=None, seconds=None, **more):
        self.asked.append(("cut", (wanted.first, wanted.last)))
        cut = super().cut(path, document_format, wanted, options, known, seconds, **more)
        if cut.pieces is not None:
            self.pieces_of.append(wanted.first)
        return cut


class IndexingInstall:
    """Everything of an installation in one process. What was paid is what the meter says."""

    def __init__(
        self,
        url: str,
        folder: Path,
        meter: Meter,
        parser: Parser,
        services: Mapping[str, str] | None = None,
        prices: PriceTable = PRICES,
        **choices: Any,
    ) -> None:
        """`services` are paid services that parsers may ask, by name; the meter plays all of them."""
        self.url, self.folder, self.meter, self.parser = url, folder, meter, parser
        self.services, self.prices = services or {}, prices
        self.choices = index.Choices(**{"provider": "meter", "model": MODEL} | choices)
        self._undo = contextlib.ExitStack()
        self.shelf = LocalBlobs(folder / "blobs")
        self.db = self._database()
        self.sender = Recorder()
        self.engine = self.worker("worker")
        self.documents, self.collections = self._library(self.engine)
        self.searching = Searching(self.engine, self.collections)
        self.edits = Edits(self.engine, self.documents, self.collections)
        self.collections.make(WISH, "shelf")

    def _database(self) -> Database:
        db = open_database(self.url)
        self._undo.callback(db.close)
        return db

    def worker(self, owner: str, parser: Parser | None = None) -> Engine:
        """One more process, as far as the protocol can tell. Its sweep is always due."""
        db = self._database()
        provider = self.meter.provider()
        self._undo.callback(provider.close)
        indexing = index.Index(db, self.shelf, parser or self.parser, services=self.services)
        parts = EngineDependencies(
            kinds=[indexing.kind()],
            providers={"meter": provider, **{name: self._reading(name) for name in self.services.values()}},
            prices=self.prices,
            sender=self.sender,
            rules=SweepRules(interval=0.0, tidy_every=0.0),
            policy=Policy(poll=0.01, nap=0.02, backoff=Backoff(first=0.005, most=0.02)),
            owner=owner,
        )
        return Engine(db, parts)

    def _reading(self, identity: str) -> DocumentProvider:
        client = self.meter.document_provider(
            lambda digest: self.shelf.path(digest).open("rb"), name=identity, max_answer=64 * 1024
        )
        self._undo.callback(client.close)
        return client

    def _library(self, engine: Engine) -> tuple[Documents, Collections]:
        fetching = FetchLimits(allow_private=True, seconds=10.0)
        documents = Documents(engine, self.shelf, self.choices, fetching=fetching)
        return documents, Collections(engine, self.choices, documents)

    def client(self) -> Documents:
        """Somebody else at the door, with connections of their own."""
        return self._library(self.worker("client"))[0]

    def editor(self) -> Edits:
        """Somebody else who edits chunks, with connections of their own."""
        documents, collections = self._library(self.worker("editor"))
        return Edits(documents._engine, documents, collections)

    def close(self) -> None:
        self._undo.close()

    # ---- handing in

    def upload(
        self, content: bytes | str, name: str = "", *, to: str = "shelf", tenant: str = "default", **more: Any
    ) -> UploadResult:
        """What became of an upload; nobody works on it yet."""
        raw = content.encode() if isinstance(content, str) else content
        wish = RequestContext(tenant=tenant)
        self.collections.make(wish, to)
        return self.documents.add(wish, to, [Upload(raw, name, **more)])[0]

    def put(self, document_id: str, content: bytes | str, name: str = "") -> UploadResult:
        raw = content.encode() if isinstance(content, str) else content
        return self.documents.put_content(WISH, document_id, Upload(io.BytesIO(raw), name))

    def indexed(self, content: bytes | str, name: str = "", **more: Any) -> Document:
        """The document, published."""
        taken = self.upload(content, name, **more)
        self.work()
        return self.documents.get(more.get("tenant", "default"), taken.document.id)

    # ---- work

    def work(self, most: int = 1000) -> list[Done]:
        """All that is due was done right here, or the first `most` tasks of it."""
        return self.engine.work_off(most=most)

    def tidy(self) -> None:
        """Superfluous generations are gone."""
        while prune.prune_generations(self.db):
            pass

    def open_claim(self, owner: str = "dead") -> Any:
        """Somebody claimed the best due task and was never heard of again."""
        claim = claims.claim_best(
            self.db,
            lanes=list(Lane),
            pipelines=self.engine.registry.pipelines,
            owner=owner,
            token=self.db.token(),
            ttl=12.0,
        )
        assert claim is not None
        return claim

    def pass_time(self, seconds: float) -> None:
        """Every lease and every due time is that much nearer to its end."""

        def body(tx: Any) -> None:
            for column in (tasks.c.lease_until, tasks.c.due_at, tasks.c.age, orders.c.deadline):
                tx.execute(update(column.table).where(column > seconds).values({column: column - seconds}))

        self.db.write("by_hand", body)

    def die(self) -> None:
        """Every worker so far is dead, and others know it."""

        def body(tx: Any) -> None:
            tx.execute(update(tasks).where(tasks.c.state == "running").values(lease_until=1.0))
            tx.execute(update(carriers).values(lease_until=1.0, ended_at=1.0))

        self.db.write("by_hand", body)

    # ---- looking

    def document(self, document_id: str) -> Document:
        return self.documents.get("default", document_id)

    def run(self, document: Document) -> RunRecord:
        """The latest run of the document."""
        result = reads.run(self.db, document.run_id or "")
        assert result is not None
        return result.run

    def texts(self, document: Document) -> list[str]:
        """What a reader sees of the document."""
        if document.head_id is None:
            return []
        seen = reads.visible_chunks(self.db, document.head_id, limit=100_000)
        return [one.chunk.text for one in seen.chunks] if seen else []

    def find(self, words: str, *, where: str = "shelf", tenant: str = "default", k: int = 10) -> list[Any]:
        """What the words find, without asking the provider."""
        return list(self.searching.search(tenant, where, words, k=k, mode="keyword").hits)

    def rows(self, document: Document) -> int:
        """How many chunks of any generation are kept for the document."""
        query = select(chunks.c.id).where(chunks.c.head_id == document.head_id)
        return len(self.db.read(lambda tx: tx.all(query)))

    def paid(self, since: int = 0) -> int:
        """How many inputs the provider charged for, by its own book."""
        return self.meter.totals().charges - since


def endings(done: Sequence[Done]) -> list[str]:
    return [one.ending.value for one in done]
