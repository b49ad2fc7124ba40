"""The progress of a job in several phases is that of the whole job, wherever it is looked at."""

import json
import re
from urllib.request import urlopen

import pytest

from tests import commands
from tests.api.install import ApiInstall
from tests.jobs.install import ask
from tests.jobs.test_derived_answers import text

BAR = re.compile(r'<progress max="1000" value="(\d+)"')


@pytest.mark.parametrize("kind", ["raptor", "graph", "mindmap"])
def test_the_bar_of_a_job_never_falls(kind, sqlite_url, tmp_path, monkeypatch, capsys):
    """Task by task, over all phases, and the same in the API, on the command line and in the web UI."""
    install = ApiInstall(sqlite_url, tmp_path / "data")
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", sqlite_url)
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(install.settings.data_dir))
    holdfast = commands.caller(monkeypatch, capsys)
    try:
        for name in ("alpha", "beta"):
            install.client.text(text(name), title=name)
        install.work()
        job = ask(install.client, kind).json["job_id"]
        shares, phases = [], set()
        while (view := install.client.get(f"jobs/{job}").json["job"])["state"] != "success":
            shares.append(view["progress"]["share"])
            phases.add(view["progress"]["phase"])
            with urlopen(f"http://127.0.0.1:{install.port}/jobs/{job}") as answer:
                page = answer.read().decode()
            assert int(BAR.search(page)[1]) == int(shares[-1] * 1000)
            install.worker.engine.work_off(most=1)
        shown = json.loads(holdfast("jobs", "show", job, "--json")[1])
        shares.append(shown["job"]["progress"]["share"])
    finally:
        install.close()
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 1)
    assert max(phases) > 1
