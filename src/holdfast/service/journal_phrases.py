"""The words for the reasons of the journal: what became of a request, why work was skipped, lost or waits."""

REQUESTS = {
    "accepted:never_done": "first run",
    "accepted:after_failed": "retry after a failure",
    "accepted:after_cancelled": "retry after a cancellation",
    "accepted:forced": "repeated on request",
    "accepted:follow_up": "started by an action",
    "accepted:imported": "imported",
    "accepted:delete": "deleted",
    "superseding:edited": "a passage was edited",
    "superseding:changed": "content or options changed; the earlier request is superseded",
    "duplicate:in_progress": "rejected as a duplicate: the same work is already queued or running",
    "unchanged:same_content_and_options": "nothing to do: already done with the same content and options",
    "takeover:stuck_queued": "taken over: it was queued and its lane made no progress",
    "takeover:stuck_running": "taken over: it was running and its worker had stopped responding",
    "refused:generation_mismatch": "rejected: the caller expected a different generation",
}
SKIPS = {
    "stale_generation": "a newer generation was requested",
    "finished": "it was already finished",
    "cancelled": "it was cancelled",
    "lock_held": "a live worker holds it",
    "exhausted": "it has no attempts left",
    "unknown": "there is no such task",
    "not_due": "it is not due yet",
    "unsupported": "this worker's release does not support it",
}
RELEASES = {
    "draining": "the worker was stopping",
    "lease_lost": "it might no longer own the task",
    "database_unavailable": "the database was unreachable",
}
FENCES = {
    "stale_generation": "a newer generation is current",
    "stale_epoch": "another worker holds the task now",
    "run_success": "the run had already succeeded",
    "run_failed": "the run had already failed",
    "run_cancelled": "the run was cancelled",
    "run_superseded": "a newer request had superseded the run",
    "gone": "it was deleted",
}
EDITS = {
    "text": "edited a passage{}",
    "off": "turned a passage{} off",
    "on": "turned a passage{} on",
    "restored": "restored the original of a passage{}",
}
# A caller that needs no key has no name.
ACTORS = {"api:loopback": "someone on this machine"}
LOSSES = {
    "lease_expired": "{} stopped responding while working on {} (lease expired)",
    "worker_died": "the worker of {} died while working on {}",
    "process_died": "{} died while working on {}",
    "overran": "{} did not finish {} within the hard time limit",
}
WAITS = {
    "budget": "its budget",
    "rate": "the provider's rate limit",
    "intent": "another worker that is already paying for the same input",
    "parked": "someone to resolve a parked order",
    "relay": "a relay, which sends its paid orders and does not run on its host",
    "provider": "the provider, which could not be reached",
    "parser": "the provider of its parser, which could not be reached",
    "documents": "documents that are not ready yet",
    "eta": "its scheduled time",
    "retry": "its next retry",
    "requeue": "its next delivery",
    "recovery": "a delayed retry, because its worker was lost several times in a row",
}
# The waits for a provider that does not respond.
UNREACHED = frozenset({"provider", "parser"})
