"""Documents may have an external id, unique in their collection; those that have one may have equal contents.

The running release writes no external id, and names no index when it inserts: for its documents the rule of
same content holds before and after.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

CONTENT = "holdfast_one_live_document_per_content"
EXTERNAL_ID = "holdfast_one_live_document_per_external_id"


def _unique(name: str, column: str, condition: str) -> None:
    op.create_index(
        name,
        "holdfast_documents",
        ["tenant", "collection", column],
        unique=True,
        # As statements spell it for SQLite, which compares the text.
        sqlite_where=sa.text(condition.replace("NOT deleted", "deleted = 0")),
        postgresql_where=sa.text(condition),
    )


def upgrade() -> None:
    """The column exists, and both rules are kept by the database."""
    collation = "C" if op.get_bind().dialect.name == "postgresql" else None
    op.add_column("holdfast_documents", sa.Column("external_id", sa.Text(collation=collation)))
    op.drop_index(CONTENT, "holdfast_documents")
    _unique(CONTENT, "digest", "external_id IS NULL AND NOT deleted")
    _unique(EXTERNAL_ID, "external_id", "external_id IS NOT NULL AND NOT deleted")
