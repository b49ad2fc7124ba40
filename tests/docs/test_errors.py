"""Every error code that the code can give is on the page of errors."""

import re
from pathlib import Path

from holdfast.service import error_table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/errors.md"
BY_ARGUMENT = re.compile(r"\bcode=\"(\w+)\"")
BY_CLASS = re.compile(r"^    code = \"(\w+)\"$", re.MULTILINE)
# Codes that are put together from parts: where, how, and what can come of it.
COMPOSED = {
    ("core/records.py", "bad_{name}"): {"bad_kind", "bad_subject", "bad_tenant"},
    ("engine/engine.py", "bad_{name}"): {"bad_content", "bad_collection", "bad_actor"},
    ("service/names.py", "bad_{what}"): {"bad_title", "bad_name"},
    ("ledger/exchanges.py", "provider_{outcome.code}"): {
        "provider_auth",
        "provider_parameter",
        "provider_quota",
        "provider_rejected",
    },
}


def sources():
    return {path: path.read_text() for path in (ROOT / "src/holdfast").rglob("*.py")}


def documented():
    return set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE))


def used():
    result = set()
    for text in sources().values():
        result |= set(BY_ARGUMENT.findall(text))
        result |= set(BY_CLASS.findall(text)) if "Error" in text else set()
    return result | set().union(*COMPOSED.values()) | {"work_raised"}


def test_every_code_is_documented():
    """A code that a program may meet can be looked up."""
    assert sorted(used() - documented()) == []


def test_no_code_is_documented_that_nobody_gives():
    """The page forgets what the code has forgotten."""
    assert sorted(documented() - used()) == []


def test_codes_are_put_together_only_where_known():
    """A code made with an f-string is listed in this test with all that it can give."""
    top = ROOT / "src/holdfast"
    composed = {
        (str(path.relative_to(top)), match)
        for path, text in sources().items()
        for match in re.findall(r"code=f\"([^\"]+)\"", text)
    }
    assert composed == set(COMPOSED)


def test_every_code_says_what_to_do():
    """Each row has a meaning, and all but the root of the tree an advice."""
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| ?(.*?) ?\|$", PAGE.read_text(), re.MULTILINE)
    assert [code for code, meaning, advice in rows if not meaning or not (advice or code == "error")] == []


def test_the_page_has_the_table_of_statuses_and_exit_codes():
    """Each code and class stands in the row of the status and the exit code that it has."""
    rows = re.findall(r"^\| (\d{3}) \| (\d) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    shown = {
        (int(status), int(code), name)
        for status, code, names in rows
        for name in re.findall(r"`(\w+)`", names)
    }
    by_code = {(row.status, row.exit, code) for code, row in error_table.BY_CODE.items()}
    by_class = {(row.status, row.exit, kind.__name__) for kind, row in error_table.BY_CLASS}
    assert shown == by_code | by_class
