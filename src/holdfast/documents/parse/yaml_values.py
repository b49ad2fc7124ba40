"""YAML of plain values: mappings, lists and scalars.

It is read as a stream of events, never as objects: anchors, aliases and tags, with which a few bytes can
stand for millions, end it.
"""

from typing import Any

import yaml  # type: ignore[import-untyped]

MOST_DEPTH = 20
MOST_SCALAR = 100  # characters of a number
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KINDS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))


def mapping(text: str) -> dict[str, Any] | None:
    """The mapping of a YAML text of plain values; None for any other. Dates stay the texts they are."""
    try:
        builder = _Builder()
        for event in yaml.parse(text, Loader=_Loader):
            if not builder.takes(event):
                return None
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return builder.result if isinstance(builder.result, dict) else None


class _Builder:
    """Builds values from events; `_open` are the collections that are not closed yet."""

    def __init__(self) -> None:
        self.result: Any = None
        self._open: list[tuple[dict[str, Any] | list[Any], list[str]]] = []
        self._documents = 0
        self._resolver = yaml.SafeLoader("")

    def takes(self, event: yaml.Event) -> bool:
        """Add the event; False if the text is not of the plain kind."""
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            return False
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            return self._documents == 1
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            value: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
            ok = event.tag is None and len(self._open) < MOST_DEPTH and self._add(value)
            self._open.append((value, []))
            return ok
        if isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._open.pop()
        if isinstance(event, yaml.ScalarEvent):
            return event.tag is None and self._add(self._scalar(event))
        return True

    def _add(self, value: Any) -> bool:
        if not self._open:
            self.result = value
            return True
        collection, names = self._open[-1]
        if isinstance(collection, list):
            collection.append(value)
        elif names:
            collection[names.pop()] = value
        elif isinstance(value, dict | list):
            return False  # a collection as the name of a value
        else:
            names.append("" if value is None else str(value))
        return True

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        """The value of a scalar: null, a truth value or a number if it is not quoted, otherwise its text."""
        if self._open and isinstance(self._open[-1][0], dict) and not self._open[-1][1]:
            return event.value
        tag = self._resolver.resolve(yaml.ScalarNode, event.value, event.implicit)
        if tag not in _KINDS or len(event.value) > MOST_SCALAR:
            return event.value
        try:
            return self._resolver.construct_object(yaml.ScalarNode(tag, event.value))
        except (ValueError, KeyError, IndexError):
            return event.value
