"""Hooks of derived nodes: those of a deleted document are deleted when its deletion is pruned."""

from holdfast.core import subjects
from holdfast.core.records import Head, RunRecord
from holdfast.store.base.database import Hook, Tx
from holdfast.store.derived import staging


class DerivedNodeHook(Hook):
    """Nodes go with their generation, or with any of the documents that they were derived from."""

    def after_prune(self, tx: Tx, head: Head, run: RunRecord) -> None:  # noqa: ARG002 (as the hook has it)
        """The nodes of a deleted document are gone."""
        if head.deleted and head.kind == subjects.INDEX:
            staging.drop_document(tx, head.tenant, subjects.document_id(head.subject))
