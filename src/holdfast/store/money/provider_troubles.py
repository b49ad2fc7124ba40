"""Which providers give no answer, and what they say instead: for people to look at while work waits.

No decision of the protocol reads it. A trouble is told of for a while after the last try: work that is waited
for is tried every half minute, and a provider that nobody asks any more is nobody's concern.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Select, bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.store.base.database import Database
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import provider_troubles as table
from holdfast.store.base.text import plain

SHOWN_FOR = 900.0
MOST_REASON = 300
PARTS = {"embeddings": "embedding provider"}
_ERRNO = re.compile(r"^(connect|name|tls): (\[Errno -?\d+\] )?")
_SAID = {"connect": "", "name": "its name cannot be resolved: ", "tls": "TLS failed: "}


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a provider does instead of answering. Times are seconds before now."""

    provider: str
    endpoint: str
    reason: str
    status: int | None
    tries: int
    since: float
    last: float

    @property
    def what(self) -> str:
        """What comes instead of an answer, in words."""
        met = _ERRNO.match(self.reason)
        if met is None:
            return f"{self.reason} (status {self.status})" if self.status else self.reason
        rest = self.reason[met.end() :]
        return f"{_SAID[met[1]]}{rest[:1].lower()}{rest[1:]}"

    @property
    def sentence(self) -> str:
        """Who does not answer, what comes instead, and how often that was tried."""
        part = PARTS.get(self.endpoint, "language model provider")
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
    """The provider was tried so many times more in vain."""
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
    """The provider has answered: what was wrong is over. A look first, for there is hardly ever a trouble."""
    values = {"b_provider": provider, "b_endpoint": endpoint}
    if db.first(KNOWN, values) is not None:
        db.write("provider_answers", lambda tx: tx.execute(CLEAR, values), relaxed=True)


def _recent() -> Select[tuple[str, str, str, int | None, int, float, float]]:
    columns = (table.c[name] for name in ("provider", "endpoint", "reason", "status", "tries"))
    ages = ((now() - table.c[name]).label(label) for name, label in (("since", "since"), ("last_at", "last")))
    return select(*columns, *ages).where(table.c.last_at > now() - SHOWN_FOR)


RECENT = _recent().order_by(table.c.since).limit(50)


def all_of(db: Database) -> Sequence[Trouble]:
    """What is not answered at the moment, the oldest trouble first."""
    return [Trouble(**row._asdict()) for row in db.look(RECENT)]
