"""Bounds that only move down: size of files and functions, where `except Exception` may stand, and old words.

`scripts/ratchet.txt` lists each file of src that catches everything, and how often. A catch that is not on
the list fails, and so does a list that allows more than there is: whoever removes one also lowers the
bound. Old words are counted by `scripts.words`, under the bounds of `scripts/words.txt`.
"""

import ast
import sys
from collections import Counter
from pathlib import Path

from scripts import words

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = ROOT / "scripts/ratchet.txt"
FILE_LINES, FUNCTION_LINES = 500, 80
CATCH_ALL = {"Exception", "BaseException"}


def complaints() -> list[str]:
    """Every bound that is broken, one to a line."""
    found: list[str] = []
    catches: Counter[str] = Counter()
    for path in sorted((ROOT / "src").rglob("*.py")):
        name = str(path.relative_to(ROOT))
        text = path.read_text(encoding="utf-8")
        if (lines := len(text.splitlines())) > FILE_LINES:
            found.append(f"{name}: {lines} lines, at most {FILE_LINES}: split it")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > FUNCTION_LINES and "migrations/versions" not in name:
                    found.append(
                        f"{name}:{node.lineno}: {node.name} has {length} lines, at most {FUNCTION_LINES}"
                    )
            elif isinstance(node, ast.ExceptHandler) and _catches_all(node):
                catches[name] += 1
    return found + _compare(catches, _allowed()) + words.complaints()


def _catches_all(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(each is None or (isinstance(each, ast.Name) and each.id in CATCH_ALL) for each in caught)


def _allowed() -> Counter[str]:
    rows = [line.split("#")[0].split() for line in ALLOWED.read_text().splitlines()]
    return Counter({row[0]: int(row[1]) for row in rows if row})


def _compare(catches: Counter[str], allowed: Counter[str]) -> list[str]:
    return [
        f"{name}: `except Exception` {catches[name]} times, {ALLOWED.name} says {allowed[name]}: "
        + ("catch what you expect" if catches[name] > allowed[name] else "lower the bound")
        for name in sorted(catches.keys() | allowed.keys())
        if catches[name] != allowed[name]
    ]


if __name__ == "__main__":
    broken = complaints()
    print("\n".join(broken) if broken else "ratchet: every bound holds")
    sys.exit(1 if broken else 0)
