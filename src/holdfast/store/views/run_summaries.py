"""Following many runs at once: how many have ended, how, and their totals."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, bindparam, func, literal_column, null, select

from holdfast.core import gaps, subjects
from holdfast.core.gaps import Gap
from holdfast.core.states import LIVE, Status
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in
from holdfast.store.base.schema import documents, runs, tasks
from holdfast.store.money import payments

STEP = 1000

_runs = bindparam("runs", type_=KeyList())
STATUSES = (
    select(runs.c.status, func.count().label("number"))
    .where(key_in(runs.c.id, _runs))
    .group_by(runs.c.status)
)
SUMS = select(
    *(func.coalesce(func.sum(tasks.c[name]), 0).label(name) for name in ("reused_calls", "saved", "chunks"))
).where(key_in(tasks.c.run_id, _runs))
FAILURES = (
    select(runs.c.subject, documents.c.name, documents.c.title, runs.c.error_code, runs.c.error_message)
    .select_from(
        runs.outerjoin(
            documents,
            (documents.c.tenant == runs.c.tenant)
            & (documents.c.id == func.substr(runs.c.subject, len(subjects.DOCUMENT) + 1)),
        )
    )
    .where(key_in(runs.c.id, _runs), runs.c.status == Status.FAILED.value)
    .order_by(runs.c.subject)
    .limit(50)
)


@dataclass(frozen=True, slots=True)
class RunFailure:
    """A run that failed, and why; `name` is the file name, the title, or empty."""

    subject: str
    name: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class RunTally:
    """The totals of a number of runs so far. Money is in nano-dollars."""

    statuses: dict[str, int] = field(default_factory=dict)
    paid_calls: int = 0
    unpriced_calls: int = 0
    reused_calls: int = 0
    tokens: int = 0
    paid: int = 0
    saved: int = 0
    chunks: int = 0
    failures: tuple[RunFailure, ...] = ()

    @property
    def live(self) -> int:
        """How many have not ended."""
        return sum(number for status, number in self.statuses.items() if status in LIVE)


def live(db: Database, run_ids: Sequence[str]) -> list[str]:
    """The runs among these that have not ended; one statement per thousand."""
    query = select(runs.c.id).where(
        key_in(runs.c.id, _runs), runs.c.status.in_([status.value for status in sorted(LIVE)])
    )

    def body(tx: Tx) -> list[str]:
        return [
            row.id
            for start in range(0, len(run_ids), STEP)
            for row in tx.all(query, {"runs": list(run_ids[start : start + STEP])})
        ]

    return db.read(body)


PAGES = select(func.coalesce(func.sum(documents.c.pages), 0)).where(
    documents.c.tenant == bindparam("tenant"), key_in(documents.c.id, bindparam("ids", type_=KeyList()))
)


def pages(db: Database, tenant: str, ids: Sequence[str]) -> int:
    """The total number of pages of these documents' published generations."""
    parts = [list(ids[start : start + STEP]) for start in range(0, len(ids), STEP)]
    return db.read(
        lambda tx: sum(int(tx.execute(PAGES, {"tenant": tenant, "ids": some}).scalar_one()) for some in parts)
    )


_unread: tuple[ColumnElement[bool], ...] = (
    documents.c.gaps.is_not(null()),
    literal_column("NOT holdfast_documents.deleted"),
)
UNREAD = select(documents.c.name, documents.c.title, documents.c.gaps).where(
    documents.c.tenant == bindparam("tenant"),
    key_in(documents.c.id, bindparam("ids", type_=KeyList())),
    *_unread,
)
WITH_GAPS = select(func.count()).select_from(documents).where(*_unread)


def unread(db: Database, tenant: str, ids: Sequence[str]) -> dict[str, tuple[Gap, ...]]:
    """The gaps of these documents, by name or title; only of those that have some."""
    parts = [list(ids[start : start + STEP]) for start in range(0, len(ids), STEP)]
    return {
        row.name or row.title: gaps.from_json(row.gaps)
        for some in parts
        for row in db.look(UNREAD, {"tenant": tenant, "ids": some})
    }


def with_gaps(db: Database) -> int:
    """How many documents of the installation have pages that could not be read."""
    return int(db.look(WITH_GAPS)[0][0])


def tally(db: Database, run_ids: Sequence[str]) -> RunTally:
    """How these runs ended and what they cost."""

    def body(tx: Tx) -> RunTally:
        statuses: Counter[str] = Counter()
        sums: Counter[str] = Counter()
        failures: list[RunFailure] = []
        for start in range(0, len(run_ids), STEP):
            values = {"runs": list(run_ids[start : start + STEP])}
            statuses.update({row.status: row.number for row in tx.all(STATUSES, values)})
            row = tx.execute(SUMS, values).one()
            sums.update({name: int(number) for name, number in row._asdict().items()})
            for spent in payments.by_run(tx, values["runs"]).values():
                sums.update(paid_calls=spent.paid_calls, unpriced_calls=spent.unpriced_calls)
                sums.update(tokens=spent.tokens, paid=spent.paid)
            failures += [
                RunFailure(
                    one.subject, one.name or one.title or "", one.error_code or "", one.error_message or ""
                )
                for one in tx.all(FAILURES, values)
            ]
        return RunTally(dict(statuses), **sums, failures=tuple(failures))

    return db.read(body)
