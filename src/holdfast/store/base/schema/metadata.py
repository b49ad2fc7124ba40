"""What every table shares: the metadata, the types of ids and subjects, and the checks of states."""

from typing import Any

from sqlalchemy import BigInteger, Integer, MetaData, Text, text

# Tables, indexes and constraints begin with `holdfast_`: they may live in the database of an application.
metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "fk": "%(table_name)s_%(column_0_name)s_fk",
        "ix": "%(table_name)s_%(column_0_N_name)s",
    }
)

# SQLite gives a rowid to INTEGER PRIMARY KEY only; PostgreSQL wants 64 bits.
Id = BigInteger().with_variant(Integer, "sqlite")

# Compared byte by byte, for ranges of it are read: a language's order may skip punctuation, and then
# "document:4/…" would cover "document:42/…".
Bytewise = Text().with_variant(Text(collation="C"), "postgresql")


def one_of(column: str, states: object) -> str:
    """SQL that tests `column` against literal states, sorted so that the text is stable."""
    names = ", ".join(f"'{state}'" for state in sorted(str(state) for state in states))  # type: ignore[attr-defined]
    return f"{column} IN ({names})"


def where(condition: str) -> dict[str, Any]:
    """The condition of a partial index, spelled alike for both databases."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}
