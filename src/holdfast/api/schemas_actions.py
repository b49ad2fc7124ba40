"""What actions, follow-ups and deliveries look like on the wire. A secret is shown once, when it is drawn."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from holdfast.api.schemas_documents import Cost, Shape, moment
from holdfast.core.states import Status
from holdfast.service import records as stored
from holdfast.service.records import Delivery as Kept

Sort = Annotated[str, Field(min_length=1, max_length=40)]
DeliveryState = Literal["pending", "delivered", "failed", "cancelled"]


class NewAction(Shape):
    """What to do with each ready document. `GET /kinds` lists the types with their `params`.

    `existing` says what to do with documents that are ready already: `run` (the default) carries it out on
    each of them, `skip` waits for those that become ready from now on. `POST /estimate` with `action` says
    on how many it would run and what that would cost; its `fingerprint` as `estimate` makes sure that this
    very action was estimated (409 `other_estimate` otherwise).
    """

    sort: Sort
    name: Annotated[str, Field(max_length=200)] = ""
    params: Annotated[dict[str, Any], Field(default_factory=dict)]
    existing: Literal["run", "skip"] = "run"
    estimate: Annotated[str, Field(max_length=128)] | None = None


class ActionResponse(Shape):
    """An action, and how many follow-ups it has: all, those that have not ended, and how the others ended.

    `visiting` is true while documents that were ready before the action was added are still being seen to. Of
    an action that keeps something up to date, `due_at` is when it runs next, and `error` why the last run
    could not be requested.
    """

    id: int
    sort: str
    name: str
    params: dict[str, Any]
    created_at: datetime | None
    visiting: bool
    due_at: datetime | None
    error: "FollowUpError | None"
    fired: int
    running: int
    done: int
    failed: int

    @classmethod
    def of(cls, action: stored.Action) -> "ActionResponse":
        """The action as it is shown."""
        return cls(
            id=action.id,
            sort=action.sort,
            name=action.name,
            params={name: value for name, value in action.options.items() if name != "sort"},
            created_at=moment(action.created_at),
            visiting=action.visiting,
            due_at=moment(action.due_at),
            error=None
            if action.error is None
            else FollowUpError(code=action.error[0], message=action.error[1]),
            fired=action.fired,
            running=action.running,
            done=action.number(Status.SUCCESS),
            failed=action.number(Status.FAILED),
        )


class AddedAction(Shape):
    """The action, and the secret that was drawn to sign its deliveries: keep it, it is not shown again.

    `existing_documents` is on how many documents it is carried out that were ready before.
    """

    action: ActionResponse
    secret: str | None
    existing_documents: int


class ActionList(Shape):
    """The actions of a collection, the oldest first."""

    actions: list[ActionResponse]


class RemovedAction(Shape):
    """The action that was removed; what it had under way was cancelled."""

    action: ActionResponse


class FollowUpError(Shape):
    """Why a follow-up failed."""

    code: str
    message: str


class FollowUpResponse(Shape):
    """What an action does, or did, with one generation of a document."""

    action_id: int
    sort: str
    name: str
    generation: int
    run_id: str
    status: str
    result: dict[str, Any] | None
    error: FollowUpError | None
    cost: Cost
    queued_at: datetime | None
    finished_at: datetime | None

    @classmethod
    def of(cls, follow_up: stored.FollowUp) -> "FollowUpResponse":
        """The follow-up as it is shown."""
        failed = follow_up.status == Status.FAILED and follow_up.error_code is not None
        error = FollowUpError(code=follow_up.error_code or "", message=follow_up.error_message or "")
        return cls(
            action_id=follow_up.action_id,
            sort=follow_up.sort,
            name=follow_up.name,
            generation=follow_up.generation,
            run_id=follow_up.run_id,
            status="cancelled" if follow_up.status == Status.IDLE else follow_up.status,
            result=dict(follow_up.result) if follow_up.result is not None else None,
            error=error if failed else None,
            cost=Cost.of(follow_up.spent),
            queued_at=moment(follow_up.queued_at),
            finished_at=moment(follow_up.finished_at),
        )


class FollowUpList(Shape):
    """The follow-ups of a document, those of its latest generation first."""

    follow_ups: list[FollowUpResponse]


class DeliveryResponse(Shape):
    """One event for one address, and what became of it. `run_id` is the run whose end it tells."""

    id: str
    event: str
    url: str
    state: DeliveryState
    action_id: int | None
    run_id: str
    subject: str
    generation: int
    tries: int
    last_status: int | None
    last_error: str | None
    error: str | None
    created_at: datetime | None
    delivered_at: datetime | None
    next_try_at: datetime | None

    @classmethod
    def of(cls, delivery: Kept) -> "DeliveryResponse":
        """The delivery as it is shown."""
        return cls(
            id=delivery.id,
            event=delivery.event,
            url=delivery.url,
            state=delivery.state,
            action_id=delivery.action_id,
            run_id=delivery.cause,
            subject=delivery.subject,
            generation=delivery.generation,
            tries=delivery.tries,
            last_status=delivery.last_status,
            last_error=delivery.last_error,
            error=delivery.error_code if delivery.state == "failed" else None,
            created_at=moment(delivery.created_at),
            delivered_at=moment(delivery.delivered_at),
            next_try_at=moment(delivery.next_try_at),
        )


class DeliveryList(Shape):
    """A page of deliveries, the newest first; `next` is the cursor of the next page, if any."""

    deliveries: list[DeliveryResponse]
    next: str | None
