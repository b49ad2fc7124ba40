"""The example projects do what their READMEs say."""

import shutil
from pathlib import Path

import pytest

from tests.docs import howto

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/README.md"))


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_as_its_readme_says(example, tmp_path):
    """In a copy of its folder, with a real worker, no command fails."""
    folder = tmp_path / example.name
    shutil.copytree(
        example, folder, ignore=shutil.ignore_patterns("__pycache__", "broker", "*.sqlite3", "*.db")
    )
    code, printed = howto.run((folder / "README.md").read_text(), folder, {}, 100.0)
    assert code == 0, f"{example.name} ended with {code}:\n{printed[-4000:]}"
