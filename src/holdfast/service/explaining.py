"""Why things are as they are, in sentences: one telling for the command line, the API and the page.

Codes are for programs and stay beside these. `advise` answers the question that people come with, why a
document waits, is stuck or failed, and names the one thing that is safe to do next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.core import subjects
from holdfast.core.records import Head, Task
from holdfast.core.states import LIVE, OPEN, CallState, Status, TaskState, Verb, shown
from holdfast.service import figures, missing_content
from holdfast.store.base.database import Database
from holdfast.store.library.documents import Document
from holdfast.store.money import billing, provider_troubles
from holdfast.store.money.billing import OpenOrder
from holdfast.store.money.provider_troubles import Trouble
from holdfast.store.protocol import workers
from holdfast.store.protocol.workers import WorkerState
from holdfast.store.views import reads
from holdfast.store.views.events import Event, Standing
from holdfast.store.views.reads import Noted, Story, TaskDetail

REQUESTS = {
    "accepted:never_done": "accepted, for nothing was done before",
    "accepted:after_failed": "accepted, for the last run failed",
    "accepted:after_cancelled": "accepted, for the last run was cancelled",
    "accepted:forced": "accepted, for it was forced",
    "accepted:follow_up": "accepted as a follow-up",
    "accepted:imported": "imported",
    "accepted:delete": "deleted",
    "superseding:changed": "accepted, for content or options changed; what came before is stale",
    "duplicate:in_progress": "refused as a duplicate: the same work is queued or running",
    "unchanged:same_content_and_options": "nothing to do: it succeeded with the same content and options",
    "takeover:stuck_queued": "taken over: it was queued and its lane stood still",
    "takeover:stuck_running": "taken over: it ran without a sign of life",
    "refused:generation_mismatch": "refused: the caller expected another generation",
}
SKIPS = {
    "stale_generation": "a newer generation was requested",
    "finished": "it was already finished",
    "cancelled": "it was cancelled",
    "lock_held": "a live worker holds it",
    "exhausted": "it was tried too often",
    "unknown": "there is no such task",
    "not_due": "its time has not come",
    "unsupported": "the worker does not know this version of the work",
}
RELEASES = {
    "draining": "the worker was stopping",
    "lease_lost": "it no longer trusted its lease",
    "database_unavailable": "the database was away",
}
FENCES = {
    "stale_generation": "a newer generation is current",
    "stale_epoch": "another worker holds the task now",
    "run_success": "the run had already succeeded",
    "run_failed": "the run had already failed",
    "run_cancelled": "the run was cancelled",
    "run_superseded": "a newer request had superseded the run",
    "gone": "the rows are gone",
}
# Whoever needs no key to be let in has no name.
ACTORS = {"api:loopback": "somebody on this machine"}
LOSSES = {
    "lease_expired": "the lease of {} on {} ran out",
    "worker_died": "the worker of {}, which had {} in hand, died",
    "process_died": "{} died with {} in hand",
    "overran": "{} did not end {} within its hard time limit",
}
WAITS = {
    "budget": "its budget",
    "rate": "the provider, which asked to be left alone",
    "intent": "another worker that is paying for the same input",
    "parked": "a person, who must resolve a parked order",
    "provider": "the provider, which could not be reached",
    "documents": "documents that are not ready yet",
    "recovery": "a quieter time, for its worker was lost several times in a row",
}


def wait(reason: str | None) -> str:
    """What a task waits for."""
    return WAITS.get(reason or "", reason or "its time")


@dataclass(frozen=True, slots=True)
class Waiting:
    """What live work waits for: a word for programs, a sentence for people, and until when it does."""

    reason: str
    sentence: str
    until: float | None


def waiting(standing: Standing | None) -> Waiting | None:
    """What a run waits for, or is tried in vain; None for one that has ended or is at work."""
    if standing is None or standing.run.status not in LIVE:
        return None
    waits, trouble = standing.waits, standing.trouble
    until = waits.until if waits is not None else None
    if trouble is not None and (waits is None or waits.reason == "provider"):
        return Waiting(
            "provider", f"It waits for the {trouble.sentence}.{_next_try(until, standing.now)}", until
        )
    return None if waits is None else Waiting(waits.reason, f"It waits for {wait(waits.reason)}.", until)


def _next_try(until: float | None, now: float) -> str:
    left = (until or 0.0) - now
    return f" Next try in {figures.span(left)}." if left > 0 else ""


def of_request(reason: str, actor: str | None) -> str:
    """What became of a request, and who made it."""
    if reason.startswith("refused:over_budget"):
        told = f"refused: the budget of the {reason.rpartition(':')[2]} is used up"
    elif reason.startswith("refused:unpriced"):
        told = "refused: no price is known for the model, and its budget has a hard limit"
    else:
        told = REQUESTS.get(reason, reason.replace("_", " ").replace(":", ": "))
    return f"{told} (asked by {ACTORS.get(actor, actor)})" if actor else told


def names(story: Story) -> dict[int, str]:
    """What the tasks of a story are called, by their ids."""
    found = (each.task for tasks in story.tasks.values() for each in tasks)
    return {task.id: "the plan" if task.ordinal == 0 else f"slice {task.ordinal}" for task in found}


def of(noted: Noted | Event, tasks: Mapping[int, str] | None = None) -> str:
    """One entry of the journal as a sentence; `tasks` are called by their names, the others by their ids."""
    who = noted.actor or "somebody"
    task = (tasks or {}).get(noted.task_id or 0, f"task {noted.task_id}")
    data = noted.data or {}
    if noted.reason.startswith("fenced_out:"):
        cause = noted.reason.partition(":")[2]
        return f"{who} was fenced out at {noted.verb}: {FENCES.get(cause, cause)}; nothing was written"
    match noted.verb:
        case Verb.REQUEST:
            told = of_request(noted.reason, noted.actor)
            return f"{told}: {data['message']}" if "message" in data else told
        case Verb.CLAIM:
            over = " after another's lease ran out" if noted.reason == "over_expired" else ""
            return f"{who} took {task} under epoch {noted.epoch}{over}"
        case Verb.PLAN:
            return f"{who} planned {data.get('slices', '?')} slices"
        case Verb.FINISH:
            return f"{who} finished {task}"
        case Verb.PUBLISH:
            return f"{'the sweep' if noted.reason == 'mended' else who} published the generation"
        case Verb.FAIL:
            return f"the run failed: {noted.reason}" + (f" ({data['message']})" if "message" in data else "")
        case _:
            return _hand_over(noted, who, task)


def _hand_over(noted: Noted | Event, who: str, task: str) -> str:
    match noted.verb:
        case Verb.EXPIRE:
            how = LOSSES.get(noted.reason, LOSSES["lease_expired"]).format(who, task)
            return f"{how}; the task is due again"
        case Verb.RELEASE:
            return f"{who} handed {task} back: {RELEASES.get(noted.reason, noted.reason)}"
        case Verb.PUT_BACK:
            return f"{who} put {task} back to wait for {wait(noted.reason)}"
        case Verb.RESEND:
            return f"{who} sent the order in doubt again, with its own key"
        case Verb.DOUBT | Verb.VOID | Verb.PARK | Verb.RESOLVE:
            return _of_order(noted)
        case Verb.SKIP:
            return f"{who} skipped a delivery of {task}: {SKIPS.get(noted.reason, noted.reason)}"
        case _:
            return _rare(noted, who)


def _of_order(noted: Noted | Event) -> str:
    data = noted.data or {}
    order = f"an order of {figures.count(data.get('calls', 0), 'call')}"
    priced = f"{order}, {figures.money(data.get('estimate', 0))}"
    match noted.verb:
        case Verb.DOUBT:
            return f"{priced}, is in doubt: {noted.reason}. Nobody knows whether it was charged"
        case Verb.VOID:
            return f"{order} was not charged: {noted.reason}"
        case Verb.PARK:
            return f"{priced}, waits for a person: {noted.reason}"
        case _:
            charged = noted.reason != CallState.VOID
            said = (
                "was charged, or may have been: it is sent again with its key"
                if charged
                else "was not charged"
            )
            return f"a person said that {order} {said}"


def _rare(noted: Noted | Event, who: str) -> str:
    match noted.verb:
        case Verb.CANCEL:
            return f"cancelled by {who}"
        case Verb.DELETE:
            return f"deleted by {who}"
        case Verb.MOVE:
            data = noted.data or {}
            return f"{who} moved it from {data.get('from')} to {data.get('to')}"
        case Verb.IMPORT:
            return "imported as published" if noted.reason == "active" else "imported as not indexed"
        case Verb.REPAIR:
            lost = noted.data or {}
            return (
                f"{lost.get('missing_chunks', 0)} chunks and {lost.get('missing_vectors', 0)} vectors were "
                "missing from what is published; a new generation was requested"
            )
        case Verb.PRUNE:
            return f"{(noted.data or {}).get('chunks', 0)} chunks that nobody can see any more were removed"
        case _:
            return f"{noted.verb.replace('_', ' ')}: {noted.reason.replace('_', ' ')} ({who})"


class Step(StrEnum):
    """The safe thing to do next."""

    NOTHING = "nothing"
    INDEX = "index"
    UPLOAD = "upload"
    RETRY = "retry"
    CANCEL = "cancel"
    RESOLVE = "resolve"
    RAISE_BUDGET = "raise_budget"
    START_WORKER = "start_worker"


@dataclass(frozen=True, slots=True)
class Advice:
    """Why a head is as it is, what is safe to do next, and that as a sentence.

    `stands_still` is true of work that was begun and that nobody holds at the moment.
    """

    sentence: str
    step: Step
    todo: str
    stands_still: bool = False


def visible(head: Head) -> str:
    """Which generation readers see."""
    if head.deleted:
        return f"it was deleted by generation {head.generation}"
    if not head.visible:
        return "nothing of it is visible yet"
    if head.published_generation == head.generation:
        return f"generation {head.generation} is visible"
    return f"generation {head.published_generation} stays visible, generation {head.generation} was asked for"


def advise(
    story: Story,
    orders: Sequence[OpenOrder] = (),
    *,
    at_work: bool = True,
    now: float | None = None,
    troubles: Sequence[Trouble] = (),
    document: Document | None = None,
) -> Advice:
    """Why the head of the story is as it is. `orders` are its unsettled ones; `at_work`: is a worker?

    Without the time `now` of the database a lease is taken to be good. `troubles` are what providers do not
    answer; only that of its own is told.
    """
    head = story.head
    if document is not None and not document.has_content and head.kind == subjects.INDEX:
        return _without_content(document)
    mine = _trouble(story, troubles)
    if mine is not None and head.status in LIVE:
        return Advice(
            f"It waits for the {mine.sentence}.",
            Step.CANCEL,
            "It goes on by itself once the provider answers: check its address, its key and whether it runs.",
            stands_still=True,
        )
    if any(order.state == CallState.PARKED for order in orders):
        return Advice(
            "It waits for you: a paid order is parked, because nobody knows whether it was charged.",
            Step.RESOLVE,
            "Look at the provider's bill, then say whether it was charged.",
            stands_still=True,
        )
    match head.status:
        case Status.FAILED:
            return _failed(story)
        case Status.QUEUED:
            return _queued(story, at_work=at_work)
        case Status.RUNNING:
            return _running(story, at_work=at_work, now=now or 0.0)
        case Status.SUCCESS if head.visible and head.published_generation != head.generation:
            return _kept(story)
        case Status.SUCCESS:
            return Advice(f"It is done: {visible(head)}.", Step.NOTHING, "Nothing to do.")
        case _:
            return _idle(story)


def _trouble(story: Story, troubles: Sequence[Trouble]) -> Trouble | None:
    """What the provider of the latest run does not answer."""
    provider = story.runs[0].options.get("provider") if story.runs else None
    return next((each for each in troubles if each.provider == provider), None)


def about(db: Database, document: Document, story: Story | None) -> Advice:
    """Why a document is as it is, by all that is known of it now."""
    if story is None:
        if not document.has_content:
            return _without_content(document)
        return Advice("Nobody asked for it yet.", Step.INDEX, "Index it when you want.")
    orders = [each for each in billing.open_orders(db, document.tenant) if each.run_id in story.tasks]
    at_work = any(each.state is WorkerState.WORKING for each in workers.known(db))
    known = provider_troubles.all_of(db)
    now = reads.moment(db)
    return advise(story, orders, at_work=at_work, now=now, troubles=known, document=document)


def _without_content(document: Document) -> Advice:
    step = Step.UPLOAD if document.url is None else Step.INDEX
    return Advice(missing_content.sentence(document), step, missing_content.way_out(document))


def _kept(story: Story) -> Advice:
    """For a head whose published generation answers although a newer one was asked for and has ended."""
    head = story.head
    ended = story.runs[0].run.status if story.runs else Status.CANCELLED
    answers = " and answers searches" if head.kind == subjects.INDEX else ""
    return Advice(
        f"Generation {head.generation} was {ended}."
        f" Generation {head.published_generation} is published{answers}.",
        Step.RETRY,
        "Try again when you want the newer content or options; what was paid for is kept.",
    )


def _failed(story: Story) -> Advice:
    run = story.runs[0].run if story.runs else None
    message = (run.error_message or run.error_code or "no reason was kept") if run is not None else "unknown"
    stays = f" Generation {story.head.published_generation} still answers." if story.head.visible else ""
    return Advice(
        f"It failed: {message.rstrip('.')}.{stays}",
        Step.RETRY,
        "Remove the cause, then try again: what was paid for is kept.",
    )


def _open_tasks(story: Story) -> list[TaskDetail]:
    run = story.runs[0].run if story.runs else None
    found = story.tasks.get(run.id, ()) if run is not None else ()
    return [each for each in found if each.task.state in OPEN]


def _waits(story: Story) -> Advice | None:
    """What the work waits for, when no part of it is held or queued."""
    reasons = {each.task.waiting_for for each in _open_tasks(story) if each.task.state is TaskState.WAITING}
    if "parked" in reasons:
        told, todo = f"It waits for {wait('parked')}.", "Say whether the order was charged."
        return Advice(told, Step.RESOLVE, todo, stands_still=True)
    if "budget" in reasons:
        return Advice(
            f"It waits for {wait('budget')}: nothing is spent until that is raised.",
            Step.RAISE_BUDGET,
            "Raise the budget, and it goes on at once.",
            stands_still=True,
        )
    if reasons:
        told = " and ".join(sorted(wait(each) for each in reasons))
        todo = "Nothing to do: it goes on by itself."
        return Advice(f"It waits for {told}.", Step.CANCEL, todo, stands_still=True)
    return None


def _queued(story: Story, *, at_work: bool) -> Advice:
    if not at_work:
        return Advice(
            "It waits for a worker, and none is at work.",
            Step.START_WORKER,
            "Start one with: holdfast worker. Nothing that was accepted is lost.",
        )
    return _waits(story) or Advice(
        "It waits for a free worker.", Step.CANCEL, "Nothing to do: it is next when one is free."
    )


def _lost(held: Sequence[Task], *, at_work: bool, now: float) -> Advice:
    """For work whose holders have all let their leases run out."""
    owners = ", ".join(sorted({task.owner or "somebody" for task in held}))
    ago = figures.span(now - max(task.lease_until for task in held))
    kept = "Finished slices and paid calls are kept."
    if at_work:
        told = f"{owners} is gone or frozen: the lease ran out {ago} ago."
        todo = f"Nothing to do: another worker goes on within seconds. {kept}"
        return Advice(told, Step.CANCEL, todo, stands_still=True)
    told = f"{owners} is gone: the lease ran out {ago} ago, and no worker is at work."
    return Advice(told, Step.START_WORKER, f"Start one with: holdfast worker. {kept}", stands_still=True)


def _running(story: Story, *, at_work: bool, now: float) -> Advice:
    open_tasks = _open_tasks(story)
    held = [each.task for each in open_tasks if each.task.state is TaskState.RUNNING]
    ours = [entry for entry in story.journal if entry.generation == story.head.generation]
    expired = bool(ours) and ours[-1].verb == Verb.EXPIRE
    if held and all(task.lease_until < now for task in held):
        return _lost(held, at_work=at_work, now=now)
    if held:
        owners = ", ".join(sorted({task.owner or "somebody" for task in held}))
        return Advice(
            f"It is being worked on by {owners}, under a lease that is renewed every few seconds.",
            Step.CANCEL,
            "Nothing to do: if the worker dies, the lease runs out and another one goes on.",
        )
    if (waits := _waits(story)) is not None:
        return waits
    if not at_work:
        return _queued(story, at_work=False)
    why = "the worker that held it was lost" if expired else "the rest of it is queued"
    return Advice(
        f"It waits for a free worker: {why}. Finished slices and paid calls are kept.",
        Step.CANCEL,
        "Nothing to do: it goes on by itself.",
        stands_still=True,
    )


def _idle(story: Story) -> Advice:
    last = story.runs[0].run.status if story.runs else None
    if last is Status.CANCELLED:
        return Advice(
            "It was cancelled, and nothing of it is visible.", Step.RETRY, "Index it when you want."
        )
    word = shown(story.head.kind, story.head.status).replace("_", " ")
    return Advice(f"It is {word}: nobody asked for it yet.", Step.INDEX, "Index it when you want.")
