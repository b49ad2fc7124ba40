"""The protocol with every feature of the service hooked into it."""

from functools import partial

from holdfast.store.base.database import Database, Hook
from holdfast.store.derived.hooks import DerivedNodeHook
from holdfast.store.follow_ups.hooks import FollowUpHook
from holdfast.store.guarded.hooks import MessageHook
from holdfast.store.jobs.hooks import JobResultHook
from holdfast.store.library.page_texts import PageTextHook
from holdfast.store.library.step_outputs import StepOutputHook

HOOKS: tuple[Hook, ...] = (
    FollowUpHook(),
    JobResultHook(),
    PageTextHook(),
    StepOutputHook(),
    DerivedNodeHook(),
    MessageHook(),
)

# The database at a URL, whose transitions take the features along. A bare `Database` runs the protocol alone.
open_database = partial(Database, hooks=HOOKS)
