"""Checks of the clients of paid providers in an application's code."""

from collections.abc import Iterator

from holdfast.doctor import spans
from holdfast.doctor.facts import DoctorFacts
from holdfast.doctor.findings import CheckArea, CheckOutcome, Severity, harmless, passed, problem, unknown

area = CheckArea("Clients of providers")

LEDGER = "its requests go through Holdfast: a second request for the same call is answered from the ledger"


@area.check(
    "L1",
    Severity.ERROR,
    title="The client resends paid requests by itself",
    why="The clients of OpenAI and Anthropic send a request again after a timeout or an error, twice by "
    "default. The idempotency key that they make is not sent, so one call may be billed three times.",
    fix="client = OpenAI(max_retries=0)\n# or pay once per call:\n"
    "client = OpenAI(http_client=httpx2.Client(transport=guard.transport(httpx2)))",
    evidence=(
        "https://github.com/openai/openai-python#retries",
        "https://github.com/anthropics/anthropic-sdk-python#retries",
        "docs/how-to/pay-once.md",
    ),
)
def retries(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Clients that retry by themselves."""
    for client in facts.clients:
        if client.max_retries == 0:
            yield passed(client.where, f"{client.call} does not retry")
        elif client.through_guard:
            yield harmless(client.where, f"{client.call} retries by itself", LEDGER)
        elif client.max_retries is None:
            yield unknown(client.where, f"max_retries of {client.call} is computed")
        else:
            yield problem(client.where, f"{client.call} resends a request up to {client.max_retries} times")


@area.check(
    "L2",
    Severity.WARNING,
    title="The task is killed before its client gives up",
    why="A request that may take longer than the task is cut by the time limit, after the provider has "
    "accepted and billed it.",
    fix="client = OpenAI(timeout=60.0)         # below task_soft_time_limit",
    evidence=("https://github.com/openai/openai-python#timeouts",),
)
def client_timeout(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """The timeout of clients against the shortest limit of the tasks that are not guarded."""
    limits = [
        limit
        for app in facts.apps
        if not app.ours
        for task in app.tasks
        for limit in (task.soft_time_limit, task.time_limit)
        if limit is not None and not task.guarded
    ]
    shortest = min(limits, default=None)
    for client in facts.clients:
        if client.timeout is None:
            yield unknown(client.where, f"the timeout of {client.call} is computed")
        elif shortest is None:
            yield passed(client.where, "no task has a time limit that could cut a request")
        elif client.timeout < shortest:
            yield passed(client.where, f"{client.call} gives up after {spans.span(client.timeout)}")
        elif client.through_guard:
            reason = "Holdfast closes a request after 120 s at the latest, and keeps an answer that was paid"
            yield harmless(client.where, f"{client.call} waits {spans.span(client.timeout)}", reason)
        else:
            yield problem(
                client.where,
                f"{client.call} waits {spans.span(client.timeout)}, "
                f"and a task is cut after {spans.span(shortest)}",
            )
