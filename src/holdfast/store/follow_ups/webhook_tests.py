"""Tests of webhooks: an event marked as a test, sent to the URL of an action."""

from sqlalchemy import bindparam, select, text

from holdfast.core.records import Fenced, Landed, Outcome
from holdfast.core.states import LIVE
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.schema import A_DELIVERY, actions, one_of, runs
from holdfast.store.base.schema import deliveries as sent
from holdfast.store.follow_ups import deliveries

# One test at a time: the second of two clicks waits here, and then sees the first one's test. Removing the
# action waits, too, and then cancels the test.
WEBHOOK = (
    select(actions)
    .where(
        actions.c.tenant == bindparam("tenant"),
        actions.c.collection == bindparam("collection"),
        actions.c.id == bindparam("action_id"),
        actions.c.kind == deliveries.KIND,
        actions.c.active,
    )
    .with_for_update(key_share=True)
)
PENDING_TEST = (
    select(sent.c.id)
    .join(runs, (runs.c.tenant == sent.c.tenant) & (runs.c.head_id == sent.c.head_id))
    .where(
        sent.c.action_id == bindparam("action_id"),
        sent.c.event == deliveries.TEST,
        # Live deliveries are few compared with all that were ever created.
        text(f"holdfast_runs.{A_DELIVERY}"),
        text(f"holdfast_runs.{one_of('status', LIVE)}"),
    )
    .limit(1)
)


ALREADY_SENT = select(sent.c.id).where(sent.c.id == bindparam("event_id"))


def send_test(
    db: Database, *, tenant: str, collection: str, action_id: int, event_id: str, actor: str = ""
) -> Outcome | str:
    """An event marked as a test is on its way to the webhook's URL, signed like any other.

    While an earlier test of the same action is on its way, its id is returned instead and nothing is sent.
    Fenced out if the collection has no such webhook.
    """

    def body(tx: Tx) -> Outcome | str:
        where = {"tenant": tenant, "collection": collection, "action_id": action_id}
        if tx.again and tx.one(ALREADY_SENT, {"event_id": event_id}) is not None:
            return Landed()
        action = tx.one(WEBHOOK, where)
        if action is None:
            return Fenced("unknown")
        earlier = tx.one(PENDING_TEST, {"action_id": action_id})
        if earlier is not None:
            return Landed() if earlier.id == event_id else str(earlier.id)
        about = {"collection": collection, "action": {"id": action.id, "name": action.name}, "by": actor}
        notice = deliveries.EventNotice(
            tenant,
            deliveries.TEST,
            action.options["url"],
            action.secret or "",
            "test",
            f"collection:{collection}",
            0,
            about,
            action.id,
        )
        deliveries.post(tx, notice, event_id)
        return Landed()

    return db.write("send_test", body)
