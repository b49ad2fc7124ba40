"""The wheel in an environment that has nothing else: the core is light and says what an extra would add."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from holdfast import extras

ROOT = Path(__file__).resolve().parents[2]
README = re.compile(r"```python\n(.*?)```\n+It prints:\n+```\n(.*?)```", re.DOTALL)
MIB = 1024 * 1024
# Of the environment without any extra; measured: 35.
MOST_MIB = 60

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


class Environment:
    """A virtual environment with the wheel, some extras, and the versions of the lock."""

    def __init__(self, folder: Path, wheel: Path, extra: str) -> None:
        self.folder, self.home = folder, folder / "home"
        uv = [sys.executable, "-m", "uv"]
        self._run(*uv, "venv", "-q", "--python", sys.executable, str(folder / "venv"))
        self.home.mkdir()
        install = [*uv, "pip", "install", "-q", "--python", str(folder / "venv/bin/python")]
        packages = [f"holdfast{extra} @ {wheel.as_uri()}", "-c", str(ROOT / "requirements.lock")]
        # From uv's cache, which `make install` has filled; from the registry where that is not so.
        if self._run(*install, "--offline", *packages, check=False).returncode:
            self._run(*install, *packages)

    def _run(self, *command: str, check: bool = True, **environ: str) -> subprocess.CompletedProcess[str]:
        names = (
            "PATH",
            "HOME",
            "TMPDIR",
            "UV_CACHE_DIR",
            "UV_INDEX_URL",
            "UV_DEFAULT_INDEX",
            "SSL_CERT_FILE",
        )
        own = {name: os.environ[name] for name in names if name in os.environ}
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**own, "UV_SYSTEM_CERTS": "true", **environ},
            capture_output=True,
            text=True,
            check=check,
            timeout=240,
        )

    def python(self, program: str) -> str:
        """What the program prints."""
        return self._run(str(self.folder / "venv/bin/python"), "-W", "error", "-c", program).stdout

    def holdfast(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What became of a command, with a home of its own."""
        program = str(self.folder / "venv/bin/holdfast")
        return self._run(program, *words, check=False, HOME=str(self.home))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def core(wheel, tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("core"), wheel, "")


def test_the_core_is_light(core):
    """It brings no server, no Celery, no parser, no numpy and no model, and takes little room."""
    modules = [module for names in extras.MODULES.values() for module in names]
    program = f"import importlib.util as u; print([m for m in {modules!r} if u.find_spec(m) is not None])"
    assert core.python(program) == "[]\n"
    files = [path for path in (core.folder / "venv").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_MIB * MIB


def test_the_core_runs_the_program_of_the_readme(core):
    """Kinds, payments and publishing need no extra."""
    program, printed = README.search((ROOT / "README.md").read_text()).groups()
    assert core.python(program) == printed


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["up"], "server"),
        (["api"], "server"),
        (["worker"], "server"),
        (["index", "."], "server"),
        (["search", "anchors"], "server"),
        (["mcp"], "mcp"),
        (["jobs", "show", "1"], "server"),
        (["sweep", "--once"], "celery"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_command_without_its_extra_is_one_line(core, words, extra):
    """It names itself and the extra, and does nothing else."""
    done = core.holdfast(*words)
    name = " ".join(word for word in words if word.isalpha() and word != "anchors")
    line = f'holdfast {name} needs the {extra} extra: pip install "holdfast[{extra}]" [driver_missing]\n'
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(line)
    assert done.stderr.count("\n") == 1


def test_chaos_without_its_extra_is_one_line(core):
    """The harness plays real workers, and says what they need before it loads any."""
    program = (
        "import runpy, sys; sys.stderr = sys.stdout; runpy.run_module('holdfast.chaos', run_name='__main__')"
    )
    done = core.python(f"try:\n    {program}\nexcept SystemExit as end:\n    print(end.code)")
    assert (
        done == 'holdfast.chaos needs the celery extra: pip install "holdfast[celery]" [driver_missing]\n2\n'
    )


def test_commands_that_need_no_extra_work(core):
    """Help, migrations and a look at the state are there with the core alone."""
    assert core.holdfast("--help").returncode == 0
    assert re.fullmatch(r"holdfast \S+\n", core.holdfast("--version").stdout)
    for words in (["migrate"], ["status"], ["keys", "list"], ["bill"], ["documents", "list"]):
        done = core.holdfast(*words)
        assert (done.returncode, done.stderr) == (0, ""), words


def test_all_extras_together_have_everything(wheel, tmp_path):
    """With `[all]` every module of every extra can be imported, and every command has its help."""
    environment = Environment(tmp_path, wheel, "[all]")
    modules = [module for names in extras.MODULES.values() for module in names]
    program = (
        f"import importlib; [importlib.import_module(m) for m in {modules!r}]; import holdfast; print('all')"
    )
    assert environment.python(program.replace("-W error", "")) == "all\n"
    for command in ("up", "worker", "api", "index"):
        assert environment.holdfast(command, "--help").returncode == 0


def test_every_extra_knows_its_modules():
    """`holdfast.extras` has each extra of pyproject.toml, and `[all]` has all of them."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras.MODULES) == set(declared) - {"all"}
    assert declared["all"] == [f"holdfast[{','.join(sorted(extras.MODULES))}]"]
