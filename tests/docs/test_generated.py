"""What is generated is up to date, and what is locked can be installed from anywhere."""

import itertools
import re
import tomllib
from pathlib import Path

import pytest

from holdfast import settings
from scripts import reference

ROOT = Path(__file__).resolve().parents[2]


def dependencies():
    """The names of everything that pyproject.toml asks for, in any extra or group."""
    result = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = result["project"]["optional-dependencies"].values()
    lists = [result["project"]["dependencies"], *extras, *result["dependency-groups"].values()]
    return {re.match(r"[\w.-]+", each)[0].lower() for each in itertools.chain(*lists)} - {"holdfast"}


@pytest.mark.parametrize("path", reference.PAGES, ids=lambda path: path.stem)
def test_a_generated_page_is_up_to_date(path):
    """`make docs` would change nothing."""
    assert path.read_text() == reference.PAGES[path]()


def test_check_names_the_page_that_is_out_of_date(monkeypatch, tmp_path, capsys):
    """`--check` fails on a page that is missing or old, and writes nothing; without it, pages are written."""
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    monkeypatch.setattr(reference, "PAGES", {tmp_path / "docs/page.md": lambda: "new"})
    assert reference.main(["--check"]) == 1
    assert capsys.readouterr().out == "docs/page.md is out of date: run make docs\n"
    assert not (tmp_path / "docs").exists()
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0


def test_every_setting_is_described():
    """A setting without a description is not a setting yet."""
    assert [name for name, field in settings.Settings.model_fields.items() if not field.description] == []


def test_a_setting_says_what_it_takes():
    """Switches are `true` or `false`, lists are lists, money is an amount, and defaults can be typed."""
    rows = dict(
        re.findall(r"^\| `HOLDFAST_(\w+)` \| (.+? \| .+?) \|", reference.settings_page(), re.MULTILINE)
    )
    assert rows["FETCH_PRIVATE"] == "`true` or `false` | `false`"
    assert rows["WORKER_LANES"] == "list | `interactive,bulk,follow-up`"
    assert rows["PARK_ABOVE"].startswith("amount from 0")


def test_the_lock_names_no_host():
    """The lock holds versions and hashes only, no address, option or path."""
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock
    assert not re.search(r"^\s*(#|-(?!-hash=))", lock, re.MULTILINE)


def test_the_lock_holds_every_dependency():
    """What pyproject.toml asks for, but for the group `integrations`, is locked with a hash (`make lock`)."""
    lock = (ROOT / "requirements.lock").read_text()
    locked = set(
        re.findall(r"^([a-z0-9._-]+)==\S+(?: ;[^\\\n]*)? \\\n    --hash=sha256:", lock, re.MULTILINE)
    )
    # Of an environment of its own (`make integrations`), which takes the newest that fits.
    assert dependencies() - locked == {"langchain-tests", "llama-index-core"}


def test_every_dependency_is_justified():
    """Each direct dependency has its line in docs/decisions/dependencies.md."""
    page = (ROOT / "docs/decisions/dependencies.md").read_text()
    assert [name for name in sorted(dependencies()) if f"| `{name}` |" not in page] == []


# Imported under another name, or by the library that uses it. SQLAlchemy imports psycopg by the URL.
IMPORTED_AS = {
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry.exporter.otlp",
    "opentelemetry-sdk": "opentelemetry.sdk",
    "pillow": "PIL",
    "python-calamine": "python_calamine",
    "python-docx": "docx",
    "pystemmer": "Stemmer",
    "python-multipart": "starlette.formparsers",
    "python-oxmsg": "oxmsg",
    "python-pptx": "pptx",
    "pyyaml": "yaml",
}


def test_every_dependency_is_imported():
    """What is installed with Holdfast, in any extra, is imported by it; the rest is weight."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.match(r"[\w.-]+", each)[0].lower() for each in itertools.chain(*lists)}
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    modules = {
        name: IMPORTED_AS.get(name, name.replace("-", "_")) for name in names - {"holdfast", "psycopg"}
    }
    missing = [
        name
        for name, module in modules.items()
        if not re.search(rf"^\s*(from|import) {module}\b", source, re.MULTILINE)
    ]
    assert sorted(missing) == []


def test_what_runs_is_a_part_of_what_is_tested():
    """`requirements-run.lock` names nothing that `requirements.lock` does not have at the same version."""
    pins = [
        set(re.findall(r"^(\S+==\S+)", (ROOT / name).read_text(), re.MULTILINE))
        for name in ("requirements-run.lock", "requirements.lock")
    ]
    assert pins[0] < pins[1]
    assert not {pin.partition("==")[0] for pin in pins[0]} & {"pytest", "mypy", "playwright", "ruff"}
