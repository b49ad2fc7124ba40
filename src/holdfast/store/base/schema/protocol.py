"""The tables of the protocol: heads, runs, tasks, the fair queue, run logs, and carriers."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from holdfast.core.states import LIVE, Status, TaskState
from holdfast.store.base.schema.metadata import Bytewise, Id, metadata, one_of, where

heads = Table(
    "holdfast_heads",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("tenant", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Bytewise, nullable=False),
    Column("collection", Text),
    Column("generation", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("run_id", Text),
    Column("fingerprint", Text, nullable=False),
    Column("published_generation", BigInteger, nullable=False, server_default="0"),
    Column("visible", Boolean, nullable=False, server_default=text("false")),
    Column("deleted", Boolean, nullable=False, server_default=text("false")),
    Column("imported", Boolean, nullable=False, server_default=text("false")),
    Column("updated_at", Double, nullable=False),
    UniqueConstraint("tenant", "kind", "subject", name="holdfast_g1_one_head_per_kind_and_subject"),
    CheckConstraint(
        "published_generation <= generation", name="holdfast_g3_published_is_never_ahead_of_requested"
    ),
    CheckConstraint(one_of("status", Status), name="holdfast_head_status_is_known"),
    Index("holdfast_heads_collection", "tenant", "collection", "id"),
    Index("holdfast_heads_subject", "tenant", "subject"),
)

runs = Table(
    "holdfast_runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("head_id", ForeignKey("holdfast_heads.id"), nullable=False),
    Column("tenant", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("disposition", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("lane", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("pipeline", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("options", JSON, nullable=False),
    # The trace of the request, in W3C format; not part of the work.
    Column("trace", Text),
    # `slices`: the ordinal of the last planned task. `phase`: the current one, from 0.
    Column("slices", Integer),
    Column("phase", Integer, nullable=False, server_default="0"),
    Column("queued_at", Double, nullable=False),
    Column("started_at", Double),
    Column("finished_at", Double),
    Column("error_code", Text),
    Column("error_message", Text),
    Column("result", JSON(none_as_null=True)),
    # The callback for its end: {url, secret}.
    Column("callback", JSON(none_as_null=True)),
    # `pruned`: the chunks that this run's end made obsolete are deleted. `past`: a later run replaced it.
    Column("pruned", Boolean, nullable=False, server_default=text("false")),
    Column("past", Boolean, nullable=False, server_default=text("false")),
    UniqueConstraint("head_id", "generation", name="holdfast_g1_one_run_per_generation"),
    CheckConstraint(one_of("status", Status), name="holdfast_run_status_is_known"),
    Index(
        "holdfast_g1_one_live_run_per_head",
        "head_id",
        unique=True,
        **where(one_of("status", LIVE)),
    ),
    Index(
        "holdfast_runs_running",
        "head_id",
        **where("status = 'running'"),
    ),
    Index("holdfast_runs_finished", "finished_at"),
    Index(
        "holdfast_runs_unpruned",
        "finished_at",
        **where("finished_at IS NOT NULL AND NOT pruned"),
    ),
    Index(
        "holdfast_runs_past",
        "finished_at",
        **where("past"),
    ),
)

tasks = Table(
    "holdfast_tasks",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("run_id", ForeignKey("holdfast_runs.id", ondelete="CASCADE"), nullable=False),
    Column("head_id", BigInteger, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("lane", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("age", Double, nullable=False),
    Column("pipeline", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("phase", Integer, nullable=False, server_default="0"),
    Column("payload", JSON, nullable=False),
    Column("weight", Integer, nullable=False, server_default="1"),
    Column("state", Text, nullable=False),
    Column("due_at", Double, nullable=False),
    Column("waiting_for", Text),
    Column("epoch", BigInteger, nullable=False, server_default="0"),
    Column("owner", Text),
    Column("token", Text),
    Column("lease_until", Double, nullable=False, server_default="0"),
    Column("claimed_at", Double, nullable=False, server_default="0"),
    Column("signed_at", Double, nullable=False, server_default="0"),
    Column("advanced", Boolean, nullable=False, server_default=text("false")),
    # `carrier`: the process that holds it. `attempts`: deaths of that process alone. `losses`: of its worker.
    Column("carrier", Text),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("losses", Integer, nullable=False, server_default="0"),
    Column("only_waits", Boolean, nullable=False, server_default=text("false")),
    Column("deferrals", Integer, nullable=False, server_default="0"),
    Column("look_again_at", Double, nullable=False, server_default="0"),
    Column("done", BigInteger, nullable=False, server_default="0"),
    Column("total", BigInteger, nullable=False, server_default="0"),
    Column("unit", Text, nullable=False, server_default=""),
    Column("stages", JSON(none_as_null=True)),
    Column("paid_calls", Integer, nullable=False, server_default="0"),
    # Paid calls without a known price.
    Column("unpriced_calls", Integer, nullable=False, server_default="0"),
    Column("reused_calls", Integer, nullable=False, server_default="0"),
    Column("tokens", BigInteger, nullable=False, server_default="0"),
    Column("paid", BigInteger, nullable=False, server_default="0"),
    Column("saved", BigInteger, nullable=False, server_default="0"),
    Column("chunks", Integer, nullable=False, server_default="0"),
    Column("result", JSON(none_as_null=True)),
    UniqueConstraint("run_id", "ordinal", name="holdfast_one_task_per_slice"),
    CheckConstraint(one_of("state", TaskState), name="holdfast_task_state_is_known"),
    CheckConstraint("epoch >= 0 AND lease_until >= 0", name="holdfast_g2_epoch_and_lease_are_numbers"),
    Index(
        "holdfast_tasks_queued",
        "lane",
        "tenant",
        "priority",
        "age",
        "id",
        **where("state = 'queued'"),
    ),
    Index(
        "holdfast_tasks_waiting",
        "due_at",
        **where("state = 'waiting'"),
    ),
    Index(
        "holdfast_tasks_running",
        "lease_until",
        **where("state = 'running'"),
    ),
    # Guarded tasks whose message is to be published, now or again.
    Index(
        "holdfast_tasks_to_publish",
        "look_again_at",
        **where("state = 'queued' AND lane = 'guarded'"),
    ),
    Index(
        "holdfast_tasks_token",
        "token",
        **where("state = 'running'"),
    ),
    sqlite_autoincrement=True,
)

turns = Table(
    "holdfast_turns",
    metadata,
    Column("lane", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("last_served", Double, nullable=False, server_default="0"),
    PrimaryKeyConstraint("lane", "tenant", name="holdfast_one_turn_per_lane_and_tenant"),
)

lines = Table(
    "holdfast_lines",
    metadata,
    Column("run_id", ForeignKey("holdfast_runs.id", ondelete="CASCADE"), nullable=False),
    Column("id", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("text", Text, nullable=False),
    PrimaryKeyConstraint("run_id", "id", name="holdfast_one_line_per_id"),
)

# `process` lets others on its machine find out whether it has died. `parent` is the process that watches it,
# "" if none does. The lease is renewed while an order is in flight and means nothing otherwise.
carriers = Table(
    "holdfast_carriers",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("process", Text, nullable=False),
    Column("parent", Text, nullable=False),
    Column("lease_until", Double, nullable=False, server_default="0"),
    Column("started_at", Double, nullable=False),
    Column("ended_at", Double),
    Index("holdfast_carriers_process", "process"),
    Index("holdfast_carriers_lease", "lease_until"),
)
