"""`holdfast flow`: check, estimate, diff, apply, list and show the user's own steps of indexing."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from rich.console import Console

from holdfast.api.flows import CheckedFlow, DryRunResponse, FlowEstimate, FlowResponse
from holdfast.bootstrap import AppServices
from holdfast.cli import context, costs, terminal
from holdfast.cli.exit_codes import CommandError, Exit
from holdfast.kinds.flows import source_tree, templates
from holdfast.kinds.flows.faults import FlowError
from holdfast.kinds.flows.steps import Flow
from holdfast.service import formatting
from holdfast.service.estimates import Estimate
from holdfast.service.flow_trials import TrialRequest, TrialStep
from holdfast.service.requests import RequestContext

MOST_FILES = 20
# Characters of an output that are printed; --json has all.
SHOWN = 200


@dataclass(frozen=True, slots=True)
class FlowFile:
    """A file of a flow: its text, and the schemas beside it that the text names."""

    name: str
    source: str
    files: dict[str, str]


@dataclass(frozen=True, slots=True)
class Target:
    """The collection that is to be indexed by a flow, or a document to try it on, and what that may cost."""

    id: str | None
    tenant: str
    yes: bool
    max_cost: float | None


def read(path: Path) -> FlowFile:
    """The file, with the JSON files beside it that it names; CommandError if it cannot be read."""
    try:
        if str(path) == "-":
            return FlowFile("standard input", _text(sys.stdin.buffer, "standard input"), {})
        with path.open("rb") as file:
            source = _text(file, str(path))
        beside = [each for each in sorted(path.parent.glob("*.json")) if each.name in source and each != path]
        files = {}
        for each in beside[:MOST_FILES]:
            with each.open("rb") as file:
                files[each.name] = _text(file, str(each))
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}"
        raise CommandError(message, Exit.USAGE, code="bad_flow") from error
    return FlowFile(str(path), source, files)


def _text(file: IO[bytes], name: str) -> str:
    """The text of a file of a bounded size; CommandError says what is wrong with it."""
    most = source_tree.MOST_BYTES
    content = file.read(most + 1)
    if len(content) > most:
        message = f"{name} is too large: a flow and its files have at most {most:,} bytes"
        raise CommandError(message, Exit.USAGE, code="bad_flow")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"{name} is not UTF-8 text: byte {error.start + 1:,} (line {line}); save it as UTF-8"
        raise CommandError(message, Exit.USAGE, code="bad_flow") from error


def check(path: Path, *, as_json: bool) -> Exit:
    """Every fault of the file is on standard output; the exit code says whether there are any."""
    file = read(path)
    with context.services(None) as services:
        try:
            flow = services.flows.check(file.source, file.files)
        except FlowError as error:
            if as_json:
                faults = [
                    {name: getattr(each, name) for name in ("line", "column", "message", "suggestion")}
                    for each in error.faults
                ]
                terminal.show_json({"ok": False, "id": None, "steps": [], "faults": faults})
                return Exit.USAGE
            console = terminal.console()
            for fault in error.faults:
                hint = f"; did you mean {fault.suggestion}?" if fault.suggestion is not None else ""
                console.print(
                    f"{file.name}:{fault.line}:{fault.column}: {fault.message}{hint}",
                    markup=False,
                    soft_wrap=True,
                )
            return Exit.USAGE
    if as_json:
        terminal.show_json(CheckedFlow.of(flow).model_dump(mode="json"))
    else:
        steps = ", ".join(
            step.kind if step.kind == step.name else f"{step.kind} {step.name}" for step in flow.steps
        )
        terminal.console().print(f"{flow.id} is valid: {steps}", markup=False)
    return Exit.OK


def estimate(path: Path, collection: str, *, tenant: str, as_json: bool) -> None:
    """What each step would cost is on standard output."""
    file = read(path)
    with context.services(None) as services:
        flow, estimated = _estimated(services, file, tenant, collection)
    if as_json:
        terminal.show_json(FlowEstimate.of(estimated, collection, flow).model_dump(mode="json"))
        return
    console = terminal.console()
    console.print(f"estimate for {collection} with {flow.id}: {costs.sentence(estimated)}", markup=False)
    _show_steps(console, estimated)


def _estimated(services: AppServices, file: FlowFile, tenant: str, collection: str) -> tuple[Flow, Estimate]:
    flow = services.flows.check(file.source, file.files)
    return flow, services.estimates().of_collection(tenant, collection, flow=flow)


def _show_steps(console: Console, estimated: Estimate) -> None:
    table = terminal.table("step", "paid calls", "reused", "cost", numbers=("paid calls", "reused", "cost"))
    for name, forecast in estimated.steps.items():
        price = formatting.paid(forecast.cost, forecast.unpriced_calls)
        table.add_row(*terminal.cells(name, forecast.calls, forecast.known_calls, price))
    if estimated.steps:
        console.print(table)


def diff(path: Path, collection: str, *, tenant: str, as_json: bool) -> None:
    """What becomes of each step is on standard output, and what it would cost."""
    file = read(path)
    with context.services(None) as services:
        flow, estimated = _estimated(services, file, tenant, collection)
        options = services.collections.get(tenant, collection).options
        changes = services.flows.changes(tenant, flow, options)
    if as_json:
        shown = FlowEstimate.of(estimated, collection, flow).model_dump(mode="json")
        listed = [
            {"kind": each.kind, "name": each.name, "change": each.change, "details": list(each.details)}
            for each in changes
        ]
        terminal.show_json({**shown, "against": options.get("flow"), "changes": listed})
        return
    console = terminal.console()
    console.print(f"{options.get('flow') or 'no flow'} → {flow.id}", markup=False)
    for each in changes:
        console.print(f"  {each.sentence}", markup=False, soft_wrap=True)
    console.print(f"estimate: {costs.sentence(estimated)}", markup=False)
    _show_steps(console, estimated)


def apply(path: Path, target: Target, *, as_json: bool) -> Exit:
    """The version is stored, and the collection indexed by it unless a person declined the price."""
    file = read(path)
    console = terminal.console(quiet=as_json)
    wish = RequestContext(target.tenant, context.actor(), max_cost=costs.nano_dollars(target.max_cost))
    changed = None
    with context.services(None) as services:
        if target.id is not None:
            flow, estimated = _estimated(services, file, target.tenant, target.id)
            agreed = costs.agreed(
                console, estimated, f"{target.id} with {flow.id}", yes=target.yes or as_json
            )
            if not agreed:
                return Exit.REFUSED
        applied = services.flows.apply(wish, file.source, file.files)
        if target.id is not None:
            options = {"flow": applied.stored.id}
            changed = services.collections.change(wish, target.id, options=options)
    if as_json:
        more = None if changed is None else {"requested": changed.requested, "to_follow": changed.to_follow}
        shown = FlowResponse.of(applied.stored).model_dump(mode="json")
        terminal.show_json({"flow": shown, "created": applied.created, "collection": more})
        return Exit.OK
    console.print(
        f"{applied.stored.id} {'applied' if applied.created else 'was applied before'}", markup=False
    )
    if changed is not None:
        more_text = f", {changed.to_follow} more to follow" if changed.to_follow else ""
        count = formatting.count(changed.requested, "document")
        console.print(f"indexing {count}{more_text}; see: holdfast status", markup=False)
    return Exit.OK


def dry_run(path: Path, target: Target, chunks: int, *, as_json: bool) -> Exit:
    """What each step makes of the document is on standard output, unless a person declined the price."""
    file = read(path)
    console = terminal.console(quiet=as_json)
    with context.services(None) as services:
        flow = services.flows.check(file.source, file.files)
        document = services.documents.get(target.tenant, str(target.id))
        request = TrialRequest(flow, document, chunks, max_cost=costs.nano_dollars(target.max_cost))
        trials = services.flow_trials()
        unpaid = trials.run(target.tenant, replace(request, pay=False)).unpaid
        price = formatting.paid(unpaid.cost, unpaid.unpriced_calls)
        calls = formatting.count(unpaid.calls, "paid call")
        what = f"dry run of {flow.id} on {document.title}: {calls}, at most {price}"
        if not costs.accepted(console, what, unpaid, yes=target.yes or as_json):
            return Exit.REFUSED
        trial = trials.run(target.tenant, request)
    if as_json:
        terminal.show_json(DryRunResponse.of_trial(trial).model_dump(mode="json"))
        return Exit.OK
    of = "" if trial.of is None else f" of {trial.of}"
    console.print(f"first {len(trial.pieces)}{of} chunks; nothing was indexed", markup=False)
    for each in trial.steps:
        _show_trial_step(console, each)
    if any(each.report is not None and each.report.stand_in for each in trial.steps):
        console.print(
            "no language model is set up: the stand-in quotes the text and follows no prompt", style="care"
        )
    return Exit.OK


def _show_trial_step(console: Console, trial: TrialStep) -> None:
    step, report = trial.step, trial.report
    name = step.kind if step.kind == step.name else f"{step.kind} {step.name}"
    about = ""
    if report is not None:
        about = f" ({report.seconds:.1f} s, {report.paid_calls} paid, {report.reused_calls} reused, "
        about += f"{formatting.money(report.paid)}{', by the stand-in' if report.stand_in else ''})"
    console.print(f"{step.number}. {name}{about}", markup=False, style="bold")
    for at, output in enumerate(trial.outputs):
        label = "" if len(trial.outputs) == 1 else f"[{at}] "
        text = "-" if output is None else templates.shown(output)
        line = " ".join(text.split())
        console.print(f"   {label}{line[:SHOWN]}{'…' if len(line) > SHOWN else ''}", markup=False)
    if report is not None and report.left_out:
        console.print(f"   left out for {report.left_out} by its condition", markup=False)
    for error in () if report is None else report.errors:
        console.print(f"   failed: {error}", markup=False, soft_wrap=True)


def listed(tenant: str, *, as_json: bool) -> None:
    """The flows are on standard output."""
    with context.services(None) as services:
        flows = services.flows.all(tenant)
        users: dict[str, list[str]] = {}
        for collection in services.collections.all(tenant):
            users.setdefault(str(collection.options.get("flow") or ""), []).append(collection.id)
    if as_json:
        rows = [
            {"id": each.id, "flow": each.name, "version": each.version, "collections": users.get(each.id, [])}
            for each in flows
        ]
        terminal.show_json(rows)
        return
    table = terminal.table("flow", "version", "collections", numbers=("version",))
    for each in flows:
        table.add_row(*terminal.cells(each.name, each.version, ", ".join(users.get(each.id, []))))
    terminal.console().print(table if flows else "no flows; apply one with: holdfast flow apply FILE")


def show(flow_id: str, *, tenant: str, as_json: bool) -> None:
    """The text of the flow is on standard output."""
    with context.services(None) as services:
        stored = services.flows.get(tenant, flow_id)
    if as_json:
        terminal.show_json(FlowResponse.of(stored).model_dump(mode="json"))
    else:
        sys.stdout.write(stored.source if stored.source.endswith("\n") else f"{stored.source}\n")
