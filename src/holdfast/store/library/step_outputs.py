"""What steps of flows gave that are not paid for but may take long, so that none is repeated.

Kept per tenant by a key of the step, its parameters and the fields that it read. What is stored does not
depend on who stores it, so the write needs no fence; it only happens while the document is there, and goes
with the document that used it last (`StepOutputHook`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core import subjects
from holdfast.core.records import Claim, Head, RunRecord
from holdfast.store.base import rows
from holdfast.store.base.database import Database, Hook, Tx
from holdfast.store.base.dialect import KeyList, key_in, now
from holdfast.store.base.schema import step_outputs

READ = select(step_outputs.c.key, step_outputs.c.head_id, step_outputs.c.output).where(
    step_outputs.c.tenant == bindparam("tenant"),
    key_in(step_outputs.c.key, bindparam("keys", type_=KeyList())),
)
KEEP = (
    upsert(step_outputs)
    .values(
        tenant=bindparam("b_tenant"),
        key=bindparam("b_key"),
        head_id=bindparam("b_head"),
        output=bindparam("b_output"),
        created_at=now(),
    )
    .on_conflict_do_nothing()
)
TAKE = (
    update(step_outputs)
    .where(step_outputs.c.tenant == bindparam("b_tenant"), step_outputs.c.key == bindparam("b_key"))
    .values(head_id=bindparam("b_head"))
)
DROP = delete(step_outputs).where(step_outputs.c.head_id == bindparam("b_head"))


def known(db: Database, tenant: str, keys: Sequence[str], claim: Claim | None = None) -> dict[str, Any]:
    """The outputs with these keys; with a claim they are kept for its document from now on."""
    stored = db.look(READ, {"tenant": tenant, "keys": sorted(set(keys))})
    if claim is not None:
        others = [row.key for row in stored if row.head_id != claim.head_id]
        _write(db, claim, TAKE, [{"b_key": key} for key in others])
    return {row.key: row.output["value"] for row in stored}


def keep(db: Database, claim: Claim, outputs: Mapping[str, Any]) -> None:
    """The outputs are known from now on, by key, unless the document was deleted meanwhile."""
    values = [{"b_key": key, "b_output": {"value": output}} for key, output in sorted(outputs.items())]
    _write(db, claim, KEEP, values)


def _write(db: Database, claim: Claim, statement: Any, values: Sequence[Mapping[str, Any]]) -> None:
    if not values:
        return

    def body(tx: Tx) -> None:
        head = tx.one(rows.HEAD_FOR_SHARE, {"head_id": claim.head_id})
        if head is not None and not head.deleted:
            for each in values:
                tx.execute(statement, {"b_tenant": claim.tenant, "b_head": claim.head_id, **each})

    db.write("keep_step_outputs", body)


class StepOutputHook(Hook):
    """Outputs of steps are deleted with the last document that used them."""

    def after_prune(self, tx: Tx, head: Head, run: RunRecord) -> None:  # noqa: ARG002 (as the hook has it)
        """The outputs of a deleted document are gone."""
        if head.deleted and head.kind == subjects.INDEX:
            tx.execute(DROP, {"b_head": head.id})
