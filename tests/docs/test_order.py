"""Lists that are kept by hand name what is there: lengthy test files, decisions."""

import re
from pathlib import Path

from tests import order

ROOT = Path(__file__).resolve().parents[2]


def test_every_lengthy_file_is_there() -> None:
    """A name that is none would leave its file among the small ones, at the end of every run."""
    assert [name for name in order.LENGTHY if not (ROOT / name).is_file()] == []


def test_decisions_are_listed_once_each_by_their_numbers() -> None:
    """The list names every page, in the order of their numbers."""
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(
        r"^- \[\d{4} .*\]\((\d{4}-.*\.md)\)$", (folder / "README.md").read_text(), re.MULTILINE
    )
    assert listed == sorted(path.name for path in folder.glob("[0-9]*.md"))
