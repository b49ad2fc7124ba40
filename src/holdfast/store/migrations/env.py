"""Alembic's entry: run the migrations on the engine that `migrate.upgrade` passes."""

from alembic import context

from holdfast.store.base import dialect
from holdfast.store.base.revisions import VERSION_TABLE
from holdfast.store.base.schema import metadata

engine = context.config.attributes["engine"]

with engine.connect() as connection:
    if connection.dialect.name == "postgresql":
        # Of two migrators the second waits here. If a lock is not granted in 5 s, the migration fails, not
        # the service.
        connection.exec_driver_sql("SET lock_timeout = '5s'")
        connection.exec_driver_sql("SELECT pg_advisory_lock(7142301)")
        connection.commit()
    context.configure(
        connection=connection,
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        version_table_schema=dialect.schema_of(engine),
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_unlock(7142301)")
        connection.commit()
