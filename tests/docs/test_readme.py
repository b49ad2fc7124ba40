"""Programs in the documentation run exactly as written, and print what is printed there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/tutorial/your-own-kind.md", "docs/how-to/work-in-phases.md")
PROGRAM = re.compile(r"```python\n(.*?)```\n+It prints:\n+```(?:text)?\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+?)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES)
def test_a_program_in_the_documentation_runs_as_written(page, tmp_path):
    """Copied from the page into an empty folder, it prints what the page says, without a warning."""
    program, printed = PROGRAM.search((ROOT / page).read_text()).groups()
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.stdout == printed


def test_every_link_leads_somewhere():
    """A relative link in any page names a file or folder that exists."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    dead = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        for link in LINK.findall(page.read_text())
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert dead == []


def test_the_readme_makes_the_promises_of_the_guarantees():
    """Its six lines cover the seven titles, and neither page promises what nobody can keep."""
    readme = (ROOT / "README.md").read_text().lower()
    page = (ROOT / "docs/guarantees.md").read_text()
    titles = re.findall(r"^## G\d (.+)$", page, re.MULTILINE)
    assert len(titles) == 7
    assert [title for title in titles if title.lower() not in readme] == []
    assert "exactly once" not in readme + page.lower()


def test_the_first_screen_answers_what_a_newcomer_asks():
    """What it is, for whom and not, two commands, where data is, what it costs, a picture, the peers."""
    readme = (ROOT / "README.md").read_text()
    screen = readme.partition("## What is included")[0]
    assert "self-hosted service and library for document ingestion, search and LLM jobs" in screen
    answers = ("**It is for you**", "**It is not for you**", "~/.local/share/holdfast", "HOLDFAST_DATA_DIR")
    links = ("docs/comparison.md", "docs/reference/benchmarks.md", "docs/pictures/collection.png")
    assert [each for each in (*answers, *links, "charges per distinct input") if each not in screen] == []
    assert re.findall(r"^(make \w+) ", screen, re.MULTILINE) == ["make run", "make test"]
    assert screen.count("\n") < 80


def test_the_comparison_says_when_to_choose_another():
    """Each peer of the table has a section with its strength, its limit and the case for it."""
    page = (ROOT / "docs/comparison.md").read_text()
    sections = re.split(r"^## ", page, flags=re.MULTILINE)[1:-1]
    assert len(sections) == 5
    for section in sections:
        for part in ("**Good at:**", "**Leaves to you:**", "**Choose it instead**"):
            assert part in section, section.partition("\n")[0]
    assert "exactly once" not in page.lower()
    assert "](reference/benchmarks.md)" in page
