"""Keys, sessions, idempotency and quotas."""

import sqlalchemy as sa
from alembic import op


def create() -> None:
    """The tables and their indexes are there."""
    _api_keys()
    _indexes_of_api_keys()
    _idempotency()
    _indexes_of_idempotency()
    _page_sessions()
    _indexes_of_page_sessions()
    _quotas()


def _api_keys() -> None:
    op.create_table(
        "holdfast_api_keys",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        sa.Column("rate", sa.Double(), nullable=True),
        sa.Column("concurrency", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("digest", name="holdfast_api_keys_pk"),
    )


def _indexes_of_api_keys() -> None:
    op.create_index("holdfast_api_keys_id", "holdfast_api_keys", ["id"])


def _idempotency() -> None:
    op.create_table(
        "holdfast_idempotency",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("open_until", sa.Double(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "key", name="holdfast_idempotency_pk"),
    )


def _indexes_of_idempotency() -> None:
    op.create_index("holdfast_idempotency_created", "holdfast_idempotency", ["created_at"])


def _page_sessions() -> None:
    op.create_table(
        "holdfast_page_sessions",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="holdfast_page_sessions_pk"),
    )


def _indexes_of_page_sessions() -> None:
    op.create_index("holdfast_page_sessions_expires", "holdfast_page_sessions", ["expires_at"])


def _quotas() -> None:
    op.create_table(
        "holdfast_quotas",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("documents", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("most_documents", sa.BigInteger(), nullable=True),
        sa.Column("most_bytes", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", name="holdfast_quotas_pk"),
    )
