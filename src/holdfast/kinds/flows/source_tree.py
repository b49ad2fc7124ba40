"""The text of a flow as a tree of plain values, each with its line and column.

YAML, of which JSON is a part, is read as a stream of events. Anchors, aliases and tags, with which a few
bytes can stand for millions, end the reading, as do a repeated name, deep nesting and a long text.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.core.text import is_plain
from holdfast.extras import LazyModule
from holdfast.kinds.flows.faults import Fault, FlowError

yaml: Any = LazyModule("yaml")

MOST_BYTES = 256 * 1024
MOST_DEPTH = 16
MOST_NODES = 10_000
MOST_NUMBER = 100
_KINDS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it begins. A mapping has a `NamedNode` for each name, a list its nodes."""

    value: Any
    line: int
    column: int
    # How far the text begins behind the column: 1 for a quoted one. None if it is not written as it is read.
    inset: int | None = None

    def plain(self) -> Any:
        """The value without positions."""
        if isinstance(self.value, dict):
            return {name: member.node.plain() for name, member in self.value.items()}
        return [each.plain() for each in self.value] if isinstance(self.value, list) else self.value

    @property
    def members(self) -> Mapping[str, "NamedNode"]:
        """The members of a mapping; none for any other value."""
        return self.value if isinstance(self.value, dict) else {}

    def fault(self, message: str, suggestion: str | None = None) -> Fault:
        """What is wrong with this value."""
        return Fault(self.line, self.column, message, suggestion)

    def fault_at(self, position: int, message: str, suggestion: str | None = None) -> Fault:
        """What is wrong with a text, at this position of it if that can be told."""
        offset = 0 if self.inset is None else self.inset + position
        return Fault(self.line, self.column + offset, message, suggestion)


@dataclass(frozen=True, slots=True)
class NamedNode:
    """A value of a mapping, with the place of its name."""

    name: Node
    node: Node


def parse(text: str) -> Node:
    """The tree of the text; FlowError where it is not plain YAML or JSON."""
    size = len(text.encode("utf-8", "replace"))
    if size > MOST_BYTES:
        message = f"the file has {size:,} bytes; a flow has at most {MOST_BYTES:,}"
        raise FlowError([Fault(1, 1, message)])
    if (half := next((at for at, each in enumerate(text) if "\ud800" <= each <= "\udfff"), None)) is not None:
        raise FlowError([_at(text, half, "half a character stands here; the file is not UTF-8")])
    # JSON may be indented with tabs, which YAML forbids.
    written = text.replace("\t", " ") if text.lstrip().startswith("{") else text
    builder = _Builder()
    try:
        for event in yaml.parse(written, Loader=_loader()):
            builder.add(event)
    except yaml.YAMLError as error:
        raise FlowError([_broken(error, text)]) from error
    except RecursionError as error:
        raise FlowError([Fault(1, 1, "it is nested too deep")]) from error
    if builder.root is None:
        raise FlowError([Fault(1, 1, "the file is empty; a flow has flow, version and steps")])
    return builder.root


def _loader() -> Any:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _broken(error: Any, text: str) -> Fault:
    """What the YAML parser says, at the place it says it."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return _at(text, int(getattr(error, "position", 0)), "this character is not allowed in YAML")
    problem = str(getattr(error, "problem", None) or "it cannot be read")
    return Fault(mark.line + 1, mark.column + 1, f"this is not YAML: {problem}")


def _at(text: str, position: int, message: str) -> Fault:
    line_start = text.rfind("\n", 0, position) + 1
    return Fault(text.count("\n", 0, position) + 1, position - line_start + 1, message)


class _Builder:
    """Builds the tree from events; `_open` are the collections that are not closed yet."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._open: list[tuple[Node, list[Node]]] = []
        self._nodes = 0
        self._documents = 0
        self._resolver = yaml.SafeLoader("")

    def add(self, event: Any) -> None:
        """The event is part of the tree; FlowError for one that a flow cannot have."""
        mark = event.start_mark
        here = Node(None, mark.line + 1, mark.column + 1) if mark is not None else Node(None, 1, 1)
        if isinstance(event, yaml.AliasEvent):
            raise FlowError([here.fault("aliases are not allowed in a flow; write the value out")])
        if getattr(event, "anchor", None) is not None:
            raise FlowError([here.fault("anchors are not allowed in a flow")])
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise FlowError([here.fault("a file has one flow; put the second into a file of its own")])
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._refuse_tag(event, here)
            if len(self._open) >= MOST_DEPTH:
                raise FlowError([here.fault(f"it is nested deeper than {MOST_DEPTH} levels")])
            value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
            node = Node(value, here.line, here.column)
            self._put(node)
            self._open.append((node, []))
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._open.pop()
        elif isinstance(event, yaml.ScalarEvent):
            self._refuse_tag(event, here)
            self._put(Node(self._scalar(event, here), here.line, here.column, _inset(event)))

    def _refuse_tag(self, event: Any, here: Node) -> None:
        if event.tag is not None:
            raise FlowError([here.fault(f"tags like {event.tag[:40]!r} are not allowed in a flow")])

    def _put(self, node: Node) -> None:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise FlowError([node.fault(f"a flow has at most {MOST_NODES:,} values")])
        if not self._open:
            self.root = node
            return
        collection, names = self._open[-1]
        if isinstance(collection.value, list):
            collection.value.append(node)
        elif names:
            name = names.pop()
            collection.value[name.value] = NamedNode(name, node)
        elif isinstance(node.value, dict | list):
            raise FlowError([node.fault("a name must be text")])
        else:
            name = Node("" if node.value is None else str(node.value), node.line, node.column)
            if name.value in collection.value:
                raise FlowError([name.fault(f"{name.value[:60]!r} stands twice in the same mapping")])
            names.append(name)

    def _scalar(self, event: Any, here: Node) -> Any:
        """null, a truth value or a number if it is not quoted; otherwise its text."""
        text = _paired(event.value)
        if not is_plain(text):
            raise FlowError([here.fault("text must have no NUL and no half characters")])
        is_name = bool(self._open) and isinstance(self._open[-1][0].value, dict) and not self._open[-1][1]
        tag = self._resolver.resolve(yaml.ScalarNode, text, event.implicit)
        if is_name or tag not in _KINDS or len(text) > MOST_NUMBER:
            return text
        try:
            value = self._resolver.construct_object(yaml.ScalarNode(tag, text))
        except (ValueError, KeyError, IndexError):
            return text
        return text if isinstance(value, float) and not math.isfinite(value) else value


def _inset(event: Any) -> int | None:
    """The quotes before a text that is written as it is read, on one line."""
    inset = 1 if event.style in {"'", '"'} else 0
    start, end = event.start_mark, event.end_mark
    as_read = start.line == end.line and end.column - start.column == len(event.value) + 2 * inset
    return inset if as_read else None


def _paired(text: str) -> str:
    """JSON escapes a character beyond U+FFFF as two halves, which YAML leaves apart."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if not is_plain(text) else text
