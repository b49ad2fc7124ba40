"""What several tables share."""

from typing import Any

import sqlalchemy as sa

# SQLite gives a rowid to INTEGER PRIMARY KEY only; PostgreSQL wants 64 bits.
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def where(condition: str) -> dict[str, Any]:
    """The condition of a partial index, on both databases."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}
