"""A folder that came from somebody else is only read: nothing in it is run, and it decides nothing."""

import importlib.metadata
import os
import re
import subprocess
import sys

import pytest

from tests.worker.programs import PROGRAM, ROOT

# What Celery, Python and their like look for by name, besides every module that is there anyway.
SOUGHT = ("celeryconfig", "sitecustomize", "usercustomize", "tests", "conftest", "settings")
# The interpreter has them before it looks anywhere, or needs them to say what went wrong.
BUILT_IN = {*sys.builtin_module_names, "__future__", "__main__", "antigravity", "this"}


@pytest.fixture
def folder(tmp_path):
    """A paper, beside a program for each name that anybody might import; each leaves a mark when it runs."""
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "paper.txt").write_text("Anchors hold in clay better than in sand.")
    names = (
        {*SOUGHT, *sys.stdlib_module_names, *importlib.metadata.packages_distributions()}
        - BUILT_IN
        - {"holdfast"}
    )
    for name in (name for name in names if name.isidentifier()):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('{name}\\n')\n")
    return folder


def run(folder, *words, **settings):
    """What a command said that was started in the folder, as a person starts it."""
    saved = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    data = {"HOLDFAST_DATA_DIR": str(folder.parent / "data"), "HOLDFAST_EMBEDDING_PROVIDER": "local"}
    environment = saved | data | {f"HOLDFAST_{name.upper()}": value for name, value in settings.items()}
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_indexing_a_folder_runs_nothing_that_lies_in_it(folder):
    """`numpy.py` beside the papers is not run, by the command, its worker or the worker's children."""
    done = run(folder, str(PROGRAM), "index", "paper.txt")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (folder.parent / "ran").exists(), (folder.parent / "ran").read_text()


def test_python_m_runs_no_package_that_lies_in_the_folder(folder):
    """`python -m` itself looks for modules of the standard library there; what Holdfast imports is safe."""
    for name in sys.stdlib_module_names:
        (folder / f"{name}.py").unlink(missing_ok=True)
    done = run(folder, sys.executable, "-m", "holdfast.cli", "index", "paper.txt")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (folder.parent / "ran").exists(), (folder.parent / "ran").read_text()


def test_every_child_is_started_without_the_current_folder():
    """No part of the product starts an interpreter that looks for modules where somebody happens to be."""
    for source in (ROOT / "src/holdfast").rglob("*.py"):
        for line in re.findall(r"^.*sys\.executable.*$", source.read_text(), re.MULTILINE):
            # Or an installed script beside the interpreter, which looks for modules beside itself.
            safe = r'sys\.executable(, "-(P|I\w*)"|\)\.with_name\("holdfast"\))'
            assert re.search(safe, line), f"{source}: {line}"


def test_a_settings_file_in_the_folder_cannot_have_the_key_sent_elsewhere(folder, meter):
    """One line names the setting and the remedy; nothing was sent."""
    (folder / "holdfast.toml").write_text(f'embedding_base_url = "{meter.url}"')
    done = run(folder, str(PROGRAM), "index", "paper.txt", embedding_provider="openai", embedding_api_key="k")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(
        "holdfast: embedding_base_url cannot be set by a holdfast.toml merely found"
    )
    assert meter.totals().charges == 0
    done = run(folder, str(PROGRAM), "index", "paper.txt", "--config", "holdfast.toml")
    assert "cannot be set" not in done.stderr


def test_data_in_the_folder_is_not_taken_for_ones_own(folder):
    """A data folder that came with the papers is not used; who has none yet is told of it."""
    (folder / "holdfast-data").mkdir()
    (folder / "holdfast-data/holdfast.db").touch()
    done = run(folder, str(PROGRAM), "index", "paper.txt", data_dir="")
    assert done.returncode == 4
    assert "--data-dir holdfast-data [data_elsewhere]" in done.stderr
    assert run(folder.parent, str(PROGRAM), "migrate", data_dir="").returncode == 0
    assert run(folder, str(PROGRAM), "status", data_dir="").returncode == 0
    assert (folder.parent / "share/holdfast/holdfast.db").exists()


def test_code_of_ones_own_is_found_where_one_says(folder):
    """Not in the current folder, unless that is named; then by the worker and its children, too."""
    (folder / "mine.py").write_text(
        "from holdfast.engine.kinds import Kind\nNAP = Kind('nap', run=lambda work: None)\n"
    )
    for name in sys.stdlib_module_names:
        (folder / f"{name}.py").unlink(missing_ok=True)
    done = run(folder, str(PROGRAM), "index", "paper.txt", kinds="mine:NAP")
    assert done.returncode == 2
    assert "HOLDFAST_KINDS names mine:NAP, which cannot be imported (No module named 'mine')" in done.stderr
    done = run(folder, str(PROGRAM), "index", "paper.txt", "--python-path", ".", kinds="mine:NAP")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (folder.parent / "ran").exists(), (folder.parent / "ran").read_text()
