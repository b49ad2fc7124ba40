"""The command as a user meets it: in a process of its own, on applications that are files."""

import dataclasses
import io
import json
import os
import subprocess
import sys

import pytest
from rich.console import Console

from holdfast.cli import doctor_command, terminal
from holdfast.cli.exit_codes import CommandError
from holdfast.core.errors import BadRequestError
from holdfast.doctor import catalogue
from holdfast.doctor.facts import Declared
from holdfast.doctor.probes import celery_app
from tests.doctor import table

PLAIN = """
import time
from celery import Celery

print("loading the shop")
app = Celery("shop", broker="redis://:hunter22@127.0.0.1:1/0", backend="redis://:hunter22@127.0.0.1:1/0")
app.conf.update(task_acks_late=True, beat_schedule={"x": {"task": "shop.mail", "schedule": 9}})

@app.task(autoretry_for=(OSError,), retry_backoff=True, retry_backoff_max=7200)
def build(number): time.sleep(number)

@app.task(time_limit=30)
def mail(): ...
"""
GUARDED = """
from celery import Celery
from holdfast import Guard

app = Celery("shop", broker="redis://:hunter22@127.0.0.1:1/0")
app.conf.update(
    broker_connection_max_retries=None,
    broker_transport_options={"socket_timeout": 30, "socket_keepalive": True},
)
guard = Guard(app, database="sqlite:///shop.db")

@guard.task("report:{number}", time_limit=60)
def build(number): ...
"""


@pytest.fixture
def doctor(tmp_path):
    """Runs the command where the applications are; standard output, standard error and the exit code."""
    (tmp_path / "plain.py").write_text(PLAIN)
    (tmp_path / "guarded.py").write_text(GUARDED)

    def run(*words, **environment):
        done = subprocess.run(
            [sys.executable, "-m", "holdfast.cli", "doctor", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert "hunter22" not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


def test_a_plain_application_gets_its_problems_with_fixes(doctor):
    """Errors, what was seen, and the lines to paste; nothing of the application's own output, no secrets."""
    done = doctor("--app", "plain:app", "--offline")
    assert done.returncode == 1
    assert "loading the shop" in done.stderr
    assert "loading the shop" not in done.stdout
    assert "✖ C1  Late acknowledgement without a guard  plain:app" in done.stdout
    assert "a delay of 2 h, and the broker waits 1 h" in done.stdout
    assert "no time limit, on 1 task: plain.build" in done.stdout
    assert "│ app.conf.task_reject_on_worker_lost = True" in done.stdout
    assert all(len(line) <= 110 for line in done.stdout.splitlines())
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())


def test_a_guarded_application_passes_unless_its_broker_is_unreachable(doctor):
    """No error, and why it is harmless; but a check that was not made is not passed: exit code 4."""
    done = doctor("--app", "guarded:app", "--json", "--ignore", "c15")
    answer = json.loads(done.stdout)
    assert done.returncode == 4, done.stdout
    assert answer["problems"]["error"] == 0
    assert [each["harmless"][:11] for each in answer["findings"] if each["id"] == "C1"] == ["every task "]
    assert answer["unreachable"][0].startswith("redis://127.0.0.1:1/0: it does not answer")
    assert set(answer["findings"][0]) >= {"id", "severity", "state", "about", "seen", "why", "fix"}


def test_an_application_that_cannot_be_loaded_is_an_error_of_usage(tmp_path, monkeypatch):
    """The reason is one line, without secrets; so it is for what is no application, or no check."""
    (tmp_path / "broken_shop.py").write_text("raise RuntimeError('no redis://:hunter22@host/0')")
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("broken_shop:app", "missing_shop:app", "json:loads"):
        with pytest.raises(BadRequestError) as caught:
            celery_app.load(name)
        assert caught.value.code == "bad_app"
        assert "hunter22" not in caught.value.message
    with pytest.raises(CommandError, match="there is no check Z9"):
        doctor_command.doctor(doctor_command.DoctorOptions(ignore=frozenset({"Z9"})), as_json=False)


def test_an_installation_that_does_not_exist_yet_is_examined(tmp_path, monkeypatch, capsys):
    """Without an application it is this installation: the look makes no file, and says to migrate."""
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(tmp_path / "data"))
    code = doctor_command.doctor(doctor_command.DoctorOptions(), as_json=True)
    states = {each["id"]: each["state"] for each in json.loads(capsys.readouterr().out)["findings"]}
    assert code == 0
    assert (states["P3"], states["C1"], states["H1"]) == ("problem", "harmless", "passed")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("width", [50, 80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_report_fits_its_terminal(width, encoding, monkeypatch):
    """No line of words is wider than the terminal, none ends in spaces, and signs are of its encoding."""
    bad = dataclasses.replace(table.with_task(time_limit=None), declared=Declared(liveness="inspect ping"))
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", out)
    console = Console(file=out, width=width, theme=terminal.THEME, highlight=False)
    report = catalogue.examine(bad, ignore={"C8"})
    doctor_command.ReportPrinter(console, bad, report, show_all=True).print()
    out.flush()
    lines = out.buffer.getvalue().decode(encoding).splitlines()
    bar = "│" if encoding == "utf-8" else "|"
    assert all(len(line) <= max(width, 100) for line in lines if f"{bar} " not in line)
    assert all(len(line) <= width for line in lines[3:] if f"{bar} " not in line)
    assert not [line for line in lines if line.endswith(" ")]
    assert any("ignored: C8" in line for line in lines)


def test_an_application_needs_no_database_and_no_server_of_holdfast():
    """The command for an application imports neither FastAPI nor a database or the parts of a server."""
    script = (
        "import sys; from holdfast.doctor import catalogue, gather; from holdfast.cli import doctor_command;"
        "from holdfast.doctor.probes import celery_app, clients, machine;"
        "print(sorted({'fastapi', 'numpy', 'alembic', 'psycopg', 'redis', 'sqlite3', 'sqlalchemy'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
