"""The incidents, with Holdfast: double click, kill -9, freeze and thaw, index again."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from holdfast.cli.demo import documents, worker
from holdfast.cli.demo.narration import IncidentCost, Narrator
from holdfast.cli.demo.processes import PATIENCE, Actor, Cast, MeterActor, StageError
from holdfast.core import keys
from holdfast.core.records import Head, RequestResult
from holdfast.core.states import Disposition, Status, TaskState
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.store.base import migrate
from holdfast.store.base.database import Database
from holdfast.store.base.schema import chunks, heads, journal, runs, tasks
from holdfast.store.features import open_database
from holdfast.store.views import reads

STALL = 2.0


@dataclass(frozen=True, slots=True)
class DemoInstall:
    """One installation: a database, the provider it pays, and the engine that stands for its users."""

    cast: Cast
    meter: MeterActor
    url: str
    db: Database
    engine: Engine

    def hire(self, name: str, *, wait_at: int = 0) -> Actor:
        """A worker, up and ready."""
        hired = self.cast.worker(name, self.url, self.meter, wait_at=wait_at)
        hired.hear("up")
        return hired

    def request(self, title: str, texts: Sequence[str]) -> RequestResult:
        """What became of the request to index a document."""
        return self.engine.request(worker.ask(title, documents.keep(self.cast.folder, texts)))

    def head(self, title: str) -> Head:
        """The head of a document."""
        head = reads.head(self.db, "default", "index", f"document:{title}")
        if head is None:
            raise StageError(f"document:{title} has no head")
        return head

    def published(self, title: str, generation: int) -> Head:
        """The head, once this generation is published."""
        give_up = time.monotonic() + PATIENCE
        while (head := self.head(title)).published_generation < generation:
            if head.status is Status.FAILED or time.monotonic() > give_up:
                raise StageError(f"document:{title} is {head.status} and was not published")
            time.sleep(0.02)
        return head

    def rows(self) -> str:
        """A digest of everything that work could have written."""
        rows = [
            self.db.read(lambda tx, table=table: str(sorted(map(str, tx.all(select(table))))))  # type: ignore[misc]
            for table in (heads, runs, tasks, chunks)
        ]
        return keys.digest(*rows)

    def refusals(self) -> int:
        """How many writes the fence has refused."""
        query = select(func.count()).where(journal.c.reason.startswith("fenced_out:"))
        return int(self.db.read(lambda tx: tx.execute(query).scalar_one()))


def settle_in(cast: Cast, name: str, *, keyed: bool) -> DemoInstall:
    """A new installation with an empty database."""
    url = f"sqlite:///{cast.folder / name}.db"
    migrate.upgrade(url)
    db = open_database(url)
    engine = Engine(db, EngineDependencies(kinds=[worker.index(cast.folder)]))
    return DemoInstall(cast, cast.meter(f"the meter of {name}", keyed=keyed), url, db, engine)


def double_click(install: DemoInstall, tell: Narrator) -> tuple[IncidentCost, Actor]:
    """A document is requested twice and indexed once."""
    texts = documents.paragraphs("handbook")
    accepted = install.request("handbook", texts)
    tell.line(f"document:handbook is requested: {accepted.disposition}, generation {accepted.generation}")
    began = time.monotonic()
    second = install.request("handbook", texts)
    took = (time.monotonic() - began) * 1000
    active = (second.run_id or "")[:8]
    tell.line(f"requested again: {second.disposition} of run {active}, answered in {took:.0f} ms")
    hired = install.hire("worker-A")
    tell.line(f"worker-A (process {hired.pid}) starts and picks up the work")
    install.published("handbook", 1)
    tell.line(f"published: {documents.PARAGRAPHS} chunks, visible all at once")
    named = second.disposition is Disposition.DUPLICATE and second.run_id == accepted.run_id
    tell.promise("the second click was rejected, and the answer named the active run", held=named)
    totals = install.meter.totals()
    once = totals["charges"] == totals["distinct_inputs"] == documents.PARAGRAPHS
    tell.promise(f"{totals['charges']} charges for {totals['distinct_inputs']} paragraphs", held=once)
    return IncidentCost("double click", documents.PARAGRAPHS, totals["charges"]), hired


def kill(install: DemoInstall, tell: Narrator, hired: Actor) -> tuple[IncidentCost, Actor]:
    """A worker dies with an order open at the provider; another takes over and pays for no more than that."""
    before = install.meter.totals()["charges"]
    install.meter.stall(after=1, seconds=STALL)
    install.request("contract", documents.paragraphs("contract"))
    tell.line(f"{hired.name} indexes document:contract; the second response is slow")
    in_flight = install.meter.wait_charged()
    finished = _finished(install, "contract")
    died = time.monotonic()
    hired.kill()
    tell.line(
        f"kill -9 {hired.pid}, with {in_flight} calls charged and their response still on its way", "care"
    )
    heir = install.hire("worker-B")
    tell.line(f"worker-B (process {heir.pid}) starts and waits for the lease to expire")
    install.published("contract", 1)
    tell.line(f"worker-B has published document:contract, {time.monotonic() - died:.1f} s after the kill")
    still = _finished(install, "contract")
    tell.promise(
        f"finished work was kept: slice {', '.join(map(str, finished))} was not done again",
        held=bool(finished) and all(still.get(slice_) == epoch for slice_, epoch in finished.items()),
    )
    paid = _charged(install, "contract")
    again, charges = sum(paid.values()) - len(paid), install.meter.totals()["charges"] - before
    bound = 0 if install.meter.keyed else in_flight
    tell.promise(
        f"{charges} charges for {len(paid)} paragraphs: {again} paid again, of {in_flight} in flight",
        held=again <= bound and charges == len(paid) + again and max(paid.values()) <= 2,
    )
    return IncidentCost("kill -9 with an order open", len(paid), charges), heir


def _finished(install: DemoInstall, title: str) -> dict[int, int]:
    """The epoch of every finished slice of a document's latest run."""
    tasks = reads.tasks_of(install.db, install.head(title).run_id or "")
    return {
        one.task.ordinal: one.task.epoch
        for one in tasks
        if one.task.ordinal and one.task.state is TaskState.DONE
    }


def _charged(install: DemoInstall, title: str) -> Counter[str]:
    """How often each paragraph of a document was charged, by the book of the provider."""
    log = install.meter.log()
    return Counter(text for entry in log if entry["charged"] for text in entry["inputs"] if title in text)


def freeze(install: DemoInstall, tell: Narrator, retired: Actor) -> tuple[IncidentCost, Actor]:
    """A worker sleeps through its lease; another finishes; the sleeper wakes and may not write."""
    retired.end()
    before = install.meter.totals()["charges"]
    sleeper = install.hire("worker-C", wait_at=2)
    install.request("report", documents.paragraphs("report"))
    held = sleeper.hear("waiting")["slice"]
    sleeper.freeze()
    sleeper.go_on()
    tell.line(f"worker-C is frozen (SIGSTOP) in slice {held} of document:report", "care")
    heir = install.hire("worker-D")
    install.published("report", 1)
    tell.line("worker-D does the rest, waits for the lease to expire, takes over and publishes")
    exchanges, rows, refused = install.meter.totals()["exchanges"], install.rows(), install.refusals()
    sleeper.thaw()
    wrote = sleeper.hear("wrote")
    ended = sleeper.hear("ended")
    tell.line(f"worker-C thaws and writes at once: {_refusal(wrote['reason'])}", "care")
    sleeper.end()
    fenced = wrote["reason"] is not None and install.refusals() > refused and ended["ending"] == "fenced_out"
    tell.promise("the database rejected the write and recorded it in the journal", held=fenced)
    tell.promise("no head, run, task or chunk changed after the thaw", held=install.rows() == rows)
    after = install.meter.totals()
    charges, sent = after["charges"] - before, after["exchanges"] - exchanges
    tell.promise(
        f"{charges} charges for {documents.PARAGRAPHS} paragraphs; after the thaw it sent {sent} orders",
        held=charges == documents.PARAGRAPHS and sent == 0,
    )
    return IncidentCost("freeze, then thaw", documents.PARAGRAPHS, charges), heir


def _refusal(reason: str | None) -> str:
    return "accepted" if reason is None else f"fenced out ({reason})"


def again(install: DemoInstall, tell: Narrator) -> list[IncidentCost]:
    """The same document once more costs nothing; one changed paragraph costs one."""
    texts = documents.paragraphs("handbook")
    before = install.meter.totals()["charges"]
    same = install.request("handbook", texts)
    unchanged = install.meter.totals()["charges"] - before
    tell.line(f"document:handbook is requested again: {same.disposition}")
    texts[6] = "Paragraph 7 of the handbook: somebody has rewritten it."
    changed = install.request("handbook", texts)
    tell.line(f"one paragraph is rewritten: {changed.disposition}, generation {changed.generation}")
    install.published("handbook", changed.generation)
    rewritten = install.meter.totals()["charges"] - before - unchanged
    tell.line("published; until now readers saw the complete old version")
    held = same.disposition is Disposition.UNCHANGED and unchanged == 0
    tell.promise(f"unchanged: {unchanged} charges", held=held)
    tell.promise(f"one paragraph of {documents.PARAGRAPHS} changed: {rewritten} charge", held=rewritten == 1)
    return [
        IncidentCost("index again, unchanged", 0, unchanged),
        IncidentCost("index again, one paragraph changed", 1, rewritten),
    ]
