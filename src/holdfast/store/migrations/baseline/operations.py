"""Duties, workers and the installation."""

import sqlalchemy as sa
from alembic import op


def create() -> None:
    """The tables and their indexes are there."""
    _duties()
    _installation()
    _workers()
    _indexes_of_workers()


def _duties() -> None:
    op.create_table(
        "holdfast_duties",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("next_at", sa.Double(), server_default="0", nullable=False),
        sa.Column("last_at", sa.Double(), server_default="0", nullable=False),
        sa.Column("grace_until", sa.Double(), server_default="0", nullable=False),
        sa.Column("every", sa.Double(), server_default="0", nullable=False),
        sa.Column("enrolled_at", sa.Double(), server_default="0", nullable=False),
        sa.Column("succeeded_at", sa.Double(), server_default="0", nullable=False),
        sa.Column("failed_at", sa.Double(), server_default="0", nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("name", name="holdfast_duties_pk"),
    )


def _installation() -> None:
    op.create_table(
        "holdfast_installation",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("blobs_id", sa.Text(), nullable=False),
        sa.CheckConstraint("id = 1", name="holdfast_one_installation_per_database"),
        sa.PrimaryKeyConstraint("id", name="holdfast_installation_pk"),
    )


def _workers() -> None:
    op.create_table(
        "holdfast_workers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("broker", sa.Text(), nullable=False),
        sa.Column("health", sa.Text(), nullable=False),
        sa.Column("lanes", sa.JSON(), nullable=False),
        sa.Column("pipelines", sa.JSON(), nullable=False),
        sa.Column("processes", sa.Integer(), nullable=False),
        sa.Column("busy", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("counts", sa.JSON(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="holdfast_workers_pk"),
    )


def _indexes_of_workers() -> None:
    op.create_index("holdfast_workers_seen", "holdfast_workers", ["seen_at"])
