"""The truth: SQLAlchemy Core on SQLite and PostgreSQL, one function per transition.

Read `schema`, then `database` (what a transaction is), then `tasks` (claim, the fence, finish and publish).
"""
