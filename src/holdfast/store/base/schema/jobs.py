"""The table of job results, and the indexes for listing jobs."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from holdfast.store.base.schema.metadata import metadata, where
from holdfast.store.base.schema.protocol import heads, runs

# One question with its answer, or the fields of one document. Written in the transaction that finishes a
# slice, read only after its run has succeeded, and kept with the run: a later generation removes nothing.
# `document` and `source` are the document and its generation that was read.
job_results = Table(
    "holdfast_job_results",
    metadata,
    Column("run_id", ForeignKey("holdfast_runs.id", ondelete="CASCADE"), nullable=False),
    Column("slice", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("head_id", BigInteger, nullable=False),
    Column("document", Text, nullable=False),
    Column("source", BigInteger, nullable=False),
    Column("page", Integer),
    Column("chunk", Integer),
    # Unique within a run; NULL where there are no duplicates.
    Column("mark", Text),
    Column("good", Boolean, nullable=False),
    Column("data", JSON, nullable=False),
    PrimaryKeyConstraint("run_id", "slice", "position", name="holdfast_one_result_per_place"),
    Index("holdfast_job_results_mark", "run_id", "mark"),
    Index("holdfast_job_results_head", "head_id"),
    Index("holdfast_job_results_document", "tenant", "document"),
)

# Which runs are jobs: not indexing, not deliveries, and no follow-ups (those have a # in their subject).
# Written as in the statement, or neither database would use the index.
A_JOB = ("kind <> 'index'", "kind <> 'webhook'", "length(subject) - length(replace(subject, '#', '')) = 0")

# Deletions are few among runs, and every reader of a job selects generations above them.
A_DELETION = "reason = 'delete'"

Index(
    "holdfast_runs_deletions",
    runs.c.head_id,
    runs.c.generation,
    **where(A_DELETION),
)

# The list of jobs, newest first: all of them, and those in one state.
_jobs = where(" AND ".join(A_JOB))

Index(
    "holdfast_runs_jobs_listed",
    runs.c.tenant,
    runs.c.queued_at,
    runs.c.id,
    **_jobs,
)

Index(
    "holdfast_runs_jobs_in_state",
    runs.c.tenant,
    runs.c.status,
    runs.c.queued_at,
    runs.c.id,
    **_jobs,
)

# Few of a collection's heads have jobs.
Index(
    "holdfast_heads_jobs",
    heads.c.tenant,
    heads.c.collection,
    heads.c.id,
    **_jobs,
)
