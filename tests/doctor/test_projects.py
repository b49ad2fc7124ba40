"""Whole projects: the examples of this repository, and the settings of public ones, as facts."""

import json
import shutil
import subprocess
import sys

import pytest

from holdfast.doctor import catalogue
from holdfast.doctor.facts import DoctorFacts
from holdfast.doctor.findings import FindingState
from holdfast.doctor.probes import celery_app
from tests.doctor.examining import ROOT

EXAMPLES = {
    "celery": "shop:app",
    "django": "shop.celery:app",
    "fastapi": "reports:app",
    "flask": "reports:app",
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_has_no_error(example, tmp_path):
    """Its tasks are guarded: what would hurt another application is harmless, and the look leaves no file."""
    folder = tmp_path / example
    ignored = shutil.ignore_patterns("__pycache__", "broker", "*.sqlite3", "*.db")
    shutil.copytree(ROOT / "examples" / example, folder, ignore=ignored)
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.cli", "doctor", "--app", EXAMPLES[example], "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    states = {each["id"]: each["state"] for each in answer["findings"]}
    assert answer["problems"]["error"] == 0
    assert (states["C1"], states["C2"]) == ("harmless", "passed")
    assert not [path.name for path in folder.rglob("*") if path.suffix in {".db", ".sqlite3"}]


# Settings of public projects as facts, in the names of Celery; hosts and passwords are made up.
# Their tasks are not there, so that a task has the options that these settings give it.
PUBLIC = {
    # github.com/onyx-dot-app/onyx, backend/onyx/background/celery/configs/base.py, bae2ebd3
    "onyx": (
        {
            "broker_url": "redis://:own-secret@cache.internal:6379/15",
            "result_backend": "redis://:own-secret@cache.internal:6379/14",
            "broker_transport_options": {
                "retry_on_timeout": True,
                "health_check_interval": 60,
                "socket_keepalive": True,
            },
            "task_acks_late": True,
        },
        {"C1", "C3", "C5", "C8", "R1"},
        {"C2", "R2", "R11", "R12", "R15"},
    ),
    # github.com/langgenius/dify, api/extensions/ext_celery.py, 9b46b027, and its default settings
    "dify": (
        {
            "broker_url": "redis://:own-secret@redis.internal:6379/1",
            "result_backend": "db+postgresql://app:own-secret@db.internal/dify",
            "broker_transport_options": {},
            "task_ignore_result": True,
            "beat_schedule": {"clean": {"task": "schedule.clean", "schedule": 86_400.0}},
        },
        {"C2", "C8", "C10", "R10", "R11"},
        {"C1", "C3", "R2", "R15"},
    ),
    # github.com/PostHog/posthog, posthog/settings/celery.py, 03f2add8
    "posthog": (
        {
            "broker_url": "redis://cache.internal:6379/0",
            "result_backend": "redis://cache.internal:6379/0",
            "task_ignore_result": True,
            "result_expires": 4 * 86_400,
            "beat_scheduler": "redbeat.RedBeatScheduler",
            "beat_schedule": {"usage": {"task": "posthog.usage", "schedule": 60.0}},
        },
        {"C2", "C8", "R10", "R15", "S1"},
        {"C1", "C18"},
    ),
    # github.com/apache/airflow, airflow/providers/celery/executors/default_celery.py, 0727b4fb, on Redis
    "airflow": (
        {
            "broker_url": "redis://:own-secret@redis.internal:6379/0",
            "result_backend": "db+postgresql://airflow:own-secret@db.internal/airflow",
            "broker_transport_options": {"visibility_timeout": 21_600},
            "worker_prefetch_multiplier": 1,
            "worker_concurrency": 16,
            "task_acks_late": True,
        },
        {"C1", "C3", "C5", "C8", "R4"},
        {"C2", "C6", "R2", "R15"},
    ),
}


@pytest.mark.parametrize("project", PUBLIC)
def test_the_settings_of_a_public_project(project):
    """The problems that its settings have are found, and what it has in order passes."""
    from celery import Celery  # noqa: PLC0415 - of an extra

    conf, problems, fine = PUBLIC[project]
    app = Celery(project, set_as_current=False)
    app.conf.update(conf)
    facts = DoctorFacts((celery_app.facts_of(app, project),), versions={"celery": "5.7.0", "kombu": "5.7.0"})
    report = catalogue.examine(facts)
    assert problems <= {each.id for each in report.of(FindingState.PROBLEM)}
    assert fine <= {each.id for each in report.of(FindingState.PASSED)}
    assert not fine & {each.id for each in report.of(FindingState.PROBLEM)}
    assert "own-secret" not in repr(report)
