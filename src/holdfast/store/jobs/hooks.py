"""Hooks of job results: they are deleted when their source is pruned."""

from holdfast.core.records import Head, RunRecord
from holdfast.store.base.database import Hook, Tx
from holdfast.store.jobs import job_results


class JobResultHook(Hook):
    """Results are stored with their run, and deleted with it or with their document."""

    def after_prune(self, tx: Tx, head: Head, run: RunRecord) -> None:
        """The results that the end of the run made obsolete are deleted."""
        job_results.prune(tx, head, run)
