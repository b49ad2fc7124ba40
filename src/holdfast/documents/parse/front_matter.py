"""Front matter: the properties at the beginning of a text, as YAML between `---` or TOML between `+++`.

What cannot be read is no front matter, and stays text.
"""

import tomllib
from collections.abc import Mapping
from typing import Any

from holdfast.documents.parse import properties

MOST_LINES = 500
MOST_TEXT = 32_768
_ENDS = {"---": ("---", "..."), "+++": ("+++",)}


def may_begin(text: str) -> bool:
    """True if the first line could open front matter."""
    return text[:3] in _ENDS or text[1:4] in _ENDS


def seems_to_begin(text: str) -> bool:
    """True if front matter and a text after it are in sight: the marks, and a named value between them."""
    bounds = _bounds(text)
    if bounds is None:
        return False
    mark, lines, body = bounds
    first = next((line for line in lines.split("\n") if line.strip() and line[0] not in "#["), "")
    name = first.partition(":" if mark == "---" else "=")[0]
    return (
        len(name) < min(len(first), 60)
        and name.strip(" \t\"'").replace("-", "_").isidentifier()
        and (not text[body : body + 1000].isspace() and bool(text[body:]))
    )


def split(text: str) -> tuple[dict[str, Any], str]:
    """The properties, and the text after them; the whole text if there are none."""
    bounds = _bounds(text)
    if bounds is None:
        return {}, text
    mark, lines, body = bounds
    values = _toml(lines) if mark == "+++" else _yaml(lines)
    return ({}, text) if values is None else (properties.bounded(values), text[body:])


def _bounds(text: str) -> tuple[str, str, int] | None:
    """The mark, the lines between the marks, and where the text after them begins."""
    start = int(text[:1] == "\N{ZERO WIDTH NO-BREAK SPACE}")
    head = text[start : start + MOST_TEXT].split("\n", MOST_LINES)
    mark = head[0].rstrip()
    if mark not in _ENDS:
        return None
    at = start + len(head[0]) + 1
    for number, line in enumerate(head[1:], start=1):
        at += len(line) + 1
        if line.rstrip() in _ENDS[mark]:
            return mark, "\n".join(each.rstrip("\r") for each in head[1:number]), at
    return None


def _toml(text: str) -> Mapping[str, Any] | None:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _yaml(text: str) -> Mapping[str, Any] | None:
    from holdfast.documents.parse import yaml_values  # noqa: PLC0415 (loads PyYAML, in the child)

    return yaml_values.mapping(text)
