"""Texts with fields in braces, like `{title}: {text}`. A brace itself is written twice."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.kinds.flows import conditions
from holdfast.kinds.flows.conditions import ConditionError

MOST_TEXT = 20_000


@dataclass(frozen=True, slots=True)
class Template:
    """Its parts, texts and names of fields in turn, and the fields with the positions where they stand."""

    text: str
    parts: tuple[str, ...]
    reads: Mapping[str, int]

    def filled(self, fields: Mapping[str, Any]) -> str:
        """The text with the values; a field without a value leaves nothing, and no blank line at an end."""
        values = [
            part if at % 2 == 0 else shown(conditions.value_of(fields, part))
            for at, part in enumerate(self.parts)
        ]
        text = "".join(values)
        return text if all(values[1::2]) else text.strip()


def shown(value: Any) -> str:
    """A value as it stands in a text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def parse(text: str) -> Template:
    """The template; ConditionError where a brace is not closed, or what stands in it is no field."""
    if len(text) > MOST_TEXT:
        raise ConditionError(0, f"it has at most {MOST_TEXT:,} characters")
    parts, literal, reads = list[str](), list[str](), dict[str, int]()
    at = 0
    while at < len(text):
        character = text[at]
        if character in "{}" and text[at + 1 : at + 2] == character:
            literal.append(character)
            at += 2
        elif character == "{":
            end = text.find("}", at)
            name = text[at + 1 : end] if end >= 0 else ""
            if end < 0:
                raise ConditionError(at, "this brace is not closed; a brace itself is written twice", "}")
            if not name or not name.replace("_", "a").replace(".", "a").replace("-", "a").isalnum():
                raise ConditionError(at, f"{{{name[:60]}}} is not a field; a brace itself is written twice")
            reads.setdefault(name, at + 1)
            parts += ["".join(literal), name]
            literal, at = [], end + 1
        elif character == "}":
            raise ConditionError(at, "this brace was not opened; a brace itself is written twice", "}}")
        else:
            literal.append(character)
            at += 1
    return Template(text, (*parts, "".join(literal)), reads)
