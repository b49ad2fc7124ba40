"""What docs/guarantees.md and the decisions name exists: functions, constraints, tests."""

import importlib
import re
from pathlib import Path

import pytest

from holdfast import Guard
from holdfast.store.base import schema

ROOT = Path(__file__).resolve().parents[2]
GUARANTEES = ROOT / "docs/guarantees.md"
PAGES = [GUARANTEES, *sorted((ROOT / "docs/decisions").glob("0*.md"))]
PACKAGES = {path.stem for path in (ROOT / "src/holdfast").iterdir() if not path.stem.startswith("_")}
SECTIONS = re.split(r"^## ", GUARANTEES.read_text(), flags=re.MULTILINE)[1:]


def named(text):
    """The code spans of a page."""
    return set(re.findall(r"`([^`\n]+)`", text))


def constraints():
    """The names of everything that the schema keeps by itself."""
    result = set()
    for table in schema.metadata.tables.values():
        result |= {constraint.name for constraint in table.constraints} | {
            index.name for index in table.indexes
        }
    return result


def resolve(name):
    """The thing that `store.protocol.tasks.hold` names; None if there is none.

    `guard.fence` is a method of the guard that an application has.
    """
    parts = name.split(".")
    if parts[0] == "guard" and hasattr(Guard, parts[1]):
        return getattr(Guard, parts[1])
    for cut in range(len(parts), 0, -1):
        try:
            result = importlib.import_module("holdfast." + ".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            fields = getattr(result, "__dataclass_fields__", {})
            result = getattr(result, part, fields.get(part))
        return result
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_function_and_test_named_exists(page):
    """A function that is renamed, or a test that is moved, takes the page along."""
    spans = named(page.read_text())
    functions = {
        span for span in spans if re.fullmatch(r"[a-z_]+(\.\w+)+", span) and span.split(".")[0] in PACKAGES
    }
    assert sorted(name for name in functions if resolve(name) is None) == []
    tests = {span for span in spans if span.startswith("tests/")}
    assert sorted(name for name in tests if not (ROOT / name).is_file()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_constraint_named_exists(page):
    """A constraint is named for the promise it keeps, and the page names it as the schema does."""
    spans = {span for span in named(page.read_text()) if re.fullmatch(r"(g\d|ix|one)_[a-z_]+", span)}
    assert sorted(spans - constraints()) == []


def test_every_constraint_of_a_guarantee_is_told():
    """A constraint that carries the number of a guarantee stands on the page, under that guarantee."""
    for name in (name for name in constraints() if name and re.match(r"g\d_", name)):
        section = next(part for part in SECTIONS if part.startswith(name[:2].upper()))
        assert f"`{name}`" in section, name


@pytest.mark.parametrize("number", range(1, 8))
def test_each_guarantee_says_all_that_an_expert_asks(number):
    """Statement, assumptions, mechanism, remaining window, tests; and its tests carry its mark."""
    section = next(part for part in SECTIONS if part.startswith(f"G{number} "))
    for heading in ("Statement.", "Assumes", "Mechanism.", "Remaining window.", "Tests."):
        assert f"**{heading}**" in section, heading
    files = [ROOT / name for name in re.findall(r"`(tests/[^`]+\.py)`", section.partition("**Tests.**")[2])]
    assert any(f"pytest.mark.g{number}" in file.read_text() for file in files)


def test_the_page_closes_with_what_is_not_promised():
    """The last section is the list of limits."""
    assert SECTIONS[-1].startswith("What is not promised\n")
