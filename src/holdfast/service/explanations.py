"""Why things are as they are, in sentences: the same in the CLI, the API and the web UI.

The codes for programs stay beside them. `advise` answers the question that people come with, why a document
waits, is stuck or failed, and names one safe next step.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.core import subjects
from holdfast.core.records import Head, Task
from holdfast.core.states import GUARDED_LANE, LIVE, OPEN, CallState, Status, TaskState, Verb, shown
from holdfast.service import formatting, gap_sentences, journal_phrases, missing_content, run_providers
from holdfast.store.base.database import Database
from holdfast.store.library.documents import Document
from holdfast.store.money import billing, provider_troubles
from holdfast.store.money.billing import OpenOrder
from holdfast.store.money.provider_troubles import Trouble
from holdfast.store.protocol import workers
from holdfast.store.protocol.workers import WorkerState
from holdfast.store.views import reads
from holdfast.store.views.events import Event, RunStanding
from holdfast.store.views.reads import Noted, Story, TaskDetail


def wait(reason: str | None) -> str:
    """What a task waits for."""
    return journal_phrases.WAITS.get(reason or "", reason or "its scheduled time")


@dataclass(frozen=True, slots=True)
class Waiting:
    """What live work waits for: a word for programs, a sentence for people, and until when it does."""

    reason: str
    sentence: str
    until: float | None


def waiting(standing: RunStanding | None) -> Waiting | None:
    """What a run waits for, or is tried in vain; None for one that has ended or is at work."""
    if standing is None or standing.run.status not in LIVE:
        return None
    waits, trouble = standing.waits, standing.trouble
    until = waits.until if waits is not None else None
    if trouble is not None and (waits is None or waits.reason in journal_phrases.UNREACHED):
        return Waiting(
            "provider", f"Waiting for the {trouble.sentence}.{_next_try(until, standing.now)}", until
        )
    return None if waits is None else Waiting(waits.reason, f"Waiting for {wait(waits.reason)}.", until)


def _next_try(until: float | None, now: float) -> str:
    left = (until or 0.0) - now
    return f" Next attempt in {formatting.span(left)}." if left > 0 else ""


def _is_guarded(kind: str | None) -> bool:
    """True for the kind of a guarded Celery task, which is its name; the dot tells it from other kinds."""
    return kind is not None and "." in kind


def of_request(reason: str, actor: str | None, kind: str | None = subjects.INDEX) -> str:
    """What became of a request for work of this kind, and who made it."""
    if reason == "accepted:never_done" and kind == subjects.INDEX:
        sentence = "first indexing"
    elif reason == "superseding:changed" and _is_guarded(kind):
        sentence = "called with other arguments; the earlier call is superseded"
    elif reason.startswith("refused:over_budget"):
        sentence = f"rejected: the budget of the {reason.rpartition(':')[2]} is used up"
    elif reason.startswith("refused:unpriced"):
        sentence = "rejected: the model has no known price, and its budget has a hard limit"
    else:
        sentence = journal_phrases.REQUESTS.get(reason, reason.replace("_", " ").replace(":", ": "))
    if reason.endswith(":edited"):
        return f"{sentence} by {journal_phrases.ACTORS.get(actor or '', actor) or 'someone'}"
    return f"{sentence} (requested by {journal_phrases.ACTORS.get(actor, actor)})" if actor else sentence


def names(story: Story) -> dict[int, str]:
    """What the tasks of a story are called, by their ids."""
    return {each.task.id: name for tasks in story.tasks.values() for each, name in _named(tasks)}


def _named(tasks: Sequence[TaskDetail]) -> Iterator[tuple[TaskDetail, str]]:
    """Each task of a run, with its name. The first of a phase plans it."""
    phase = -1
    for each in tasks:
        name = "the plan" if each.task.phase > phase else f"slice {each.task.ordinal}"
        if each.lane == GUARDED_LANE:
            name = "the task"
        phase = each.task.phase
        yield each, f"{name} of phase {phase + 1}" if phase else name


def of(
    noted: Noted | Event, tasks: Mapping[int, str] | None = None, kind: str | None = subjects.INDEX
) -> str:
    """One entry of the journal as a sentence; `tasks` are called by their names, the others by their ids.

    Epochs, leases and fences stand in parentheses at the end: the web UI leaves them out.
    """
    who = noted.actor or "an unknown worker"
    task = (tasks or {}).get(noted.task_id or 0, f"task {noted.task_id}")
    data = noted.data or {}
    if noted.reason.startswith("fenced_out:"):
        cause = noted.reason.partition(":")[2]
        late = noted.verb.replace("_", " ")
        reason = journal_phrases.FENCES.get(cause, cause)
        return f"a late {late} by {who} was rejected: {reason}; nothing was written (fenced out)"
    match noted.verb:
        case Verb.REQUEST:
            sentence = of_request(noted.reason, noted.actor, kind)
            return f"{sentence}: {data['message']}" if "message" in data else sentence
        case Verb.CLAIM:
            over = " after another worker stopped responding" if noted.reason == "over_expired" else ""
            return f"{who} started {task}{over} (epoch {noted.epoch})"
        case Verb.PLAN:
            slices = data.get("slices")
            number = formatting.count(slices, "slice") if isinstance(slices, int) else "the slices"
            phase = data.get("phase")
            return f"{who} planned {number}" + (f" of phase {phase + 1}" if isinstance(phase, int) else "")
        case Verb.FINISH:
            if noted.reason == "mended":
                return "the background sweep queued the plan of the next phase"
            return f"{who} finished {task}" + (", the last of its phase" * (noted.reason == "phase_done"))
        case Verb.PUBLISH:
            publisher = "the background sweep" if noted.reason == "mended" else who
            return f"{publisher} " + (
                "finished the task" if _is_guarded(kind) else "published the generation"
            )
        case Verb.FAIL:
            return f"the run failed: {noted.reason}" + (f" ({data['message']})" if "message" in data else "")
        case _:
            return _hand_over(noted, who, task)


def _hand_over(noted: Noted | Event, who: str, task: str) -> str:
    match noted.verb:
        case Verb.EXPIRE:
            losses = journal_phrases.LOSSES
            how = losses.get(noted.reason, losses["lease_expired"]).format(who, task)
            return f"{how}; it is queued again"
        case Verb.RELEASE:
            return f"{who} released {task}: {journal_phrases.RELEASES.get(noted.reason, noted.reason)}"
        case Verb.PUT_BACK:
            return f"{who} paused {task}, waiting for {wait(noted.reason)}"
        case Verb.RESEND:
            return f"{who} resent the order in doubt with its original idempotency key"
        case Verb.DOUBT | Verb.VOID | Verb.PARK | Verb.RESOLVE:
            return _of_order(noted)
        case Verb.SKIP:
            why = journal_phrases.SKIPS.get(noted.reason, noted.reason)
            return f"{who} skipped a message for {task}: {why}"
        case _:
            return _rare(noted, who)


def _of_order(noted: Noted | Event) -> str:
    data = noted.data or {}
    order = f"an order of {formatting.count(data.get('calls', 0), 'call')}"
    priced = f"{order}, {formatting.money(data.get('estimate', 0))}"
    match noted.verb:
        case Verb.DOUBT:
            return f"{priced}, is in doubt: {noted.reason}. It is unknown whether it was charged"
        case Verb.VOID:
            return f"{order} was not charged: {noted.reason}"
        case Verb.PARK:
            return f"{priced}, is parked until someone resolves it: {noted.reason}"
        case _:
            if noted.reason == CallState.VOID:
                return f"{order} was resolved as not charged"
            return f"{order} was resolved as charged, or possibly charged: it is resent with its key"


def _rare(noted: Noted | Event, who: str) -> str:
    match noted.verb:
        case Verb.CANCEL:
            return f"cancelled by {who}"
        case Verb.DELETE:
            return f"deleted by {who}"
        case Verb.MOVE:
            data = noted.data or {}
            return f"{who} moved it from {data.get('from')} to {data.get('to')}"
        case Verb.DESCRIBE:
            data = noted.data or {}
            names = ", ".join(map(str, data.get("metadata", ())))
            parts = [f"the metadata {names}"] if names else []
            parts += ["the labels"] if "labels" in data else []
            return f"{who} changed {' and '.join(parts) or 'the metadata'}"
        case Verb.EDIT:
            page = (noted.data or {}).get("page")
            where = f" on page {page}" if page else ""
            edited = journal_phrases.EDITS.get(noted.reason, "edited a passage{}").format(where)
            return f"{journal_phrases.ACTORS.get(who, who)} {edited}"
        case Verb.IMPORT:
            return "imported as published" if noted.reason == "active" else "imported as not indexed"
        case Verb.REPAIR:
            lost = noted.data or {}
            return (
                f"{lost.get('missing_chunks', 0)} chunks and {lost.get('missing_vectors', 0)} vectors were "
                "missing from what is published; a new generation was requested"
            )
        case Verb.PRUNE:
            return f"{formatting.count((noted.data or {}).get('chunks', 0), 'obsolete chunk')} removed"
        case _:
            return f"{noted.verb.replace('_', ' ')}: {noted.reason.replace('_', ' ')} ({who})"


class NextStep(StrEnum):
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
    step: NextStep
    todo: str
    stands_still: bool = False


def visible(head: Head) -> str:
    """Which generation readers see."""
    if head.deleted:
        return f"it was deleted by generation {head.generation}"
    if not head.visible:
        return f"nothing is {'done' if _is_guarded(head.kind) else 'published'} yet"
    seen = "searchable" if head.kind == subjects.INDEX else "published"
    if _is_guarded(head.kind):
        seen = "done"
    if head.published_generation == head.generation:
        return f"generation {head.generation} is {seen}"
    return f"generation {head.published_generation} stays {seen}, generation {head.generation} was requested"


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
    mine = run_providers.trouble(story, troubles)
    if mine is not None and head.status in LIVE:
        return Advice(
            f"Waiting for the {mine.sentence}.",
            NextStep.CANCEL,
            "It continues by itself once the provider responds. Check its URL, its key and whether it is up.",
            stands_still=True,
        )
    if any(order.state == CallState.PARKED for order in orders):
        return Advice(
            "Waiting for you: a paid order is parked because it is unknown whether it was charged.",
            NextStep.RESOLVE,
            "Check the provider's bill, then say whether it was charged.",
            stands_still=True,
        )
    match head.status:
        case Status.FAILED:
            return _failed(story)
        case Status.QUEUED:
            return _queued(story, at_work=at_work)
        case Status.RUNNING:
            return _running(story, orders, at_work=at_work, now=now or 0.0)
        case Status.SUCCESS if head.visible and head.published_generation != head.generation:
            return _kept(story)
        case Status.SUCCESS:
            return _ready(story)
        case _:
            return _idle(story)


def about(db: Database, document: Document, story: Story | None) -> Advice:
    """Why a document is as it is, by all that is known of it now."""
    if story is None:
        if not document.has_content:
            return _without_content(document)
        return Advice("Not indexed yet.", NextStep.INDEX, "Index it when you are ready.")
    orders = [each for each in billing.open_orders(db, document.tenant) if each.run_id in story.tasks]
    at_work = any(each.state is WorkerState.WORKING for each in workers.known(db))
    known = provider_troubles.all_of(db)
    now = reads.moment(db)
    return advise(story, orders, at_work=at_work, now=now, troubles=known, document=document)


def _without_content(document: Document) -> Advice:
    step = NextStep.UPLOAD if document.url is None else NextStep.INDEX
    return Advice(missing_content.sentence(document), step, missing_content.way_out(document))


def _ready(story: Story) -> Advice:
    head = story.head
    done = "Ready" if head.kind == subjects.INDEX else "Done"
    sentence = visible(head)
    said = f"{sentence[:1].upper()}{sentence[1:]}."
    unread = story.runs[0].gaps if story.runs else ()
    if not unread:
        return Advice(f"{done}. {said}", NextStep.NOTHING, "Nothing to do.")
    return Advice(
        f"Ready with gaps. {said} {gap_sentences.sentences(unread)}",
        NextStep.NOTHING,
        gap_sentences.advice(unread),
    )


def _kept(story: Story) -> Advice:
    """For a head whose published generation answers although a newer one was asked for and has ended."""
    head = story.head
    ended = story.runs[0].run.status if story.runs else Status.CANCELLED
    seen = "searchable" if head.kind == subjects.INDEX else "published"
    return Advice(
        f"Generation {head.generation} was {ended}. Generation {head.published_generation} is still {seen}.",
        NextStep.RETRY,
        "Retry to get the newer content or options; what was already paid for is kept.",
    )


def _failed(story: Story) -> Advice:
    run = story.runs[0].run if story.runs else None
    unknown = "the reason is unknown"
    message = (run.error_message or run.error_code or unknown) if run is not None else unknown
    seen = "searchable" if story.head.kind == subjects.INDEX else "published"
    stays = f" Generation {story.head.published_generation} is still {seen}." if story.head.visible else ""
    return Advice(
        f"Failed: {message.rstrip('.')}.{stays}",
        NextStep.RETRY,
        "Fix the cause, then retry: what was already paid for is kept.",
    )


def _open_tasks(story: Story) -> list[TaskDetail]:
    run = story.runs[0].run if story.runs else None
    tasks = story.tasks.get(run.id, ()) if run is not None else ()
    return [each for each in tasks if each.task.state in OPEN]


def _waits(story: Story) -> Advice | None:
    """What the work waits for, when no part of it is held or queued."""
    reasons = {each.task.waiting_for for each in _open_tasks(story) if each.task.state is TaskState.WAITING}
    if "parked" in reasons:
        sentence, todo = f"Waiting for {wait('parked')}.", "Say whether the order was charged."
        return Advice(sentence, NextStep.RESOLVE, todo, stands_still=True)
    if "budget" in reasons:
        return Advice(
            "Its budget is used up: nothing is spent until you raise it.",
            NextStep.RAISE_BUDGET,
            "Raise the budget, and it continues right away.",
            stands_still=True,
        )
    if reasons:
        causes = " and ".join(sorted(wait(each) for each in reasons))
        todo = "Nothing to do: it continues by itself."
        return Advice(f"Waiting for {causes}.", NextStep.CANCEL, todo, stands_still=True)
    return None


def _queued(story: Story, *, at_work: bool) -> Advice:
    if not at_work:
        return Advice(
            "Waiting for a worker, but none is online.",
            NextStep.START_WORKER,
            "Start one with: holdfast worker. Accepted work is not lost.",
        )
    return _waits(story) or Advice(
        "Waiting for a free worker.", NextStep.CANCEL, "Nothing to do: it starts when a worker is free."
    )


def _lost(held: Sequence[Task], *, at_work: bool, now: float) -> Advice:
    """For work whose holders have all let their leases expire."""
    owners = ", ".join(sorted({task.owner or "a worker" for task in held}))
    # A holder was last heard of when it renewed its lease, which is longer ago than its end.
    ago = formatting.span(now - max(task.lease_until for task in held))
    silent = f"{owners} stopped responding more than {ago} ago (lease expired)"
    progress = "Finished slices and paid calls are kept."
    if at_work:
        todo = f"Nothing to do: another worker takes over within seconds. {progress}"
        return Advice(f"{silent}.", NextStep.CANCEL, todo, stands_still=True)
    todo = f"Start one with: holdfast worker. {progress}"
    return Advice(f"{silent}, and no worker is online.", NextStep.START_WORKER, todo, stands_still=True)


def _running(story: Story, orders: Sequence[OpenOrder], *, at_work: bool, now: float) -> Advice:
    open_tasks = _open_tasks(story)
    held = [each.task for each in open_tasks if each.task.state is TaskState.RUNNING]
    ours = [entry for entry in story.journal if entry.generation == story.head.generation]
    expired = bool(ours) and ours[-1].verb == Verb.EXPIRE
    if held and all(task.lease_until < now for task in held):
        return _lost(held, at_work=at_work, now=now)
    if held:
        owners = sorted({task.owner or "a worker" for task in held})
        verb = "is" if len(owners) == 1 else "are"
        service = run_providers.reading(orders)
        doing = (
            "working on it" if service is None else f"waiting for {service}, which reads it for its parser"
        )
        return Advice(
            f"{', '.join(owners)} {verb} {doing} (lease renewed every few seconds).",
            NextStep.CANCEL,
            "Nothing to do: if a worker dies, another one takes over.",
        )
    if (waits := _waits(story)) is not None:
        return waits
    if not at_work:
        return _queued(story, at_work=False)
    why = "the worker that had it was lost" if expired else "the rest of it is queued"
    return Advice(
        f"Waiting for a free worker: {why}. Finished slices and paid calls are kept.",
        NextStep.CANCEL,
        "Nothing to do: it continues by itself.",
        stands_still=True,
    )


def _idle(story: Story) -> Advice:
    last = story.runs[0].run.status if story.runs else None
    if last is Status.CANCELLED:
        return Advice("Cancelled before anything was published.", NextStep.RETRY, "Retry when you are ready.")
    word = shown(story.head.kind, story.head.status).replace("_", " ")
    return Advice(f"{word.capitalize()}.", NextStep.INDEX, "Index it when you are ready.")
