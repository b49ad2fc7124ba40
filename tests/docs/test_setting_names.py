"""A message that names a setting names it in full, so that it can be copied into a shell."""

import ast
import re
from pathlib import Path

from holdfast import settings

SOURCE = Path(__file__).resolve().parents[2] / "src/holdfast"
# Short names are words of other things as well: HOST:PORT is a part of an address.
NAMES = [name.upper() for name in settings.Settings.model_fields if "_" in name] + ["KINDS", "ANALYSERS"]
BARE = re.compile(rf"(?<![\w`])({'|'.join(NAMES)})(?!\w)")


def texts(tree):
    """Every text of a module that is no docstring, f-strings in one piece."""
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    skipped |= {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "_" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value


def test_no_message_names_a_setting_without_its_prefix():
    """`set DATA_DIR to one that can` leaves a reader to guess; HOLDFAST_DATA_DIR does not."""
    bare = [
        f"{source.relative_to(SOURCE)}: {text}"
        for source in SOURCE.rglob("*.py")
        if source.parent.name != "settings"
        for text in texts(ast.parse(source.read_text()))
        if " " in text and BARE.search(text)
    ]
    pages = {page: re.sub(r"{[{%].*?[%}]}", "_", page.read_text()) for page in SOURCE.rglob("*.html")}
    bare += [f"{page.name}: {named[0]}" for page, text in pages.items() for named in BARE.finditer(text)]
    assert bare == []
