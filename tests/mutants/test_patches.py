"""A mutant whose text has moved on proves nothing; it is noticed here, not when somebody runs them all."""

from pathlib import Path

import pytest

from tests.mutants.__main__ import ALL

SOURCE = Path(__file__).resolve().parents[2] / "src" / "holdfast"


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_every_break_fits_the_source_exactly_once(mutant):
    """Each patch changes one place of the file it names."""
    for patch in mutant.patches:
        text = (SOURCE / patch.file).read_text(encoding="utf-8")
        assert (text.count(patch.old), patch.old != patch.new) == (1, True)
