"""A duty of the sweep: what collections derive from their documents is requested again after changes."""

from holdfast.core import isolation
from holdfast.core.errors import HoldfastError, StoreUnavailableError
from holdfast.core.states import Disposition, Lane
from holdfast.engine.engine import Engine
from holdfast.kinds import parameters
from holdfast.ledger import prices
from holdfast.service.collections import Collections
from holdfast.service.jobs import JobRequest, Jobs
from holdfast.service.requests import RequestContext
from holdfast.store.follow_ups import keeps
from holdfast.store.follow_ups.keeps import Keep

PER_TURN = 100
# Seconds after which something that could not be requested is tried again, at the soonest.
RETRY = 600.0


class Keeping:
    """The actions that keep something up to date."""

    def __init__(self, engine: Engine, collections: Collections, jobs: Jobs) -> None:
        self._db = engine.db
        self._collections = collections
        self._jobs = jobs

    def run_due(self) -> int:
        """One turn: changes are seen, and runs that are due are requested; how many runs."""
        return isolation.for_each(
            keeps.with_work(self._db, PER_TURN), self._turn, name=lambda each: f"action {each.action_id}"
        )

    def _turn(self, keep: Keep) -> int:
        seen: Keep | None = keep
        if keep.publish_seq != keep.seen_seq:
            seen = keeps.see(self._db, keep)
        return self._request(seen) if seen is not None and seen.is_due else 0

    def _request(self, keep: Keep) -> int:
        wish = RequestContext(keep.tenant, f"action:{keep.action_id}", Lane.BULK)
        most = keep.options.get("max_cost")
        try:
            order = JobRequest(
                keep.kind,
                parameters.of_job(keep.options),
                max_cost=None if most is None else prices.dollars(float(most)),
            )
            collection = self._collections.get(keep.tenant, keep.collection)
            result = self._jobs.on_collection(wish, collection, order)
        except StoreUnavailableError:
            raise
        except HoldfastError as error:
            # Without a document there is nothing to do until there is one; that is a change.
            later = None if error.code == "nothing_ready" else max(RETRY, keep.quiet)
            keeps.settle(self._db, keep, (error.code, error.message), later)
            return 0
        if result.disposition is Disposition.REFUSED:
            message = f"the run was refused: {result.reason}"
            keeps.settle(self._db, keep, ("refused", message), max(RETRY, keep.quiet))
            return 0
        if result.head_id is not None and result.run_id is not None:
            keeps.note_run(self._db, keep, result.head_id, result.generation, result.run_id, wish.actor)
        if result.disposition is Disposition.DUPLICATE:
            keeps.postpone(self._db, keep)
        else:
            keeps.settle(self._db, keep, None, None)
        return int(result.created)
