"""The journal is read in the order in which its entries appear; what tenants hold is counted.

Entries that are there get the transaction 0 and so come first, in the order of their numbers. What a tenant
holds is counted by triggers, so that it is right whoever writes: also workers of the release before.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0019"
branch_labels = None
depends_on = None

COUNT_POSTGRESQL = """
CREATE FUNCTION holdfast_count_documents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO quotas AS q (tenant, documents, bytes)
        SELECT tenant, count(*), coalesce(sum(size), 0) FROM new_rows WHERE NOT deleted
        GROUP BY tenant ORDER BY tenant
        ON CONFLICT (tenant) DO UPDATE
        SET documents = q.documents + excluded.documents, bytes = q.bytes + excluded.bytes;
    ELSIF TG_OP = 'DELETE' THEN
        UPDATE quotas AS q SET documents = q.documents - gone.documents, bytes = q.bytes - gone.bytes
        FROM (SELECT tenant, count(*) AS documents, coalesce(sum(size), 0) AS bytes FROM old_rows
              WHERE NOT deleted GROUP BY tenant) AS gone
        WHERE q.tenant = gone.tenant;
    ELSE
        INSERT INTO quotas AS q (tenant, documents, bytes)
        SELECT tenant, sum(number), sum(size) FROM (
            SELECT tenant, 1 AS number, size FROM new_rows WHERE NOT deleted
            UNION ALL SELECT tenant, -1, -size FROM old_rows WHERE NOT deleted
        ) AS changed
        GROUP BY tenant HAVING sum(number) <> 0 OR sum(size) <> 0 ORDER BY tenant
        ON CONFLICT (tenant) DO UPDATE
        SET documents = q.documents + excluded.documents, bytes = q.bytes + excluded.bytes;
    END IF;
    RETURN NULL;
END $$
"""
# One statement, one trigger: a collection of 100,000 documents that is deleted is one change of one row.
TRIGGERS_POSTGRESQL = {
    "quota_counts_inserts": "AFTER INSERT ON documents REFERENCING NEW TABLE AS new_rows",
    "quota_counts_updates": (
        "AFTER UPDATE ON documents REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows"
    ),
    "quota_counts_deletes": "AFTER DELETE ON documents REFERENCING OLD TABLE AS old_rows",
}
TRIGGERS_SQLITE = {
    "quota_counts_inserts": """AFTER INSERT ON documents WHEN NOT NEW.deleted BEGIN
        INSERT INTO quotas (tenant, documents, bytes) VALUES (NEW.tenant, 1, NEW.size)
        ON CONFLICT (tenant) DO UPDATE SET documents = documents + 1, bytes = bytes + excluded.bytes;
    END""",
    "quota_counts_updates": """AFTER UPDATE OF size, deleted ON documents
    WHEN OLD.size <> NEW.size OR OLD.deleted <> NEW.deleted BEGIN
        UPDATE quotas SET
            documents = documents + (NOT NEW.deleted) - (NOT OLD.deleted),
            bytes = bytes + (NOT NEW.deleted) * NEW.size - (NOT OLD.deleted) * OLD.size
        WHERE tenant = NEW.tenant;
    END""",
    "quota_counts_deletes": """AFTER DELETE ON documents WHEN NOT OLD.deleted BEGIN
        UPDATE quotas SET documents = documents - 1, bytes = bytes - OLD.size WHERE tenant = OLD.tenant;
    END""",
}
COUNTED = (
    "INSERT INTO quotas (tenant, documents, bytes) "
    "SELECT tenant, count(*), coalesce(sum(size), 0) FROM documents WHERE NOT deleted GROUP BY tenant"
)


def _is_postgresql() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def upgrade() -> None:
    op.add_column("journal", sa.Column("xid", sa.BigInteger, nullable=False, server_default="0"))
    if _is_postgresql():
        # Not with the column: a default that is another for each row would write all of them again.
        op.execute("ALTER TABLE journal ALTER COLUMN xid SET DEFAULT pg_current_xact_id()::text::bigint")
    op.create_index("ix_journal_order", "journal", ["xid", "id"])
    op.drop_index("ix_journal_head", table_name="journal")
    op.create_index("ix_journal_head", "journal", ["head_id", "xid", "id"])
    op.drop_index("ix_journal_tenant", table_name="journal")
    op.create_index("ix_journal_tenant", "journal", ["tenant", "xid", "id"])

    op.create_table(
        "quotas",
        sa.Column("tenant", sa.Text, primary_key=True),
        sa.Column("documents", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("bytes", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("most_documents", sa.BigInteger),
        sa.Column("most_bytes", sa.BigInteger),
    )
    # Triggers before the count: from then on nobody adds a document until this transaction ends.
    if _is_postgresql():
        op.execute(COUNT_POSTGRESQL)
        for name, what in TRIGGERS_POSTGRESQL.items():
            op.execute(
                f"CREATE TRIGGER {name} {what} FOR EACH STATEMENT EXECUTE FUNCTION holdfast_count_documents()"
            )
    else:
        for name, what in TRIGGERS_SQLITE.items():
            op.execute(f"CREATE TRIGGER {name} {what}")
    op.execute(COUNTED)


def downgrade() -> None:
    for name in TRIGGERS_SQLITE:
        op.execute(f"DROP TRIGGER {name}{' ON documents' if _is_postgresql() else ''}")
    if _is_postgresql():
        op.execute("DROP FUNCTION holdfast_count_documents()")
    op.drop_table("quotas")
    op.drop_index("ix_journal_order", table_name="journal")
    op.drop_index("ix_journal_head", table_name="journal")
    op.create_index("ix_journal_head", "journal", ["head_id", "id"])
    op.drop_index("ix_journal_tenant", table_name="journal")
    op.create_index("ix_journal_tenant", "journal", ["tenant", "id"])
    op.drop_column("journal", "xid")
