"""`holdfast why`: the story of a subject, in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from holdfast.cli import context, terminal
from holdfast.core.records import Spent
from holdfast.core.states import LIVE, OPEN, CallState, Status, TaskState, shown
from holdfast.service import document_origins, explanations, formatting, gap_sentences
from holdfast.service.records import Family, RunDetail, TaskDetail
from holdfast.service.sources import Origin
from holdfast.service.subject_work import SubjectStory

STYLES = {Status.SUCCESS: "good", Status.FAILED: "bad", Status.RUNNING: "name", Status.QUEUED: "name"}


def why(subject: str, *, kind: str | None, tenant: str, as_json: bool) -> None:
    """The story of every kind of work on the subject, or of one."""
    with context.services() as services:
        stories = services.work.stories(tenant, subject, kind)
        origins = {
            each.document.id: services.sources.of_document(tenant, each.document.id)
            for each in stories
            if each.document is not None
        }
        families = {
            each.document.id: services.documents.around(each.document)
            for each in stories
            if each.document is not None
        }
    if as_json:
        terminal.show_json([_as_json(each, origins, families) for each in stories])
        return
    console = terminal.console()
    for number, each in enumerate(stories):
        if number:
            console.print()
        _print_story(console, each)
        if (document := each.document) is not None:
            parents = families[document.id].parents
            for sentence in document_origins.sentences(document, origins[document.id], parents):
                console.print(sentence, markup=False)


def _as_json(
    subject_story: SubjectStory, origins: Mapping[str, Sequence[Origin]], families: Mapping[str, Family]
) -> dict[str, Any]:
    document = subject_story.document
    return {
        "story": subject_story.story,
        "orders": subject_story.orders,
        "document": document,
        "origins": [] if document is None else origins[document.id],
        "parents": [] if document is None else families[document.id].parents,
    }


def _print_story(console: Console, subject_story: SubjectStory) -> None:
    head = subject_story.story.head
    word = shown(head.kind, head.status)
    style = STYLES.get(head.status, "care")
    console.print(f"[head]{escape(head.subject)}[/head] ({head.kind}, tenant {escape(head.tenant)})", end="")
    console.print(f" is [{style}]{word}[/{style}]; {explanations.visible(head)}")
    names = explanations.names(subject_story.story)
    for run in subject_story.story.runs:
        run_id = run.run.id
        spent = subject_story.story.spent.get(run_id, Spent())
        _tell_run(console, run, subject_story.story.tasks.get(run_id, ()), spent, names)
    console.print("\nHistory, oldest first (UTC):")
    table = terminal.table("", "", "")
    table.show_header = False
    for noted in subject_story.story.journal:
        generation = f"gen {noted.generation}" if noted.generation is not None else ""
        table.add_row(
            *terminal.cells(
                f"  {terminal.moment(noted.at)}", generation, explanations.of(noted, names, head.kind)
            )
        )
    console.print(table)
    for order in subject_story.orders:
        console.print(f"order {order.id} is {order.state.replace('_', ' ')}: {order.reason or 'in flight'}")
    document = subject_story.document
    advice = subject_story.advice
    without_content = document is not None and not document.has_content
    gaps = document is not None and document.gaps
    todo = advice.todo if without_content or gaps else _advice(subject_story)
    console.print(f"\n{escape(advice.sentence)} {escape(todo)}")


def _tell_run(
    console: Console,
    detail: RunDetail,
    tasks: Sequence[TaskDetail],
    spent: Spent,
    names: Mapping[int, str],
) -> None:
    run = detail.run
    style = STYLES.get(run.status, "quiet")
    word = shown(run.kind, run.status)
    console.print(f"\ngeneration {run.generation}: [{style}]{word}[/{style}]", end="")
    requested = explanations.of_request(f"{run.disposition}:{detail.reason}", detail.actor, run.kind)
    console.print(f", {requested}")
    console.print(f"  run {run.id}, {_times(detail)}", style="quiet")
    if run.error_code and run.status is Status.FAILED:
        console.print(f"  [bad]{escape(run.error_code)}[/bad]: {escape(run.error_message or '')}")
    for gap in detail.gaps:
        console.print(f"  [care]{escape(gap_sentences.sentence(gap))}[/care]")
    if spent.paid_calls or spent.reused_calls:
        price = formatting.paid(spent.paid, spent.unpriced_calls)
        console.print(
            f"  paid {formatting.count(spent.paid_calls, 'call')} ({price}), reused "
            f"{spent.reused_calls} already paid for (saved {formatting.money(spent.saved)})"
        )
    if run.status in LIVE:
        for task in tasks:
            if task.task.state in OPEN:
                console.print(f"  {_open_task(task, names[task.task.id])}")


def _times(detail: RunDetail) -> str:
    run = detail.run
    parts = [f"requested {terminal.moment(run.queued_at)}"]
    if run.started_at:
        parts.append(f"waited {formatting.span(max(0.0, run.started_at - run.queued_at))}")
    if run.started_at and run.finished_at:
        parts.append(f"took {formatting.span(max(0.0, run.finished_at - run.started_at))}")
    if run.phase:
        parts.append(f"phase {run.phase + 1}" if run.status in LIVE else f"{run.phase + 1} phases")
    elif run.slices:
        parts.append(formatting.count(run.slices, "slice"))
    return ", ".join(parts)


def _open_task(detail: TaskDetail, name: str) -> str:
    task = detail.task
    match task.state:
        case TaskState.RUNNING:
            share = f", {detail.done} of {detail.total} {detail.unit}".rstrip() if detail.total else ""
            until = terminal.moment(task.lease_until)
            return f"{name} is held by {task.owner} (epoch {task.epoch}, lease until {until}){share}"
        case TaskState.WAITING:
            until = terminal.moment(task.due_at)
            return f"{name} is waiting for {explanations.wait(task.waiting_for)} until {until}"
        case _:
            return f"{name} is queued in lane {detail.lane}"


def _advice(subject_story: SubjectStory) -> str:
    head = subject_story.story.head
    if any(order.state == CallState.PARKED for order in subject_story.orders):
        return "To continue: resolve the parked order; see holdfast orders --state parked."
    kind = f" --kind {head.kind}" if head.kind != "index" else ""
    match head.status:
        case Status.FAILED:
            return f"To continue: fix the cause, then holdfast retry {head.subject}{kind}."
        case Status.QUEUED:
            return "Nothing to do: it starts when a worker is free. Is one online? See holdfast status."
        case Status.RUNNING:
            return (
                "Nothing to do: if its worker dies, the lease expires and another worker takes over. "
                f"To cancel: holdfast cancel {head.subject}{kind}."
            )
        case _:
            return "Nothing to do."
