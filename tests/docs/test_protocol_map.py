"""The map of the protocol is complete and true: modules, names, tables, locks and the order of reading."""

import ast
import importlib
import re
from pathlib import Path

import pytest
import sqlalchemy

from holdfast.store.base import schema

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/holdfast"
MAP = (ROOT / "docs/protocol-map.md").read_text()
PACKAGES = ("core", "store/protocol", "store/money", "ledger", "engine")
READ_ORDER = ("core/states.py", "core/decide.py", "store/protocol/tasks.py", "engine/execute.py")
TABLES = {name for name, value in vars(schema).items() if isinstance(value, sqlalchemy.Table)}
LOCK = re.compile(r"with_for_update|_FOR_CHANGE|_FOR_SHARE")
ROWS = {
    row[0].strip().strip("`"): [cell.strip() for cell in row[1:]]
    for line in MAP.splitlines()
    if line.startswith("| `")
    for row in [line.strip("|").split("|")]
}


def spans(text):
    return re.findall(r"`([^`]+)`", text)


def tables_named(path):
    """The tables that a module imports by name."""
    imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    schemas = [node for node in imports if (node.module or "").startswith("holdfast.store.base.schema")]
    return {alias.name for node in schemas for alias in node.names} & TABLES


def test_every_module_of_the_protocol_is_on_the_map():
    """A module that is added, moved or renamed takes the map along."""
    modules = {
        str(path.relative_to(SOURCE))
        for package in PACKAGES
        for path in (SOURCE / package).glob("*.py")
        if path.stem != "__init__"
    }
    assert set(ROWS) == modules


@pytest.mark.parametrize("module", ROWS)
def test_a_row_names_what_its_module_has(module):
    """Each name in the second column is a function, class or method of the module."""
    loaded = importlib.import_module("holdfast." + module.removesuffix(".py").replace("/", "."))
    for name in spans(ROWS[module][0]):
        owner = loaded
        for part in name.split("."):
            owner = getattr(owner, part, None)
        assert owner is not None, name


@pytest.mark.parametrize("module", [module for module in ROWS if module.startswith("store/")])
def test_a_row_names_the_tables_and_locks_of_its_module(module):
    """The third column has the tables that the module names; the fourth says whether it locks rows."""
    _verbs, tables, locks = ROWS[module]
    assert set(spans(tables)) == tables_named(SOURCE / module)
    assert bool(LOCK.search((SOURCE / module).read_text())) == (locks != "none")


def test_packages_without_rows_of_their_own_name_no_table():
    """`core`, `ledger` and `engine` reach the database through the store alone."""
    assert [
        module for module in ROWS if not module.startswith("store/") and tables_named(SOURCE / module)
    ] == []


def test_the_order_of_reading_is_the_same_everywhere():
    """README, CONTRIBUTING and the map name the same files in the same order, after the guarantees."""
    for page in (MAP, (ROOT / "README.md").read_text(), (ROOT / "CONTRIBUTING.md").read_text()):
        order = r"guarantees\.md.*?" + r".*?".join(f"`{re.escape(each)}`" for each in READ_ORDER)
        assert re.search(order, page, re.DOTALL)


def test_each_module_explains_itself():
    """A reader who follows the order finds a docstring at the top of every module."""
    assert [
        module for module in ROWS if not ast.get_docstring(ast.parse((SOURCE / module).read_text()))
    ] == []
