"""An installation whose collection has sources, and a worker that is told when to work."""

import contextlib
import os
from collections import Counter
from pathlib import Path
from typing import Any

from sqlalchemy import select, update

from holdfast import bootstrap, settings
from holdfast.core.records import Claim
from holdfast.core.states import Lane
from holdfast.engine.events import Done
from holdfast.engine.wakeups import Recorder
from holdfast.service.requests import RequestContext
from holdfast.service.sources import SourceRecord
from holdfast.store.base.schema import runs, tasks
from holdfast.store.base.schema import sources as sources_table
from holdfast.store.library.documents import Document
from holdfast.store.protocol import claims

WISH = RequestContext(actor="somebody")
LANES = list(Lane)


class SourcesInstall:
    """Everything in one process; `folder` may be a source."""

    def __init__(self, url: str, data: Path, folder: Path, **more: Any) -> None:
        folder.mkdir()
        self.folder = folder
        mine = {"data_dir": data, "database_url": url, "source_folders": str(folder)} | more
        self.settings = settings.Settings(**mine)
        self._undo = contextlib.ExitStack()
        self.runtime = self.process("worker")
        self.services = bootstrap.AppServices(self.runtime)
        self.sources, self.documents = self.services.sources, self.services.documents
        self.db = self.runtime.db
        self.services.collections.make(WISH, "shelf")

    def process(self, owner: str) -> Any:
        """One more process, as far as the protocol can tell."""
        return self._undo.enter_context(bootstrap.open_runtime(self.settings, sender=Recorder(), owner=owner))

    def close(self) -> None:
        self._undo.close()

    def write(self, name: str, text: str) -> None:
        """The file of the folder has this text, and is new: its time is another one."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        last = path.stat().st_mtime_ns if path.exists() else 1_700_000_000_000_000_000
        path.write_text(text)
        os.utime(path, ns=(last + 1_000_000_000, last + 1_000_000_000))

    def add(self, *, path: Path | None = None, to: str = "shelf", **more: Any) -> SourceRecord:
        """A source over the folder, whose first look is requested and not begun."""
        options = {"path": str(path or self.folder)} | more.pop("options", {})
        return self.sources.add(WISH, to, more.pop("type", "folder"), options, **more)[0]

    def again(self, source: SourceRecord) -> SourceRecord:
        """The source as it is now."""
        return self.sources.get(source.tenant, source.collection, source.id)

    def look(self, source: SourceRecord) -> SourceRecord:
        """The source after one more look; what that requested was not indexed yet."""
        self.work()
        self.sources.refresh(WISH, source)
        self.begin()
        return self.again(source)

    def begin(self) -> Done | None:
        """The best due task was done."""
        return self.runtime.engine.executor.run_next(LANES)

    def work(self) -> list[Done]:
        """All that was due was done."""
        return self.runtime.engine.work_off(most=1000)

    def claim(self, owner: str = "somebody") -> Claim:
        """Somebody has begun with the best due task, and is not heard of again."""
        pipelines = self.runtime.engine.registry.pipelines
        claim = claims.claim_best(
            self.db, lanes=LANES, pipelines=pipelines, owner=owner, token=self.db.token(), ttl=60.0
        )
        assert claim is not None
        return claim

    def lose(self) -> None:
        """The holder of a task is dead: it is due again."""
        held = update(tasks).where(tasks.c.state == "running").values(lease_until=1.0)
        self.db.write("by_hand", lambda tx: tx.execute(held))
        self.runtime.engine.sweep()

    def pass_time(self, seconds: float) -> None:
        """The next look of every source is that much nearer."""
        moved = update(sources_table).values(next_at=sources_table.c.next_at - seconds)
        self.db.write("by_hand", lambda tx: tx.execute(moved))

    def shelf(self, collection: str = "shelf") -> dict[str, Document]:
        """The documents by their names."""
        return {each.name: each for each in self.documents.walk("default", collection)}

    def index_runs(self) -> Counter[str]:
        """How often each document was requested to be indexed."""
        query = select(runs.c.subject).where(runs.c.kind == "index", runs.c.reason != "delete")
        return Counter(row.subject for row in self.db.read(lambda tx: tx.all(query)))


def counts(source: SourceRecord) -> dict[str, int]:
    """What the last look counted, without what is zero."""
    return {name: number for name, number in source.counts.items() if number}
