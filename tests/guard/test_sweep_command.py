"""`holdfast sweep --app`: an application is swept outside its workers."""

import json
import os
import subprocess
import sys

import pytest

SHOP = """
import os
from celery import Celery
from holdfast import Guard

folder = os.environ["BROKER"]
app = Celery("shop", broker="filesystem://", set_as_current=False)
app.conf.broker_transport_options = {
    "data_folder_in": folder, "data_folder_out": folder, "control_folder": folder + "/control"
}
guard = Guard(app, database=os.environ["DATABASE"])

@guard.task("report:{report}")
def build(report):
    return report
"""
PLAIN = "from celery import Celery\napp = Celery('plain', broker='memory://')\n"
REQUEST = """
from sqlalchemy import create_engine
from shop import build, guard
import os
guard.runtime()
with create_engine(os.environ["DATABASE"]).begin() as connection:
    print(build.request(7, using=connection).disposition)
"""


@pytest.fixture
def shop(tmp_path, sqlite_url):
    """Runs commands in the folder of an application."""
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "plain.py").write_text(PLAIN)
    (tmp_path / "broker").mkdir()
    environ = {**os.environ, "BROKER": str(tmp_path / "broker"), "DATABASE": sqlite_url}

    def run(*words):
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)

    return run


@pytest.mark.g4
def test_a_round_publishes_what_was_requested(shop, tmp_path):
    """The message of a run that was requested in a transaction goes to the application's broker, once."""
    assert shop("-c", REQUEST).stdout == "accepted\n"
    sweep = ("-m", "holdfast.cli", "sweep", "--once", "--app")
    assert shop(*sweep, "shop:app").stdout.startswith("swept: messages published 1;")
    assert shop(*sweep, "shop").stdout.startswith("swept: messages published 0;")
    sent = [json.loads(path.read_text()) for path in (tmp_path / "broker").glob("*.msg")]
    assert [message["headers"]["task"] for message in sent] == ["shop.build"]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("nothing:app", "there is no Celery application 'nothing:app': No module named 'nothing'"),
        ("shop:nothing", "there is no Celery application 'shop:nothing'"),
        ("shop:guard", "'shop:guard' is a Guard, not a Celery application"),
        ("plain:app", "'plain:app' has no guarded task"),
    ],
)
def test_a_wrong_name_is_one_line(shop, name, line):
    """What cannot be swept is said in one line, with exit code 2."""
    done = shop("-m", "holdfast.cli", "sweep", "--app", name)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert line in done.stderr
