"""From the tree of a file to a flow, or to everything that is wrong with it."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from holdfast.core import languages
from holdfast.core.errors import BadRequestError
from holdfast.documents import page_cleaning
from holdfast.kinds import parser_choice, recognition, schemas
from holdfast.kinds.flows import conditions, source_tree, templates
from holdfast.kinds.flows.conditions import Condition, ConditionError
from holdfast.kinds.flows.faults import Fault, FlowError, nearest
from holdfast.kinds.flows.source_tree import NamedNode, Node
from holdfast.kinds.flows.steps import BUILT_IN, CHUNK, DOCUMENT, FAIL, OF_CHUNK, SKIP, Flow, Step
from holdfast.kinds.flows.templates import Template

MOST_STEPS = 40
MOST_VERSION = 1_000_000
MOST_PROMPT = 8000
MOST_FILE = 200
DROPS = page_cleaning.ALL
ORDER = ("parse", "clean", "split", "enrich", "extract", "python", "embed", "publish")
_STAGE = {
    "parse": 0,
    "clean": 1,
    "split": 2,
    "enrich": 3,
    "extract": 3,
    "python": 3,
    "embed": 4,
    "publish": 5,
}
# One of each; several with conditions of clean, split and embed, of which the first that holds counts.
_ONCE = frozenset({"parse", "publish"})
_CHOSEN_BY_CONDITION = frozenset({"clean", "split", "embed"})
_BESIDE = ("when", "on_error")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_FLOW_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_CALL = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,199}:[A-Za-z_][A-Za-z0-9_]{0,99}")
# Known before a document is read: what conditions of clean and split may look at.
_EARLY = frozenset({"format", "metadata", "name", "pages", "title"})

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "parse": ("language", "ocr", "ocr_languages", "parsers", "properties"),
    "clean": ("drop",),
    "split": ("size", "overlap", "delimiter"),
    "enrich": ("name", "per", "prompt", "input", "max_tokens", "provider", "model"),
    "extract": ("name", "per", "schema", "instruction", "input", "max_tokens", "provider", "model"),
    "python": ("name", "call", "version", "per", "reads", "settings"),
    "embed": ("text",),
    "publish": ("search", "fields"),
}
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "clean": ("drop",),
    "enrich": ("name", "prompt"),
    "extract": ("name", "schema"),
    "python": ("name", "call", "version"),
}


def read(text: str, files: Mapping[str, str] | None = None, functions: Sequence[str] | None = None) -> Flow:
    """The flow that the text describes; FlowError with all that is wrong.

    `functions` are those that `python` steps may call; without them that is left open.
    """
    checker = _Checker(files or {}, functions)
    flow = checker.flow(source_tree.parse(text), text)
    if checker.faults:
        raise FlowError(checker.faults)
    return flow


def is_flow_name(name: str) -> bool:
    """True for what a flow may be called."""
    return _FLOW_NAME.fullmatch(name) is not None


def is_field_name(name: str) -> bool:
    """True for what a field that a step makes may be called."""
    return _NAME.fullmatch(name) is not None


class _Checker:
    """Collects faults; what is wrong has a value all the same, so that the rest can be looked at."""

    def __init__(self, files: Mapping[str, str], functions: Sequence[str] | None) -> None:
        self.faults: list[Fault] = []
        self._functions = functions
        self._files = files
        self._used: dict[str, str] = {}
        # Fields that steps before have made, and for what.
        self._made: dict[str, str] = {}
        self._later: set[str] = set()

    def flow(self, root: Node, source: str) -> Flow:
        if not isinstance(root.value, dict):
            raise FlowError([root.fault("a flow is a mapping of flow, version and steps")])
        self._known(root, ("flow", "version", "steps"), "a flow")
        misspelt = {fault.suggestion for fault in self.faults}
        for name in ("flow", "version", "steps"):
            if name not in root.members and name not in misspelt:
                self._add(root.fault(f"{name!r} is missing"))
        name = self._text(root.members.get("flow"), 64, "the name of the flow")
        if "flow" in root.members and name and not _FLOW_NAME.fullmatch(name):
            message = "the name of a flow has small letters, digits, _ and - only, at most 64"
            self._add(root.members["flow"].node.fault(message, _slug(name)))
        version = self._whole(root.members.get("version"), 1, MOST_VERSION, default=1)
        steps = self._steps(root.members["steps"].node) if "steps" in root.members else []
        return Flow(name, version, tuple(steps), source, dict(self._used))

    def _add(self, fault: Fault) -> None:
        self.faults.append(fault)

    def _known(self, node: Node, names: Iterable[str], what: str) -> None:
        names = tuple(names)
        for name, member in node.members.items():
            if name not in names:
                message = f"{what} has no {name[:60]!r}; known are: {', '.join(names)}"
                self._add(member.name.fault(message, nearest(name, names)))

    # Steps

    def _steps(self, node: Node) -> list[Step]:
        if not isinstance(node.value, list) or not node.value:
            self._add(node.fault("steps must be a list of at least one step"))
            return []
        if len(node.value) > MOST_STEPS:
            self._add(node.fault(f"a flow has at most {MOST_STEPS} steps"))
            return []
        self._later = {str(name) for each in node.value if (name := _name_of(each)) is not None}
        steps: list[Step] = []
        for number, each in enumerate(node.value, start=1):
            step = self._step(each, number)
            if step is not None:
                self._place(each, step, steps)
                steps.append(step)
            elif (name := _name_of(each)) is not None:
                # What it would have made is not wrong a second time where it is read.
                self._made[str(name)] = DOCUMENT
        return steps

    def _step(self, node: Node, number: int) -> Step | None:
        if not isinstance(node.value, dict):
            self._add(
                node.fault("a step is a mapping, like: - split: {size: 256}", nearest(node.value, ORDER))
            )
            return None
        kinds = [name for name in node.members if name in ORDER]
        for name, member in node.members.items():
            if name not in (*ORDER, *_BESIDE):
                message = f"there is no step {name[:60]!r}; known are: {', '.join(ORDER)}"
                if kinds:
                    message = f"a step has {' and '.join(_BESIDE)} beside {kinds[0]!r}, not {name[:60]!r}"
                near = nearest(name, (*(() if kinds else ORDER), *_BESIDE))
                self._add(member.name.fault(message, near))
        if len(kinds) != 1:
            if kinds:
                second = node.members[kinds[1]].name
                self._add(second.fault(f"a step does one thing; {kinds[1]!r} is a step of its own"))
            elif all(name in _BESIDE for name in node.members):
                self._add(node.fault(f"this step does nothing; add one of: {', '.join(ORDER)}"))
            return None
        return self._of_kind(kinds[0], node, number)

    def _of_kind(self, kind: str, node: Node, number: int) -> Step:
        member = node.members[kind]
        body = member.node
        if body.value is None:
            body = Node({}, body.line, body.column)
        if not isinstance(body.value, dict):
            self._add(body.fault(f"{kind} takes a mapping of parameters, like {{}}"))
            body = Node({}, body.line, body.column)
        earlier = len(self.faults)
        self._known(body, PARAMETERS[kind], kind)
        misspelt = {fault.suggestion for fault in self.faults[earlier:]}
        for name in REQUIRED.get(kind, ()):
            if name not in body.members and name not in misspelt:
                self._add(member.name.fault(f"{kind} needs {name!r}"))
        params, template = _BUILDERS[kind](self, body)
        when = self._condition(node.members.get("when"), kind, str(params.get("per", CHUNK)))
        on_error = self._one_of(node.members.get("on_error"), (FAIL, SKIP), FAIL)
        if "on_error" in node.members and kind not in {"enrich", "extract", "python"}:
            message = f"{kind} has no on_error: it belongs to enrich, extract and python"
            self._add(node.members["on_error"].name.fault(message))
        return Step(kind, number, member.name.line, params, when, on_error, template)

    def _place(self, node: Node, step: Step, before: list[Step]) -> None:
        """The step stands where it may; its field is known to those behind it."""
        name = node.members[step.kind].name
        late = next((each for each in before if _STAGE[each.kind] > _STAGE[step.kind]), None)
        if late is not None:
            self._add(name.fault(f"{step.kind} must stand before {late.kind} (line {late.line})"))
        same = [each for each in before if each.kind == step.kind]
        if same and (step.kind in _ONCE or (step.kind in _CHOSEN_BY_CONDITION and same[-1].when is None)):
            message = f"there is a {step.kind} already, in line {same[-1].line}"
            hint = "; give that one a condition (when)" if step.kind in _CHOSEN_BY_CONDITION else ""
            self._add(name.fault(f"{message}{hint}"))
        if step.makes_field and "name" in step.params:
            where = node.members[step.kind].node.members.get("name")
            if step.name in self._made and where is not None:
                self._add(where.node.fault(f"there is a field {step.name!r} already; use another name"))
            self._made[step.name] = step.per

    # Fields, conditions and templates

    def _field(self, node: Node, name: str, position: int, per: str, known: frozenset[str]) -> None:
        """A fault unless the field exists here."""
        first = name.partition(".")[0]
        if first == "metadata" and "metadata" in known:
            if name == "metadata":
                self._add(node.fault_at(position, "say which of the metadata, like metadata.author"))
            return
        if name in known:
            if per == DOCUMENT and name in {"page", "position", "headings"}:
                self._add(node.fault_at(position, f"a step per document has no {name!r}: that is of a chunk"))
            return
        if first in self._made and known >= BUILT_IN:
            if per == DOCUMENT and self._made[first] == CHUNK:
                message = f"{first!r} is made per chunk; a step per document cannot read it"
                self._add(node.fault_at(position, message))
            return
        names = {*known, *(self._made if known >= BUILT_IN else ())}
        if name in self._later and known >= BUILT_IN:
            message = f"the field {name!r} is made by a later step; move that one up"
            self._add(node.fault_at(position, message))
            return
        message = f"there is no field {name[:60]!r} here; known are: {', '.join(sorted(names))}"
        self._add(node.fault_at(position, message, nearest(name, names)))

    def _condition(self, member: NamedNode | None, kind: str, per: str) -> Condition | None:
        if member is None:
            return None
        if kind == "parse":
            self._add(member.name.fault("parse cannot have a condition: nothing is known before it"))
            return None
        node = member.node
        if not isinstance(node.value, str) or not node.value.strip():
            message = 'when must be a condition in text, like: format == "pdf" and pages > 3'
            self._add(node.fault(message))
            return None
        try:
            condition = conditions.parse(node.value)
        except ConditionError as error:
            self._add(node.fault_at(error.position, error.message, error.suggestion))
            return None
        known = _EARLY if kind in {"clean", "split"} else BUILT_IN
        for name, position in condition.reads.items():
            self._field(node, name, position, per, known)
        return condition

    def template(self, body: Node, name: str, default: str, per: str) -> Template:
        member = body.members.get(name)
        if member is None:
            return templates.parse(default)
        if not isinstance(member.node.value, str) or not member.node.value.strip():
            self._add(member.node.fault(f"{name} must be text with fields, like {{text}}"))
            return templates.parse(default)
        try:
            template = templates.parse(member.node.value)
        except ConditionError as error:
            self._add(member.node.fault_at(error.position, error.message, error.suggestion))
            return templates.parse(default)
        if not template.reads:
            self._add(member.node.fault(f"{name} names no field, like {{text}}"))
        for field_name, position in template.reads.items():
            self._field(member.node, field_name, position, per, BUILT_IN)
        return template

    # Values

    def _text(self, member: NamedNode | None, most: int, what: str, default: str = "") -> str:
        if member is None:
            return default
        value = member.node.value
        if not isinstance(value, str) or not value.strip() or len(value) > most:
            self._add(member.node.fault(f"{what} must be text of at most {most:,} characters"))
            return default
        return value

    def _whole(self, member: NamedNode | None, least: int, most: int, default: int) -> int:
        if member is None:
            return default
        value = member.node.value
        if type(value) is not int or not least <= value <= most:
            message = f"{member.name.value} must be a whole number from {least:,} to {most:,}"
            self._add(member.node.fault(message))
            return default
        return value

    def _one_of(self, member: NamedNode | None, known: tuple[str, ...], default: str) -> str:
        if member is None:
            return default
        value = member.node.value
        # YAML takes a bare on and off for truth values.
        spelt = {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value
        if spelt not in known:
            message = f"{member.name.value} must be one of: {', '.join(known)}"
            self._add(member.node.fault(message, nearest(value, known)))
            return default
        return str(spelt)

    def _list(self, body: Node, name: str) -> list[Node] | None:
        member = body.members.get(name)
        if member is None:
            return None
        if not isinstance(member.node.value, list):
            self._add(member.node.fault(f"{name} must be a list, like [text]"))
            return None
        return list(member.node.value)

    def names(self, body: Node, name: str, default: tuple[str, ...], per: str) -> list[str]:
        """A list of fields."""
        nodes = self._list(body, name)
        if nodes is None:
            return list(default)
        for node in nodes:
            if not isinstance(node.value, str):
                self._add(node.fault("the name of a field is text"))
                continue
            self._field(node, node.value, 0, per, BUILT_IN)
        texts = [node.value for node in nodes if isinstance(node.value, str)]
        for at, node in enumerate(nodes):
            if node.value in texts[:at]:
                self._add(node.fault(f"{node.value!r} stands twice in {name}"))
        return list(dict.fromkeys(texts))

    # The parameters of each kind

    def parse(self, body: Node) -> tuple[dict[str, Any], None]:
        members, params = body.members, dict[str, Any]()
        if "ocr" in members:
            params["ocr"] = self._one_of(members["ocr"], tuple(recognition.MODES), "auto")
        if "language" in members:
            params["language"] = self._one_of(
                members["language"], (languages.AUTO, *languages.LANGUAGES), languages.AUTO
            )
        if "ocr_languages" in members:
            params["ocr_languages"] = self._text(members["ocr_languages"], 100, "ocr_languages", "eng")
        if "properties" in members:
            params["properties"] = self._truth(members["properties"])
        if "parsers" in members:
            node = members["parsers"].node
            for form, member in node.members.items():
                if form not in parser_choice.FORMATS:
                    message = f"there is no format {form[:60]!r}"
                    self._add(member.name.fault(message, nearest(form, parser_choice.FORMATS)))
            try:
                parser_choice.check(node.plain())
            except BadRequestError as error:
                if not any(fault.line == node.line for fault in self.faults):
                    self._add(node.fault(error.message))
            params["parsers"] = node.plain()
        return params, None

    def _truth(self, member: NamedNode) -> bool:
        if not isinstance(member.node.value, bool):
            self._add(member.node.fault(f"{member.name.value} must be true or false"))
        return bool(member.node.value)

    def clean(self, body: Node) -> tuple[dict[str, Any], None]:
        drops = []
        for node in self._list(body, "drop") or ():
            if node.value not in DROPS:
                message = f"clean cannot drop {str(node.value)[:60]!r}; known are: {', '.join(DROPS)}"
                self._add(node.fault(message, nearest(node.value, DROPS)))
            else:
                drops.append(str(node.value))
        return {"drop": sorted(set(drops))}, None

    def split(self, body: Node) -> tuple[dict[str, Any], None]:
        members, params = body.members, dict[str, Any]()
        size = self._whole(members.get("size"), 16, 100_000, 256)
        if "size" in members:
            params["size"] = size
        if "overlap" in members:
            params["overlap"] = self._whole(members["overlap"], 0, size // 2, 0)
        if "delimiter" in members:
            params["delimiter"] = self._text(members["delimiter"], 200, "delimiter")
        return params, None

    def _made_field(self, body: Node) -> dict[str, Any]:
        """What every step that makes a field has: its name, per what, and which model."""
        members = body.members
        name = self._text(members.get("name"), 40, "name", "field")
        if "name" in members:
            node = members["name"].node
            if name in BUILT_IN:
                self._add(node.fault(f"{name!r} is a field that every chunk has; use another name"))
            elif not _NAME.fullmatch(name):
                message = "the name of a field has small letters, digits and _ only, at most 40"
                self._add(node.fault(message, _slug(name, "_")))
        return {"name": name}

    def _model(self, body: Node, params: dict[str, Any], max_tokens: int) -> None:
        members = body.members
        params["max_tokens"] = self._whole(members.get("max_tokens"), 1, 16_000, max_tokens)
        for name in ("provider", "model"):
            if name in members:
                params[name] = self._text(members[name], 200, name)

    def enrich(self, body: Node) -> tuple[dict[str, Any], Template]:
        params = self._made_field(body)
        params["per"] = per = self._one_of(body.members.get("per"), (CHUNK, DOCUMENT), CHUNK)
        params["prompt"] = self._text(body.members.get("prompt"), MOST_PROMPT, "prompt")
        self._model(body, params, 200)
        template = self.template(body, "input", "{text}", per)
        return {**params, "input": template.text}, template

    def extract(self, body: Node) -> tuple[dict[str, Any], Template]:
        params = self._made_field(body)
        params["per"] = per = self._one_of(body.members.get("per"), (CHUNK, DOCUMENT), DOCUMENT)
        params["instruction"] = self._text(body.members.get("instruction"), 4000, "instruction")
        params["schema"] = self._schema(body.members.get("schema"))
        self._model(body, params, 4000)
        template = self.template(body, "input", "{text}", per)
        return {**params, "input": template.text}, template

    def _schema(self, member: NamedNode | None) -> dict[str, Any]:
        if member is None:
            return {}
        node, value = member.node, member.node.plain()
        if isinstance(value, str):
            if value not in self._files:
                message = f"there is no file {value[:MOST_FILE]!r} beside the flow"
                self._add(node.fault(message, nearest(value, self._files)))
                return {}
            try:
                self._used[value] = self._files[value]
                value = json.loads(self._files[value])
            except (ValueError, RecursionError) as error:
                self._add(node.fault(f"{node.value[:MOST_FILE]} is not JSON ({error})"))
                return {}
        if not isinstance(value, dict):
            self._add(node.fault("schema must be a JSON Schema, or the name of a file with one"))
            return {}
        try:
            return dict(schemas.checked(value))
        except BadRequestError as error:
            self._add(node.fault(error.message))
            return {}

    def python(self, body: Node) -> tuple[dict[str, Any], None]:
        members = body.members
        params = self._made_field(body)
        params["call"] = call = self._text(members.get("call"), 300, "call")
        if call and not _CALL.fullmatch(call):
            near = ":".join(call.rsplit(".", 1)) if ":" not in call and "." in call else None
            message = "call must name a function as module:function"
            self._add(members["call"].node.fault(message, near))
        elif call and self._functions is not None and call not in self._functions:
            message = f"HOLDFAST_FLOW_FUNCTIONS does not name {call}"
            self._add(members["call"].node.fault(message, nearest(call, self._functions)))
        params["version"] = self._whole(members.get("version"), 1, MOST_VERSION, 1)
        params["per"] = per = self._one_of(members.get("per"), (CHUNK, DOCUMENT), CHUNK)
        params["reads"] = sorted(self.names(body, "reads", ("text",), per))
        if "settings" in members:
            node = members["settings"].node
            if not isinstance(node.value, dict):
                self._add(node.fault("settings must be a mapping"))
            params["settings"] = node.plain()
        return params, None

    def embed(self, body: Node) -> tuple[dict[str, Any], Template]:
        template = self.template(body, "text", "{text}", CHUNK)
        return {"text": template.text}, template

    def publish(self, body: Node) -> tuple[dict[str, Any], None]:
        search = self.names(body, "search", ("text",), CHUNK)
        shown = self.names(body, "fields", (), CHUNK)
        for node in self._list(body, "fields") or ():
            if node.value in OF_CHUNK:
                self._add(node.fault(f"every hit has {node.value!r}; fields are those that steps make"))
        return {"search": search, "fields": shown}, None


_BUILDERS: Mapping[str, Callable[[_Checker, Node], tuple[dict[str, Any], Template | None]]] = {
    "parse": _Checker.parse,
    "clean": _Checker.clean,
    "split": _Checker.split,
    "enrich": _Checker.enrich,
    "extract": _Checker.extract,
    "python": _Checker.python,
    "embed": _Checker.embed,
    "publish": _Checker.publish,
}


def _name_of(node: Node) -> Any:
    """The field that a step is going to make, before it is looked at."""
    for member in node.members.values():
        if "name" in member.node.members:
            return member.node.members["name"].node.value
    return None


def _slug(name: str, joint: str = "-") -> str | None:
    letters = "".join(each if each.isascii() and each.isalnum() else joint for each in name.lower())
    return letters.strip(joint) or None
