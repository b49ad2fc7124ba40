"""`make matrix`: the tests of the library with other releases of Python, Celery, SQLAlchemy and LLM clients.

Each combination has an environment of its own in `.venv/matrix`; `clients` has older releases of the clients,
and frameworks that stand on them. One whose Python is not on this machine is skipped, loudly; any other that
cannot be installed or whose tests fail makes this fail.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENTS = ROOT / ".venv" / "matrix"
UV = ROOT / ".venv" / "bin" / "uv"
TOOLS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "psycopg[binary]", "redis")
# Not those that need Django, OpenTelemetry or workers in processes.
LEFT_OUT = ("test_processes.py", "test_killed_requests.py", "test_9_traces.py")
TESTS = (
    "tests/guard",
    *(f"--ignore=tests/guard/{name}" for name in LEFT_OUT),
    *("-k", "not postgresql", "-m", "not long"),
)
# The release before that of the usual environment, of each client, and frameworks that need those.
CLIENTS = (
    *("openai<3", "anthropic<1", "mistralai<3", "cohere<7", "groq<1.7"),
    *("google-genai>=3", "langchain-openai>=1", "llama-index-llms-openai", "llama-index-embeddings-openai"),
    *("httpx", "httpx2", "requests"),
)
CLIENT_TESTS = (
    *(f"tests/paid/test_{name}.py" for name in ("2_transport", "3_failures", "6_frameworks")),
    *("-k", "not postgresql", "-o", "filterwarnings="),
)


@dataclass(frozen=True)
class Combination:
    """Releases that are to work together."""

    python: str
    celery: str
    sqlalchemy: str

    @property
    def name(self) -> str:
        """What its environment is called."""
        return f"python{self.python}-celery{self.celery}-sqlalchemy{self.sqlalchemy}"


COMBINATIONS = (
    Combination("3.11", "5.4", "2.0"),
    Combination("3.11", "5.5", "2.0"),
    Combination("3.11", "5.6", "2.1"),
    Combination("3.12", "5.4", "2.1"),
    Combination("3.12", "5.7", "2.1"),
    Combination("3.13", "5.5", "2.0"),
    Combination("3.13", "5.7", "2.1"),
)


def main(words: Sequence[str]) -> int:
    """Try every combination; 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m scripts.matrix", description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names of those to try")
    options = parser.parse_args(words)
    failed = [each.name for each in COMBINATIONS if options.only in each.name and not _works(each)]
    if options.only in "clients" and not _passes("clients", sys.executable, CLIENTS, CLIENT_TESTS):
        failed.append("clients")
    print(f"matrix: {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}")
    return 1 if failed else 0


def _works(combination: Combination) -> bool:
    python = _interpreter(combination.python)
    if python is None:
        print(f"matrix: {combination.name}: SKIPPED, there is no Python {combination.python} on this machine")
        return True
    releases = (f"celery~={combination.celery}.0", f"sqlalchemy~={combination.sqlalchemy}.0")
    return _passes(combination.name, python, releases, TESTS)


def _passes(name: str, python: str, packages: Sequence[str], tests: Sequence[str]) -> bool:
    """True if the tests pass in an environment with these packages."""
    folder = ENVIRONMENTS / name
    target = [str(UV), "pip", "install", "-q", "--python", str(folder / "bin" / "python")]
    steps = (
        [str(UV), "venv", "-q", "--allow-existing", "--python", python, str(folder)],
        [*target, "-e", f"{ROOT}[celery]", *packages, *TOOLS],
        [str(folder / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
    )
    for step in steps:
        done = subprocess.run(step, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"matrix: {name}: FAILED\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
            return False
    print(f"matrix: {name}: {done.stdout.strip().splitlines()[-1]}", flush=True)
    return True


def _interpreter(version: str) -> str | None:
    """A Python of this version: on the path, or where pyenv keeps them."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    versions = Path(os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv"))) / "versions"
    installed = sorted(versions.glob(f"{version}.*/bin/python"))
    return str(installed[-1]) if installed else shutil.which(f"python{version}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
