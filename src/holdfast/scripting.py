"""Holdfast inside one script: it requests, it works and it reads. `holdfast.open` makes one.

The engine, the store and the tables behind it are private and may change with any release.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from holdfast.core.errors import NotFoundError, SchemaError
from holdfast.core.records import Ask, Chunk, Landed, RequestResult
from holdfast.core.states import Lane
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.engine.kinds import Kind
from holdfast.ledger.prices import dollars
from holdfast.providers.base import Provider
from holdfast.store.base import dialect
from holdfast.store.base import migrate as migrations
from holdfast.store.base.database import Database
from holdfast.store.base.driver_errors import answering
from holdfast.store.features import open_database
from holdfast.store.views import reads

# Rows read at a time by `visible_chunks`.
PAGE = 1000


@dataclass(frozen=True, slots=True)
class TaskResult:
    """How one task ended: `finished`, `published`, `planned`, `failed`, `put_back` and so on."""

    kind: str
    subject: str
    generation: int
    slice: int
    ending: str
    reason: str


@dataclass(frozen=True, slots=True)
class SubjectState:
    """What the database says of one (kind, subject) now.

    `generation` is the latest that was requested, `published_generation` the one that readers see. The error
    is that of the latest run, if it failed.
    """

    kind: str
    subject: str
    status: str
    generation: int
    published_generation: int
    visible: bool
    error_code: str | None
    error_message: str | None


class Holdfast:
    """One database, some kinds and some providers, worked by this process. Close it after use."""

    def __init__(self, database: Database, kinds: Sequence[Kind], providers: Mapping[str, Provider]) -> None:
        self._database = database
        self._engine = Engine(database, EngineDependencies(kinds=kinds, providers=providers))

    def request(
        self,
        kind: str,
        subject: str,
        *,
        content: str = "",
        options: Mapping[str, object] | None = None,
        tenant: str = "default",
        lane: str = Lane.BULK,
        priority: int = 5,
        force: bool = False,
        max_cost: float | None = None,
    ) -> RequestResult:
        """What became of the request: accepted, duplicate, unchanged, superseding or refused, and why.

        `content` and `options` say what is to be done; the same ones again make nothing new, unless `force`.
        `max_cost` is in dollars, for this run. Raises BadRequestError for what can never be accepted.
        """
        limit = None if max_cost is None else dollars(max_cost)
        return self._engine.request(
            Ask(
                kind,
                subject,
                content=content,
                options=options or {},
                tenant=tenant,
                lane=lane,
                priority=priority,
                force=force,
                max_cost=limit,
            )
        )

    def run_until_idle(self, *, patience: float = 60.0) -> list[TaskResult]:
        """All that is due, or falls due within `patience` seconds, was done here; how each task ended."""
        return [
            TaskResult(
                done.claim.kind,
                done.claim.subject,
                done.claim.generation,
                done.claim.ordinal,
                done.ending.value,
                done.reason,
            )
            for done in self._engine.run_until_idle(patience=patience)
        ]

    def read(self, kind: str, subject: str, *, tenant: str = "default") -> SubjectState | None:
        """How the subject stands; None when nobody ever requested it."""
        head = reads.head(self._database, tenant, kind, subject)
        if head is None:
            return None
        detail = None if head.run_id is None else reads.run(self._database, head.run_id)
        return SubjectState(
            kind,
            subject,
            head.status.value,
            head.generation,
            head.published_generation,
            head.visible,
            None if detail is None else detail.run.error_code,
            None if detail is None else detail.run.error_message,
        )

    def visible_chunks(self, kind: str, subject: str, *, tenant: str = "default") -> list[Chunk]:
        """The chunks that readers see, all of one generation, in order; none when nothing is published."""
        head = reads.head(self._database, tenant, kind, subject)
        if head is None:
            return []
        chunks: list[Chunk] = []
        generation, after = None, (-1, -1)
        while (page := reads.visible_chunks(self._database, head.id, after=after, limit=PAGE)) is not None:
            if generation not in {None, page.generation}:  # published meanwhile: begin again
                chunks, generation, after = [], None, (-1, -1)
                continue
            chunks += [each.chunk for each in page.chunks]
            if len(page.chunks) < PAGE:
                return chunks
            generation, after = page.generation, (page.chunks[-1].slice, page.chunks[-1].chunk.position)
        return []

    def cancel(self, kind: str, subject: str, *, tenant: str = "default") -> bool:
        """The live run has ended, and what is published stays; False when none was live."""
        head = reads.head(self._database, tenant, kind, subject)
        if head is None:
            raise NotFoundError(f"nobody ever requested {kind} of {subject} for tenant {tenant}")
        return isinstance(self._engine.cancel(head.id), Landed)

    def delete(self, subject: str, *, tenant: str = "default") -> bool:
        """Nothing of the subject is visible or running any more, in any kind; False when nothing was."""
        return bool(self._engine.delete(tenant, subject))

    def close(self) -> None:
        """The connections to the database are closed. Providers are the caller's to close."""
        self._engine.watchdog.stop()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open(  # noqa: A001 - read as holdfast.open
    url: str = "sqlite:///holdfast.db",
    *,
    kinds: Sequence[Kind] = (),
    providers: Mapping[str, Provider] | None = None,
    migrate: bool = True,
) -> Holdfast:
    """A `Holdfast` on the database at `url`, whose tables are there and are those of this release.

    With `migrate` false nothing is created or changed: a database at another revision is a SchemaError that
    says what to do. Raises StoreUnavailableError when the database does not answer.
    """
    with answering("the database did not answer ({}); check that it runs and that its URL is right"):
        if migrate:
            migrations.upgrade(url)
        elif (file := dialect.sqlite_file(url)) is not None and not file.exists():
            raise SchemaError(f"there is no database at {file}; leave out migrate=False to create it")
        with contextlib.ExitStack() as undo:
            database = undo.enter_context(contextlib.closing(open_database(url)))
            migrations.check(database.engine)
            hold = Holdfast(database, kinds, providers or {})
            undo.pop_all()
        return hold
