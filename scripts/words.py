"""Words that the house gives up (CONTRIBUTING, *Names and English*): how often each is left, and its bound.

`scripts/words.txt` has a line for each word and area. A count above its bound fails, and so does a bound far
above its count. `python -m scripts.words --lower` lowers the bounds to today's counts; it never raises one.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BOUNDS = ROOT / "scripts/words.txt"
NAMES = (
    "found",
    "told",
    "asked",
    "wanted",
    "given",
    "made",
    "kept",
    "its",
    "sort",
    "place",
    "turn",
    "signed_at",
)
CLASSES = ("Its", "Parts", "Wish", "Taking", "Handed", "Errand", "Haul", "Visitor")
MODULES = (
    *("acting", "before", "board", "drift", "foresight", "glance", "happenings", "heads", "kept", "looking"),
    *("mending", "mill", "once", "opening", "rounds", "scripts", "shelf", "signing", "telling", "tether"),
    *("tries", "visitor"),
)
PHRASES = {
    "whoever": r"\bwhoever\b",
    "addresses": r"(?<!mail )(?<!ip )(?<!link-local )\baddresses\b",
    "the page": r"\bthe page\b",
    "is away": r"\b(?:is|was|are) away\b",
    "nobody but": r"\bnobody but\b",
    "told here": r"\btold here\b",
    "sort of work": r"\bsorts? of work\b",
    "on board": r"\bon board\b",
}
# How far a bound may be above its count: whoever removes a word or two need not touch the list.
SLACK, SHARE = 5, 0.1


def counts() -> Counter[tuple[str, str]]:
    """By (area, word), how often the word is left: names where they are bound, phrases in any text."""
    left: Counter[tuple[str, str]] = Counter()
    for area in ("src", "tests"):
        for path in sorted((ROOT / area).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            left.update((area, word) for word in _of_code(path.stem, ast.parse(text)))
            left.update((area, phrase) for phrase in _of_text(text))
        for path in sorted((ROOT / area).rglob("*.html")):
            left.update((area, phrase) for phrase in _of_text(path.read_text(encoding="utf-8")))
    for path in pages():
        left.update(("docs", phrase) for phrase in _of_text(path.read_text(encoding="utf-8")))
    return left


def pages() -> list[Path]:
    """What people read: README, CONTRIBUTING and docs, but not its decisions, which are history."""
    docs = [path for path in (ROOT / "docs").rglob("*.md") if "decisions" not in path.parts]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(docs)]


def _of_code(stem: str, tree: ast.Module) -> Iterator[str]:
    if stem in MODULES:
        yield f"{stem}.py"
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name in CLASSES:
            yield f"class:{node.name}"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in NAMES:
            yield node.id
        elif isinstance(node, ast.arg) and node.arg in NAMES:
            yield node.arg


def _of_text(text: str) -> Iterator[str]:
    flat = re.sub(r"\s+", " ", text.lower())
    for phrase, pattern in PHRASES.items():
        yield from (phrase for _match in re.finditer(pattern, flat))


def bounds() -> dict[tuple[str, str], int]:
    """The bounds of the list, by (area, word)."""
    lines = [line.split("#")[0].strip() for line in BOUNDS.read_text(encoding="utf-8").splitlines()]
    rows = [line.split(maxsplit=2) for line in lines if line]
    return {(area, word): int(most) for most, area, word in rows}


def complaints() -> list[str]:
    """Every word that is more frequent than its bound, or whose bound is far from it."""
    return compare(counts(), bounds())


def compare(left: Counter[tuple[str, str]], most: dict[tuple[str, str], int]) -> list[str]:
    """What is wrong with these counts under these bounds, one to a line."""
    wrong = []
    for key in sorted(left.keys() | most.keys()):
        area, word = key
        bound = most.get(key, 0)
        if left[key] > bound:
            wrong.append(
                f"{area}: `{word}` {left[key]} times, at most {bound}: use the plain word (CONTRIBUTING)"
            )
        elif bound - left[key] > max(SLACK, SHARE * bound):
            wrong.append(
                f"{area}: `{word}` {left[key]} times, {BOUNDS.name} says {bound}: "
                "run python -m scripts.words --lower"
            )
    return wrong


def lower() -> None:
    """Each bound is at most today's count; words that are gone have none."""
    left, most = counts(), bounds()
    head = [line for line in BOUNDS.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    rows = sorted((key, min(bound, left[key])) for key, bound in most.items() if left[key])
    lines = [*head, *(f"{bound:5} {area:5} {word}" for (area, word), bound in rows)]
    BOUNDS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if "--lower" in sys.argv:
        lower()
    by_area: Counter[str] = Counter()
    for (part, _word), many in counts().items():
        by_area[part] += many
    print(", ".join(f"{area}: {many}" for area, many in sorted(by_area.items())))
