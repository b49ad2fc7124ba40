"""The list of lengthy test files names files that are there."""

from pathlib import Path

from tests import order

ROOT = Path(__file__).resolve().parents[2]


def test_every_lengthy_file_is_there() -> None:
    """A name that is none would leave its file among the small ones, at the end of every run."""
    assert [name for name in order.LENGTHY if not (ROOT / name).is_file()] == []
