"""Chunks may be edited and switched off; the running release edits none."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# One call per statement: a copied document brings all its edits in one.
COUNT_POSTGRESQL = """
CREATE FUNCTION holdfast_count_edits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO holdfast_quotas AS q (tenant, documents, bytes)
        SELECT tenant, 0, sum(size) FROM new_rows GROUP BY tenant ORDER BY tenant
        ON CONFLICT (tenant) DO UPDATE SET bytes = q.bytes + excluded.bytes;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        UPDATE holdfast_quotas AS q SET bytes = q.bytes - gone.bytes
        FROM (SELECT tenant, sum(size) AS bytes FROM old_rows GROUP BY tenant) AS gone
        WHERE q.tenant = gone.tenant;
    END IF;
    RETURN NULL;
END $$
"""
TRIGGERS_POSTGRESQL = {
    "holdfast_quota_counts_new_edits": (
        "AFTER INSERT ON holdfast_chunk_edits REFERENCING NEW TABLE AS new_rows"
    ),
    "holdfast_quota_counts_other_edits": (
        "AFTER UPDATE ON holdfast_chunk_edits REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows"
    ),
    "holdfast_quota_counts_gone_edits": (
        "AFTER DELETE ON holdfast_chunk_edits REFERENCING OLD TABLE AS old_rows"
    ),
}
TRIGGERS_SQLITE = {
    "holdfast_quota_counts_new_edits": """AFTER INSERT ON holdfast_chunk_edits BEGIN
        INSERT INTO holdfast_quotas (tenant, documents, bytes) VALUES (NEW.tenant, 0, NEW.size)
        ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
    END""",
    "holdfast_quota_counts_other_edits": """AFTER UPDATE OF size ON holdfast_chunk_edits
    WHEN OLD.size <> NEW.size BEGIN
        UPDATE holdfast_quotas SET bytes = bytes + NEW.size - OLD.size WHERE tenant = NEW.tenant;
    END""",
    "holdfast_quota_counts_gone_edits": """AFTER DELETE ON holdfast_chunk_edits BEGIN
        UPDATE holdfast_quotas SET bytes = bytes - OLD.size WHERE tenant = OLD.tenant;
    END""",
}


def upgrade() -> None:
    """The column and the table exist, and the quota counts the texts."""
    op.add_column("holdfast_documents", sa.Column("edits", sa.Text(), nullable=True))
    op.create_table(
        "holdfast_chunk_edits",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("context", sa.Text(), nullable=False),
        sa.Column("page", sa.Integer(), nullable=True),
        sa.Column("original", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("mark", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint(
            "tenant", "document", "digest", "context", name="holdfast_one_edit_per_chunk"
        ),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(COUNT_POSTGRESQL)
        for name, what in TRIGGERS_POSTGRESQL.items():
            op.execute(
                f"CREATE TRIGGER {name} {what} FOR EACH STATEMENT EXECUTE FUNCTION holdfast_count_edits()"
            )
    else:
        for name, what in TRIGGERS_SQLITE.items():
            op.execute(f"CREATE TRIGGER {name} {what}")
