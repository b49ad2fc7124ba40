"""Which providers fail to respond and why: for people to read while work waits.

The protocol makes no decision by it. A trouble is shown for a while after the last try: waiting work is
retried every half minute, and a provider that is no longer called does not matter.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Select, bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core.text import plain
from holdfast.store.base.database import Database
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import provider_troubles as table

SHOWN_FOR = 900.0
MOST_REASON = 300
PARTS = {
    "embeddings": "embedding provider",
    "chat/completions": "language model provider",
    "rerank": "reranker",
}
_ERRNO = re.compile(r"^(connect|name|tls): (\[Errno -?\d+\] )?")
_SAID = {"connect": "", "name": "its name cannot be resolved: ", "tls": "TLS failed: "}


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a provider does instead of responding. Times are seconds before now."""

    provider: str
    endpoint: str
    reason: str
    status: int | None
    tries: int
    since: float
    last: float

    @property
    def what(self) -> str:
        """What happened instead of a response, in words."""
        met = _ERRNO.match(self.reason)
        if met is None:
            return f"{self.reason} (status {self.status})" if self.status else self.reason
        rest = self.reason[met.end() :]
        return f"{_SAID[met[1]]}{rest[:1].lower()}{rest[1:]}"

    @property
    def sentence(self) -> str:
        """Which provider fails, how, and how often it was tried."""
        part = PARTS.get(self.endpoint, "document service")
        if not self.tries:
            return f"{part} {self.provider}: {self.what}"
        attempts = "1 attempt" if self.tries == 1 else f"{self.tries:,} attempts"
        return f"{part} {self.provider}: {self.what}, {attempts}, the last {self.last:.0f} s ago"


_new = upsert(table).values(
    provider=bindparam("b_provider"),
    endpoint=bindparam("b_endpoint"),
    reason=bindparam("b_reason"),
    status=bindparam("b_status"),
    tries=bindparam("b_tries"),
    since=now(),
    last_at=now(),
)
NOTE = _new.on_conflict_do_update(
    index_elements=[table.c.provider, table.c.endpoint],
    set_={
        "reason": _new.excluded.reason,
        "status": _new.excluded.status,
        "tries": table.c.tries + _new.excluded.tries,
        "last_at": now(),
    },
)


def note(db: Database, provider: str, endpoint: str, *, reason: str, status: int | None, tries: int) -> None:
    """The provider has failed this many more times."""
    values = {
        "b_provider": provider,
        "b_endpoint": endpoint,
        "b_reason": plain(reason)[:MOST_REASON],
        "b_status": status,
        "b_tries": tries,
    }
    db.write("provider_trouble", lambda tx: tx.execute(NOTE, values), relaxed=True)


CLEAR = delete(table).where(
    table.c.provider == bindparam("b_provider"), table.c.endpoint == bindparam("b_endpoint")
)
KNOWN = select(table.c.tries).where(
    table.c.provider == bindparam("b_provider"), table.c.endpoint == bindparam("b_endpoint")
)


def clear(db: Database, provider: str, endpoint: str) -> None:
    """The provider has responded: the trouble is over. Reads first, as there is hardly ever a trouble."""
    values = {"b_provider": provider, "b_endpoint": endpoint}
    if db.first(KNOWN, values) is not None:
        db.write("provider_answers", lambda tx: tx.execute(CLEAR, values), relaxed=True)


def _recent() -> Select[tuple[str, str, str, int | None, int, float, float]]:
    columns = (table.c[name] for name in ("provider", "endpoint", "reason", "status", "tries"))
    ages = ((now() - table.c[name]).label(label) for name, label in (("since", "since"), ("last_at", "last")))
    return select(*columns, *ages).where(table.c.last_at > now() - SHOWN_FOR)


RECENT = _recent().order_by(table.c.since).limit(50)


def all_of(db: Database) -> Sequence[Trouble]:
    """Providers that fail at the moment, oldest trouble first."""
    return [Trouble(**row._asdict()) for row in db.look(RECENT)]
