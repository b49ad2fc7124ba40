"""The tables, by the room that they serve. Constraints are named for the promise they keep.

Times are seconds since 1970 by the database clock (double precision). Money is in nano-dollars. States are
text from `core.states`; statements spell them as literals, because neither database uses a partial index if
the state is a bound parameter.
"""

from holdfast.store.base.schema.access import api_keys, idempotency, page_sessions, quotas
from holdfast.store.base.schema.derived import (
    DERIVED,
    derived_edges,
    derived_nodes,
    derived_sources,
    derived_state,
)
from holdfast.store.base.schema.flows import flows, step_outputs
from holdfast.store.base.schema.follow_ups import (
    A_DELIVERY,
    A_LIVE_ONE,
    actions,
    deliveries,
    findings,
    follow_ups,
    keeps,
)
from holdfast.store.base.schema.gateway import gateway_calls, gateway_notes, gateway_usage
from holdfast.store.base.schema.guarded import messages
from holdfast.store.base.schema.jobs import A_DELETION, A_JOB, job_results
from holdfast.store.base.schema.journal import journal
from holdfast.store.base.schema.library import (
    chunk_edits,
    collections,
    document_members,
    document_values,
    documents,
    page_texts,
    rounds,
)
from holdfast.store.base.schema.metadata import Bytewise, Id, metadata, one_of
from holdfast.store.base.schema.money import (
    budgets,
    calls,
    ceilings,
    charges,
    orders,
    provider_troubles,
    relays,
    throttles,
)
from holdfast.store.base.schema.operations import duties, installation, workers
from holdfast.store.base.schema.protocol import carriers, heads, lines, runs, tasks, turns
from holdfast.store.base.schema.search import chunks, word_counts
from holdfast.store.base.schema.sources import source_items, sources

__all__ = [
    "A_DELETION",
    "A_DELIVERY",
    "A_JOB",
    "A_LIVE_ONE",
    "DERIVED",
    "Bytewise",
    "Id",
    "actions",
    "api_keys",
    "budgets",
    "calls",
    "carriers",
    "ceilings",
    "charges",
    "chunk_edits",
    "chunks",
    "collections",
    "deliveries",
    "derived_edges",
    "derived_nodes",
    "derived_sources",
    "derived_state",
    "document_members",
    "document_values",
    "documents",
    "duties",
    "findings",
    "flows",
    "follow_ups",
    "gateway_calls",
    "gateway_notes",
    "gateway_usage",
    "heads",
    "idempotency",
    "installation",
    "job_results",
    "journal",
    "keeps",
    "lines",
    "messages",
    "metadata",
    "one_of",
    "orders",
    "page_sessions",
    "page_texts",
    "provider_troubles",
    "quotas",
    "relays",
    "rounds",
    "runs",
    "source_items",
    "sources",
    "step_outputs",
    "tasks",
    "throttles",
    "turns",
    "word_counts",
    "workers",
]
