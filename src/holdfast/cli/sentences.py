"""Journal entries as sentences. The codes stay in `--json`; people read these."""

from holdfast.core.states import Verb
from holdfast.store.reads import Noted

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
WAITS = {
    "budget": "its budget",
    "rate": "the provider, which asked to be left alone",
    "intent": "another worker that is paying for the same input",
    "parked": "a person, who must resolve a parked order",
    "provider": "the provider, which could not be reached",
}


def wait(reason: str | None) -> str:
    """What a task waits for."""
    return WAITS.get(reason or "", reason or "its time")


def of_request(reason: str, actor: str | None) -> str:
    """What became of a request, and who made it."""
    if reason.startswith("refused:over_budget"):
        told = f"refused: the budget of the {reason.rpartition(':')[2]} is used up"
    else:
        told = REQUESTS.get(reason, reason.replace("_", " ").replace(":", ": "))
    return f"{told} (asked by {actor})" if actor else told


def of(noted: Noted) -> str:
    """One entry of the journal as a sentence."""
    who = noted.actor or "somebody"
    task = f"task {noted.task_id}"
    data = noted.data or {}
    if noted.reason.startswith("fenced_out:"):
        cause = noted.reason.partition(":")[2]
        return f"{who} was fenced out at {noted.verb}: {FENCES.get(cause, cause)}; nothing was written"
    match noted.verb:
        case Verb.REQUEST:
            return of_request(noted.reason, noted.actor)
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


def _hand_over(noted: Noted, who: str, task: str) -> str:
    match noted.verb:
        case Verb.EXPIRE:
            return f"the lease of {who} on {task} ran out; the task is due again"
        case Verb.RELEASE:
            return f"{who} handed {task} back: {RELEASES.get(noted.reason, noted.reason)}"
        case Verb.PUT_BACK:
            return f"{who} put {task} back to wait for {wait(noted.reason)}"
        case Verb.RESEND:
            return f"{who} sent an order in doubt again, with its own key"
        case Verb.SKIP:
            return f"{who} skipped a delivery of {task}: {SKIPS.get(noted.reason, noted.reason)}"
        case _:
            return _rare(noted, who)


def _rare(noted: Noted, who: str) -> str:
    match noted.verb:
        case Verb.CANCEL:
            return f"cancelled by {who}"
        case Verb.DELETE:
            return f"deleted by {who}"
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
