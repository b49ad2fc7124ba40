"""The tables of paid calls, of spending limits, and of providers that do not respond."""

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
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from holdfast.core.periods import Period
from holdfast.core.states import PRESENT, UNSETTLED, CallState, RelayState
from holdfast.store.base.schema.metadata import Id, metadata, one_of, where

calls = Table(
    "holdfast_calls",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("order_id", Text),
    Column("run_id", Text),
    # The identity of the provider: vectors of different providers are never compared.
    Column("provider", Text, nullable=False, server_default=""),
    Column("model", Text, nullable=False),
    Column("estimate", BigInteger, nullable=False),
    Column("cost", BigInteger, nullable=False, server_default="0"),
    Column("tokens", BigInteger, nullable=False, server_default="0"),
    Column("result", LargeBinary),
    Column("settled_at", Double),
    PrimaryKeyConstraint("tenant", "key", name="holdfast_g5_one_row_per_paid_input"),
    CheckConstraint(one_of("state", CallState), name="holdfast_call_state_is_known"),
    CheckConstraint(
        "state <> 'settled' OR result IS NOT NULL", name="holdfast_g5_a_settled_call_keeps_its_result"
    ),
    Index("holdfast_calls_order", "order_id"),
)

orders = Table(
    "holdfast_orders",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("call_keys", JSON, nullable=False),
    Column("weights", JSON, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("idempotency_key", Text, nullable=False),
    Column("keyed", Boolean, nullable=False),
    Column("holder", Text, nullable=False),
    # The process or the relay that sends it; unset by an older release.
    Column("carrier", Text),
    Column("task_id", BigInteger),
    Column("run_id", Text),
    Column("scopes", JSON, nullable=False),
    Column("estimate", BigInteger, nullable=False),
    # No price is known for its model: it has no estimate, and its charge no amount.
    Column("unpriced", Boolean, nullable=False, server_default=text("false")),
    Column("doubts", Integer, nullable=False, server_default="0"),
    Column("approved", Boolean, nullable=False, server_default=text("false")),
    # Random for each mark: a sender recognises its own mark by it alone.
    Column("send_token", Text),
    Column("created_at", Double, nullable=False),
    Column("first_sent_at", Double),
    Column("sent_at", Double),
    Column("deadline", Double, nullable=False),
    Column("deadline_at", Double, nullable=False),
    Column("sends", Integer, nullable=False, server_default="0"),
    Column("status_code", Integer),
    Column("reason", Text),
    Column("settled_at", Double),
    # Of a request to the gateway: the API key (empty without one), and the scope in which it is reused.
    Column("key_id", Text),
    Column("reuse_scope", Text),
    UniqueConstraint("idempotency_key", name="holdfast_g5_one_order_per_idempotency_key"),
    CheckConstraint(one_of("state", CallState), name="holdfast_order_state_is_known"),
    Index(
        "holdfast_orders_unsettled",
        "state",
        "deadline_at",
        **where(one_of("state", UNSETTLED)),
    ),
    # Separate: SQLite does not see that two of the states above are among the four.
    Index(
        "holdfast_orders_in_flight",
        "deadline_at",
        **where("state IN ('intent', 'sent')"),
    ),
    Index("holdfast_orders_run", "run_id"),
)

# A relay holds the lock of its lock file for as long as it lives: obtaining it, on the same device and
# inode, proves its death, also across containers. `gone_by` says how it is known that it is gone.
relays = Table(
    "holdfast_relays",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("lease_until", Double, nullable=False),
    Column("suspect_at", Double),
    Column("lock_path", Text, nullable=False),
    Column("lock_device", Text, nullable=False),
    Column("lock_inode", Text, nullable=False),
    Column("carrying", Integer, nullable=False, server_default="0"),
    Column("started_at", Double, nullable=False),
    Column("gone_at", Double),
    Column("gone_by", Text),
    CheckConstraint(one_of("state", RelayState), name="holdfast_relay_state_is_known"),
    CheckConstraint(
        "(state = 'gone') = (gone_by IS NOT NULL)", name="holdfast_g5_a_gone_relay_says_how_it_is_known"
    ),
    Index("holdfast_relays_present", "lease_until", **where(one_of("state", PRESENT))),
    Index("holdfast_relays_gone", "lease_until", **where("state = 'gone'")),
)

charges = Table(
    "holdfast_charges",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("order_id", ForeignKey("holdfast_orders.id"), nullable=False),
    Column("send", Integer, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("run_id", Text),
    Column("model", Text, nullable=False),
    Column("sort", Text, nullable=False),
    Column("cleared", Boolean, nullable=False, server_default=text("false")),
    Column("tokens", BigInteger, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("prices", Text, nullable=False),
    Column("at", Double, nullable=False),
    UniqueConstraint("order_id", "send", "sort", name="holdfast_g5_one_charge_per_send"),
    CheckConstraint("sort IN ('paid', 'second', 'in_doubt')", name="holdfast_charge_sort_is_known"),
    Index("holdfast_charges_tenant", "tenant", "at"),
    Index("holdfast_charges_run", "run_id"),
    Index(
        "holdfast_charges_doubts",
        "tenant",
        **where("sort = 'in_doubt' AND NOT cleared"),
    ),
)

budgets = Table(
    "holdfast_budgets",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("period", Text, nullable=False, server_default="total"),
    Column("hard_limit", BigInteger),
    Column("soft_limit", BigInteger),
    # The end of the day or month of `spent`; after it nothing is spent yet. NULL: it never ends.
    Column("window_start", Double, nullable=False, server_default="0"),
    Column("window_end", Double),
    Column("spent", BigInteger, nullable=False, server_default="0"),
    Column("reserved", BigInteger, nullable=False, server_default="0"),
    # The crossing of the soft limit is in the journal; a new limit may be crossed again.
    Column("warned", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("tenant", "scope", "period", name="holdfast_one_budget_per_scope"),
    CheckConstraint("reserved >= 0", name="holdfast_g5_reservations_are_never_negative"),
    CheckConstraint(one_of("period", Period), name="holdfast_budget_period_is_known"),
)

# What a run may spend at most, for runs with such a limit.
ceilings = Table(
    "holdfast_ceilings",
    metadata,
    Column("run_id", ForeignKey("holdfast_runs.id", ondelete="CASCADE"), primary_key=True),
    Column("most", BigInteger, nullable=False),
    Column("spent", BigInteger, nullable=False, server_default="0"),
    Column("reserved", BigInteger, nullable=False, server_default="0"),
    # Set by the request: then it also applies to later requests for the same thing.
    Column("requested", Boolean, nullable=False, server_default=text("false")),
)

throttles = Table(
    "holdfast_throttles",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("not_before", Double, nullable=False),
    Column("refusals", Integer, nullable=False, server_default="0"),
)

# Written by the sender at the first exchange that fails, deleted at the first response. Nothing depends on
# it: a row may be late or lost.
provider_troubles = Table(
    "holdfast_provider_troubles",
    metadata,
    Column("provider", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("status", Integer),
    Column("tries", Integer, nullable=False),
    Column("since", Double, nullable=False),
    Column("last_at", Double, nullable=False),
    PrimaryKeyConstraint("provider", "endpoint", name="holdfast_one_trouble_per_provider"),
)
