"""`holdfast actions`: list those of a collection, add one with its price, remove one."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.api import schemas_actions
from holdfast.cli import context, costs, terminal
from holdfast.cli.exit_codes import CommandError, Exit
from holdfast.core.states import Status
from holdfast.service import formatting
from holdfast.service.requests import RequestContext


@dataclass(frozen=True, slots=True)
class ActionInput:
    """An action that somebody at a terminal wants. `params` is JSON, or @ and the name of a file with it."""

    sort: str
    params: str
    collection: str
    name: str
    existing: bool
    tenant: str

    def read_params(self) -> dict[str, Any]:
        """The parameters; CommandError if they are no JSON object."""
        try:
            text = Path(self.params[1:]).read_text("utf-8") if self.params.startswith("@") else self.params
            values = json.loads(text)
        except (OSError, ValueError, RecursionError) as error:
            message = f"--params cannot be read as JSON ({error})"
            raise CommandError(message, Exit.USAGE, code="bad_params") from error
        if not isinstance(values, dict):
            raise CommandError("--params must be a JSON object", Exit.USAGE, code="bad_params")
        return values


def listed(tenant: str, collection: str, *, as_json: bool) -> None:
    """The actions of a collection, the oldest at the top."""
    with context.services(None) as services:
        services.collections.get(tenant, collection)
        known = services.actions.all(tenant, collection)
    if as_json:
        terminal.show_json(
            [schemas_actions.ActionResponse.of(each).model_dump(mode="json") for each in known]
        )
        return
    table = terminal.table(
        "id", "type", "name", "running", "done", "failed", numbers=("running", "done", "failed")
    )
    for each in known:
        counts = each.running, each.number(Status.SUCCESS), each.number(Status.FAILED)
        table.add_row(*terminal.cells(each.id, each.sort, terminal.one_line(each.name), *counts))
    terminal.console().print(table if known else f"collection {collection} has no actions", markup=False)


def add(action: ActionInput, *, yes: bool, as_json: bool) -> Exit:
    """The collection has the action, unless a person did not agree with its price."""
    console = terminal.console(quiet=as_json)
    params = action.read_params()
    with context.services(None) as services:
        options = services.actions.checked(action.sort, params)
        if action.existing:
            estimate = services.estimates().of_action(action.tenant, action.collection, options)
            if not costs.agreed(console, estimate, "running it on ready documents", yes=yes or as_json):
                return Exit.REFUSED
        services.collections.get(action.tenant, action.collection)
        wish = RequestContext(action.tenant, context.actor())
        added = services.actions.add(
            wish, action.collection, action.sort, params, name=action.name, existing=action.existing
        )
    if as_json:
        shown = schemas_actions.AddedAction(
            action=schemas_actions.ActionResponse.of(added.action),
            secret=added.secret,
            existing_documents=added.ready,
        )
        terminal.show_json(shown.model_dump(mode="json"))
        return Exit.OK
    word = "added" if added.created else "already exists:"
    runs = (
        f"it runs on {formatting.count(added.ready, 'ready document')}"
        if action.existing
        else "it runs on documents that become ready from now on"
    )
    console.print(f"{word} action {added.action.id} ({action.sort}); {runs}", markup=False)
    if added.secret is not None:
        console.print(f"signing secret, shown only once: {added.secret}", markup=False, style="care")
    return Exit.OK


def remove(tenant: str, collection: str, action_id: int, *, as_json: bool) -> None:
    """The action fires no more."""
    with context.services(None) as services:
        removed = services.actions.remove(RequestContext(tenant, context.actor()), collection, action_id)
    if as_json:
        terminal.show_json({"removed": removed.id})
    else:
        terminal.console().print(f"removed action {removed.id}", markup=False)
