"""The truth: SQLAlchemy Core on SQLite and PostgreSQL, one function per transition.

Rooms, from the ground up; each may use those below it (an import contract says so):

- `base`: the database, its two dialects, rows, the journal, the tables, and the migrations
- `protocol`: requests, claims, the fence, publishing, and the repairs of the sweep. It knows no feature
- `money`: paid calls, orders, charges, budgets, the bill
- `follow_ups`, `jobs`: features, hooked into the protocol (`base.database.Hook`)
- `library`: collections and documents
- `views`, `search`, `access`: reads for people, what search reads, keys and sessions
- `features`: the database with every feature hooked in

Read `base.schema`, then `base.database` (what a transaction is), then `protocol.tasks` (the fence, finish
and publish).
"""
