"""The results of an agent's tools by step, stored so that a resumed run sees the same."""

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core.records import Claim, Fenced, Landed, Outcome
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.schema import findings
from holdfast.store.protocol import tasks as fenced

KEEP = upsert(findings).on_conflict_do_nothing()
OF_RUN = select(findings.c.step, findings.c.text).where(findings.c.run_id == bindparam("run_id"))


def of_run(db: Database, run_id: str) -> dict[int, str]:
    """The results, by step."""
    return {row.step: row.text for row in db.look(OF_RUN, {"run_id": run_id})}


def keep(db: Database, claim: Claim, step: int, text: str) -> Outcome:
    """The run's result of this step is stored; the first one stays."""

    def body(tx: Tx) -> Outcome:
        held = fenced.hold(tx, claim, change=False)
        if isinstance(held, Fenced | Landed):
            return held
        tx.execute(KEEP, {"run_id": claim.run_id, "step": step, "text": text})
        return Landed()

    return db.write("keep_finding", body)
