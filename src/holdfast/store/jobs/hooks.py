"""What the results of jobs add to the protocol: they go when what they came from is pruned."""

from holdfast.core.records import Head, RunRecord
from holdfast.store.base.database import Hook, Tx
from holdfast.store.jobs import job_results


class JobResultHook(Hook):
    """Results are kept with their run, and go with it or with their document."""

    def after_prune(self, tx: Tx, head: Head, run: RunRecord) -> None:
        """The results that the end of the run made superfluous are gone."""
        job_results.prune(tx, head, run)
