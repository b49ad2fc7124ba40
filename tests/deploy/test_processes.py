"""Units, image and compose files start commands and use settings that exist, and stop workers gently."""

import configparser
import re
import shlex
from pathlib import Path

import pytest
import typer
import yaml

from holdfast.cli.app import app
from holdfast.settings import Settings

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMPOSE = sorted((DEPLOY / "compose").glob("*.yml"))
GRACE = Settings.model_fields["order_deadline"].default + 5


def unit(path):
    """The unit, by section and name; of a name that occurs twice, the last."""
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str
    parser.read_string(path.read_text())
    return parser


def services(path):
    """The services of a compose file that run Holdfast."""
    entries = yaml.safe_load(path.read_text())["services"]
    return {name: each for name, each in entries.items() if "HOLDFAST_IMAGE" in each["image"]}


def command_lines():
    """Every command of Holdfast that a file starts, by where it stands."""
    for path in UNITS:
        yield path.name, shlex.split(unit(path)["Service"]["ExecStart"])[1:]
    for path in COMPOSE:
        for name, each in services(path).items():
            yield f"{path.name} {name}", each["command"]


@pytest.mark.parametrize("line", [pytest.param(words, id=where) for where, words in command_lines()])
def test_every_command_exists_with_its_options(line):
    """The command line is one that `holdfast` parses."""
    command = typer.main.get_command(app).commands[line[0]]
    command.make_context(line[0], [word.replace("%i", "bulk") for word in line[1:]])


def test_every_setting_named_exists():
    """An unknown setting would keep every process from starting."""
    text = "\n".join(
        path.read_text()
        for path in [*DEPLOY.glob("systemd/*"), *DEPLOY.glob("docker/Dockerfile"), *DEPLOY.glob("compose/*")]
    )
    named = set(re.findall(r"HOLDFAST_([A-Z_]+)", text)) - {"IMAGE"}
    assert named
    assert {name for name in named if name.lower() not in Settings.model_fields} == set()


def test_workers_have_time_to_settle_an_order_in_flight():
    """The grace period is five seconds more than the deadline of an order, everywhere."""
    periods = {
        "systemd": float(unit(DEPLOY / "systemd/holdfast-worker@.service")["Service"]["TimeoutStopSec"])
    }
    for path in COMPOSE:
        for name, each in services(path).items():
            if each["command"][0] == "worker":
                periods[f"{path.name} {name}"] = float(each["stop_grace_period"].removesuffix("s"))
    assert len(periods) == 5
    assert {where: period for where, period in periods.items() if period < GRACE} == {}


def test_every_lane_has_a_worker_and_its_own_health_port():
    """Three files of settings for three instances of the unit; no two of them share a port."""
    files = sorted(DEPLOY.glob("systemd/worker-*.env"))
    assert [path.stem for path in files] == ["worker-bulk", "worker-follow-up", "worker-interactive"]
    ports = {re.search(r"HEALTH_PORT=(\d+)", path.read_text())[1] for path in files}
    scraped = (DEPLOY / "prometheus/prometheus.yml").read_text()
    assert len(ports) == 3
    assert all(f"127.0.0.1:{port}" in scraped for port in ports)


def test_nothing_runs_as_root():
    """The image has a user with a number, which orchestrators can check, and every unit has a user."""
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", (DEPLOY / "docker/Dockerfile").read_text(), re.MULTILINE)
    assert {unit(path)["Service"]["User"] for path in UNITS} == {"holdfast"}
