"""What all tables share: the metadata, the types of ids and subjects, and the checks of states."""

from typing import Any

from sqlalchemy import BigInteger, Integer, MetaData, Text, text

# Tables, indexes and constraints begin with `holdfast_`: they may share the database of an application.
metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "fk": "%(table_name)s_%(column_0_name)s_fk",
        "ix": "%(table_name)s_%(column_0_N_name)s",
    }
)

# SQLite gives a rowid only to INTEGER PRIMARY KEY; PostgreSQL needs 64 bits.
Id = BigInteger().with_variant(Integer, "sqlite")

# Compared byte by byte, because ranges of it are read: a language's order may skip punctuation, and then
# "document:4/…" would include "document:42/…".
Bytewise = Text().with_variant(Text(collation="C"), "postgresql")


def one_of(column: str, states: object) -> str:
    """SQL that tests `column` against literal states, sorted so that the text is stable."""
    names = ", ".join(f"'{state}'" for state in sorted(str(state) for state in states))  # type: ignore[attr-defined]
    return f"{column} IN ({names})"


def where(condition: str) -> dict[str, Any]:
    """The condition of a partial index, the same for both databases."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}
