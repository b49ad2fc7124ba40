"""The table of guarded Celery tasks: the message of each run, to be published again when it is lost."""

from sqlalchemy import JSON, Column, Double, ForeignKey, Index, Table, Text

from holdfast.store.base.schema.metadata import metadata, where

# `body` is what Celery would send as arguments, in the serialisation of the task. `options` say where to and
# how. `report_at`: the run has ended and Celery has not been told; the message is published once more then.
messages = Table(
    "holdfast_messages",
    metadata,
    Column("run_id", ForeignKey("holdfast_runs.id", ondelete="CASCADE"), primary_key=True),
    Column("celery_id", Text, nullable=False),
    Column("task_name", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("options", JSON, nullable=False),
    Column("expires_at", Double),
    Column("report_at", Double),
    Index("holdfast_messages_to_report", "report_at", **where("report_at IS NOT NULL")),
)
