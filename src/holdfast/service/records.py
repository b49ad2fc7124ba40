"""Plain values that services take and return. Nothing here reads or writes."""

# ruff: noqa: F401 - they are imported from here

from holdfast.store.access.idempotency import Hold, StoredResponse
from holdfast.store.access.keys import Key
from holdfast.store.derived.graphs import GraphEdge, SourcePassage
from holdfast.store.follow_ups.delivery_attempts import Delivery
from holdfast.store.follow_ups.follow_ups import Action, FollowUp
from holdfast.store.jobs.job_results import StoredResult
from holdfast.store.jobs.jobs import JobQuery
from holdfast.store.library.collections import Collection
from holdfast.store.library.document_edits import ChunkChange
from holdfast.store.library.document_lists import Counts, DocumentQuery, SortKey
from holdfast.store.library.document_members import Family, LinkedDocument
from holdfast.store.library.documents import Document
from holdfast.store.library.flows import StoredFlow
from holdfast.store.library.imports import Imported
from holdfast.store.library.quotas import UNLIMITED, Quota, Usage
from holdfast.store.money.billing import DAY, Bill, BillRow, By, OpenOrder, TimeRange
from holdfast.store.money.budgets import TENANT as TENANT_SCOPE
from holdfast.store.money.budgets import UNCHANGED, Budget, KeepLimit
from holdfast.store.money.payments import OrderPayment
from holdfast.store.money.provider_troubles import Trouble
from holdfast.store.money.relays import Relay
from holdfast.store.protocol.duty_schedule import DutyHealth
from holdfast.store.protocol.refusals import WOULD_COST
from holdfast.store.protocol.workers import Worker, WorkerState
from holdfast.store.views.chunk_lists import ChunkList, ListedChunk
from holdfast.store.views.dashboard import Today
from holdfast.store.views.event_counts import CountPosition, EventTally, Stage
from holdfast.store.views.events import BEGINNING, Event, Position, RunStanding
from holdfast.store.views.live_runs import LiveRun
from holdfast.store.views.reads import (
    LaneCount,
    Lease,
    Noted,
    RunDetail,
    RunProgress,
    Story,
    TaskDetail,
)
from holdfast.store.views.run_summaries import RunFailure
