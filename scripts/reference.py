"""Writes the pages of `docs/reference` that are derived from the code; `--check` only compares.

Needs holdfast.
"""

import sys
import types
import typing
from pathlib import Path

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from holdfast import settings

ROOT = Path(__file__).resolve().parents[1]
SETTINGS_PAGE = ROOT / "docs/reference/settings.md"
SETTINGS_HEAD = """\
# Settings

<!-- Written by `make docs` from src/holdfast/settings.py. Change it there. -->

Each setting is an environment variable `HOLDFAST_NAME`, or a key `name` (lower case) of `holdfast.toml` in
the current folder. The environment wins over the file; an empty variable counts as unset. A name that is
not in this table is an error, and so is a value out of range: Holdfast says so in one line and does not
start. Values marked *secret* are never printed.

| setting | value | default | meaning |
|---|---|---|---|
"""


def settings_page() -> str:
    """The page of settings as it should be."""
    return SETTINGS_HEAD + "".join(
        _row(name, field) for name, field in settings.Settings.model_fields.items()
    )


def _row(name: str, field: FieldInfo) -> str:
    return f"| `HOLDFAST_{name.upper()}` | {_value(field)} | {_default(field)} | {field.description} |\n"


def _value(field: FieldInfo) -> str:
    kinds = [kind for kind in _kinds(field.annotation) if kind is not types.NoneType]
    if all(isinstance(kind, str) for kind in kinds):
        return ", ".join(f"`{kind}`" for kind in kinds)
    words: dict[object, str] = {
        float: "number",
        int: "whole number",
        str: "text",
        Path: "path",
        SecretStr: "*secret*",
    }
    return words.get(kinds[0], "amount") + _bounds(field)


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
    return f"`{field.default}`"


def main(words: list[str]) -> int:
    """The exit code: 1 when `--check` finds a page out of date."""
    if words == ["--check"]:
        current = SETTINGS_PAGE.exists() and SETTINGS_PAGE.read_text() == settings_page()
        if not current:
            print(f"{SETTINGS_PAGE.relative_to(ROOT)} is out of date: run make docs")
        return 0 if current else 1
    SETTINGS_PAGE.parent.mkdir(parents=True, exist_ok=True)
    SETTINGS_PAGE.write_text(settings_page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
