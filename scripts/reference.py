"""Writes the pages of `docs` that are derived from the code; `--check` only compares.

Needs holdfast.
"""

import sys
import types
import typing
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from holdfast import settings
from holdfast.core import states
from holdfast.core.states import Verb
from holdfast.settings import trust
from scripts import alert_reference, doctor_reference

ROOT = Path(__file__).resolve().parents[1]
SETTINGS_PAGE = ROOT / "docs/reference/settings.md"
SETTINGS_HEAD = """\
# Settings

<!-- Written by `make docs` from src/holdfast/settings/. Change it there. -->

Each setting is an environment variable `HOLDFAST_NAME`, or a key `name` (lower case) in a file. The
environment overrides the file; an empty variable counts as unset. An unknown name is an error, and so is a
value out of range: Holdfast reports it in one line and does not start. Values marked *secret* are never
printed.

The file named by `--config` or `HOLDFAST_CONFIG` may set everything except the two settings marked *no
file*. If none is named, a `holdfast.toml` in the current folder is read. It may have come with somebody
else's documents, so it may only set what is marked *any file*; anything else in it is an error.

| setting | value | default | set by | meaning |
|---|---|---|---|---|
"""


def settings_page() -> str:
    """The page of settings as it should be."""
    return SETTINGS_HEAD + "".join(
        _row(name, field) for name, field in settings.Settings.model_fields.items()
    )


def _row(name: str, field: FieldInfo) -> str:
    cells = (f"`HOLDFAST_{name.upper()}`", _value(field), _default(field), _trust(name), field.description)
    return f"| {' | '.join(map(str, cells))} |\n"


def _trust(name: str) -> str:
    if name in trust.NO_FILE:
        return "no file"
    return "any file" if name in trust.ANY_FILE else "named file"


def _value(field: FieldInfo) -> str:
    kinds = [kind for kind in _kinds(field.annotation) if kind is not types.NoneType]
    if all(isinstance(kind, str) for kind in kinds):
        return ", ".join(f"`{kind}`" for kind in kinds)
    words: dict[object, str] = {
        bool: "`true` or `false`",
        Decimal: "amount",
        float: "number",
        int: "whole number",
        str: "text",
        Path: "path",
        SecretStr: "*secret*",
    }
    shapes: dict[object, str] = {tuple: "list", dict: "tables"}
    word = shapes.get(typing.get_origin(kinds[0])) or words[kinds[0]]
    return word + _bounds(field)


def _kinds(annotation: object) -> list[object]:
    """Types and literal values of an annotation, unions and Annotated unfolded."""
    if typing.get_origin(annotation) is typing.Annotated:
        return _kinds(typing.get_args(annotation)[0])
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return [kind for part in typing.get_args(annotation) for kind in _kinds(part)]
    if typing.get_origin(annotation) is typing.Literal:
        return list(typing.get_args(annotation))
    return [annotation]


def _bounds(field: FieldInfo) -> str:
    found: dict[str, object] = {}
    for annotated in (field, *_inner_fields(field.annotation)):
        for constraint in annotated.metadata:
            found |= {
                word: getattr(constraint, name)
                for name, word in (("gt", "over"), ("ge", "from"), ("le", "to"))
                if getattr(constraint, name, None) is not None
            }
    return "".join(f" {word} {value}" for word, value in found.items())


def _inner_fields(annotation: object) -> list[FieldInfo]:
    """The Field(...) of an Annotated inside a union, which pydantic does not lift to the field itself."""
    return [
        each
        for part in typing.get_args(annotation)
        if typing.get_origin(part) is typing.Annotated
        for each in part.__metadata__
        if isinstance(each, FieldInfo)
    ]


def _default(field: FieldInfo) -> str:
    extra = field.json_schema_extra
    if isinstance(extra, dict) and "shown" in extra:
        return str(extra["shown"])
    if field.default is None:
        return "unset"
    if field.default is PydanticUndefined:
        return "required"
    if isinstance(field.default, bool):
        return f"`{str(field.default).lower()}`"
    if isinstance(field.default, tuple):
        return f"`{','.join(field.default)}`" if field.default else "none"
    return f"`{field.default}`"


STATES_PAGE = ROOT / "docs/state-machine.md"
STATES_HEAD = """\
# State machine

<!-- Written by `make docs` from src/holdfast/core/states.py. Change it there. -->

Four things have a state. Each arrow is a verb: one transaction that locks the rows, tests the locked rows,
and writes. A transition that is not drawn here does not exist. Terms are defined in the
[glossary](glossary.md).
"""
MACHINES = {
    "head": """\
One row per (kind, subject) that says which generation is current, and its status. It is created `idle` by the
first request and never removed. The status that people see depends on the kind: an `index` head that is
`idle` is shown as `not_indexed`, one that is `running` as `indexing`.
""",
    "run": """\
One generation being carried out. At most one run of a head is `queued` or `running`; a run that has
ended never restarts. A new `request` creates a new run.
""",
    "task": """\
One slice of a run. It is created `queued`: the first with its run, the others when the first has planned
them. When the last task of a phase is done and the kind may have a further phase, the task that plans it is
created, and nothing is published. The epoch rises with every arrow that changes the holder, including a
release to nobody.
""",
    "call": """\
One paid input; the order that carries it has the same states. It is created with the intent to pay.
`settled` is final; a `void` call was not charged and may be intended again.
""",
}
BIRTHS = {
    "head": ("idle", "request"),
    "run": ("queued", "request"),
    "task": ("queued", "request, plan, finish"),
    "call": ("intent", "intend"),
}
VERBS_HEAD = """\
## The verbs

The same word is the function, the event in the journal and the metric.

| verb | acts on | after it |
|---|---|---|
"""
VERBS = {
    Verb.REQUEST: "The request has its disposition; a generation that it created is current and queued.",
    Verb.PLAN: "The first task of a phase is done and every slice of the phase is queued, all at once.",
    Verb.CLAIM: "One worker holds the task under a new epoch and its own token, for the time of a lease.",
    Verb.SKIP: "A delivery that named its task did not run, and the journal says why.",
    Verb.RENEW: "The lease runs for its full time again; an expired lease stays lost.",
    Verb.RELEASE: "The task is queued again immediately, without a holder; no attempt is counted.",
    Verb.PUT_BACK: "The task waits for a budget, a rate limit, another's call or a person, without a holder.",
    Verb.EXPIRE: "A task whose lease expired is queued again; if it made no progress, an attempt counts.",
    Verb.FALL_DUE: "The wait is over and the task is queued.",
    Verb.STAGE: "Chunks are stored under generation, slice and epoch; they are not visible yet.",
    Verb.ADVANCE: "The progress of the task is at least what was reported.",
    Verb.FINISH: "The slice is done; if it was the last, the same transaction publishes or goes on to plan.",
    Verb.PUBLISH: "The generation is the visible one, and follow-ups are queued.",
    Verb.FAIL: "Run and head have failed with a code; what was published before stays visible.",
    Verb.CANCEL: "The run is cancelled and its open tasks are closed; what is published stays.",
    Verb.SUPERSEDE: "A newer generation was requested: the older run has ended and can write nothing more.",
    Verb.DELETE: "A generation that shows nothing is current: the subject is gone, older work is stale.",
    Verb.CLOSE: "A task of a run that ended is closed; its holder is fenced out.",
    Verb.INTEND: "The call belongs to one order, and its estimate is reserved from the budget.",
    Verb.SEND: "The order is marked as sent, just before its first byte; from here on it may be charged.",
    Verb.SETTLE: "Result, usage and cost are kept forever; the first result wins, every charge is a row.",
    Verb.VOID: "The order was not charged: its reservation is free and its calls may be intended again.",
    Verb.DOUBT: "The outcome of the order is unknown; it counts as spent until it is resolved.",
    Verb.RESEND: "The same bytes go out again under the same idempotency key.",
    Verb.PARK: "The order waits for a person.",
    Verb.RESOLVE: "A person decided about a parked order, or the `verify` of a paid function about one in "
    "doubt: send it again, or write it off as not charged.",
    Verb.SWEEP: "Forgotten work has been found and repaired, in bounded batches.",
    Verb.IMPORT: "Rows from a file or another system are published as a new generation.",
    Verb.MOVE: "The document belongs to another collection.",
    Verb.PRUNE: "Old generations, or history older than its retention, are gone.",
    Verb.REPAIR: "What is published was found not to be whole, and a new generation was requested.",
    Verb.ADD_ACTION: "The collection has one more action for its documents.",
    Verb.REMOVE_ACTION: "The action creates no more follow-ups.",
    Verb.ADD_SOURCE: "The collection has one more source; a look at it is requested.",
    Verb.CHANGE_SOURCE: "The source is looked at in another way from its next look on.",
    Verb.REMOVE_SOURCE: "The source is gone; its documents stay, or are deleted in the background.",
    Verb.SET_BUDGET: "The limits of a tenant or a collection are set; without any it has no budget.",
    Verb.DESCRIBE: "The metadata or labels of a document are replaced.",
    Verb.EDIT: "A person edits a chunk, or switches it off or on; a generation with that is requested.",
    Verb.WARN: "An order brings a budget to its soft limit; noted once for each limit that is set.",
}


def states_page() -> str:
    """The page of states as it should be."""
    machines = "".join(
        f"\n## {what.capitalize()}\n\n{about}\n{_diagram(what)}" for what, about in MACHINES.items()
    )
    rows = "".join(f"| `{verb}` | {_things(verb)} | {VERBS[verb]} |\n" for verb in Verb)
    return f"{STATES_HEAD}{machines}\n{VERBS_HEAD}{rows}"


def _diagram(what: str) -> str:
    table = states.TRANSITIONS[what]
    edges: dict[tuple[str, str], list[str]] = {}
    for (source, verb), targets in table.items():
        for target in targets:
            edges.setdefault((source.value, target.value), []).append(verb.value)
    final = {target for _, target in edges} - {source for source, _ in edges}
    state, verbs = BIRTHS[what]
    lines = [
        f"[*] --> {state} : {verbs}",
        *(
            f"{source} --> {target} : {', '.join(sorted(verbs))}"
            for (source, target), verbs in sorted(edges.items())
        ),
        *(f"{state} --> [*]" for state in sorted(final)),
    ]
    drawn = "".join(f"    {line}\n" for line in lines)
    return f"```mermaid\nstateDiagram-v2\n{drawn}```\n"


def _things(verb: Verb) -> str:
    found = [what for what in MACHINES if any(known is verb for _, known in states.TRANSITIONS[what])]
    return ", ".join(found) or "no state"


PAGES: dict[Path, Callable[[], str]] = {
    SETTINGS_PAGE: settings_page,
    STATES_PAGE: states_page,
    ROOT / "docs/reference/doctor.md": doctor_reference.page,
    ROOT / "docs/reference/alerts.md": alert_reference.page,
}


def main(words: list[str]) -> int:
    """The exit code: 1 when `--check` finds a page out of date."""
    if words == ["--check"]:
        stale = [path for path, page in PAGES.items() if not path.exists() or path.read_text() != page()]
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: run make docs")
        return 1 if stale else 0
    for path, page in PAGES.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
