"""A paid parser in the whole installation: its estimate, its bill, and what a document waits for."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from sqlalchemy import update

from holdfast import settings
from holdfast.chaos.waiting import until
from holdfast.store.base.schema import tasks
from holdfast.testing.meter import Meter
from tests.api.install import ApiInstall
from tests.indexing import books

MODULE = """
import json


class Layout:
    model = "layout-2"

    def accepts(self, head, name):
        return head.startswith(b"%PDF")

    def request(self, file):
        request = {"provider": "document-ai", "endpoint": "documents/parse", "model": self.model}
        return request | {"content_type": "application/pdf"}

    def read(self, file, answer):
        return [[line for page in json.load(answer)["pages"] for line in page][:3]]


class Unpriced(Layout):
    model = "layout-3"
"""
PARSERS = ("priced_parsers:Layout", "priced_parsers:Unpriced")


DOOMED = """
import os, signal, sys
from holdfast import bootstrap, faults, settings
faults.arm(lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == sys.argv[1] else None)
with bootstrap.open_runtime(settings.load(), owner="doomed") as runtime:
    runtime.engine.work_off()
"""


@pytest.fixture
def meter():
    with Meter(honour_keys=True) as running:
        yield running


@pytest.fixture
def install(database_url, tmp_path, meter, monkeypatch):
    """An installation whose parsers ask a service at two cents per page."""
    (tmp_path / "priced_parsers.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    service = {"wire": "documents", "base_url": meter.base_url, "key_retention": 3600}
    table = service | {"prices": {"layout-2": {"page": 0.02}}}
    installation = ApiInstall(
        database_url, tmp_path / "data", parsers=PARSERS, providers={"document-ai": table}
    )
    installation.client.collection("shelf")
    yield installation
    installation.worker.engine.drain()
    installation.close()


def test_the_call_of_a_parser_is_estimated_and_billed(install):
    """Its pages at their price, before and after; what was paid once costs nothing any more."""
    client = install.client
    document = client.upload("collections/shelf/documents", books.plain(3), "a.pdf").json["document"]
    before = client.post("estimate", {"collection": "shelf"}).json
    assert (before["calls"], before["cost"], before["unpriced_calls"], before["unknown"]) == (1, 0.06, 0, 1)
    install.work()
    assert client.get(f"documents/{document['id']}").json["index_status"] == "success"
    bill = client.get("bill?by=model").json
    assert {line["about"]: line["paid"] for line in bill["lines"]}["layout-2"] == 0.02
    same = client.post("estimate", {"collection": "shelf", "options": {"chunk_size": 32}}).json
    assert (same["calls"], same["reused_calls"] > 0) == (0, True)
    other = {"parsers": {"pdf": "Unpriced"}}
    odd = client.post("estimate", {"collection": "shelf", "options": other}).json
    assert (odd["calls"], odd["unpriced_calls"]) == (1, 1)


def test_why_says_that_the_service_of_the_parser_is_waited_for(install, meter):
    """The story, the progress and the waiting of the document name it."""
    client = install.client
    meter.hold("before")
    document = client.upload("collections/shelf/documents", books.plain(2), "a.pdf").json["document"]
    work = threading.Thread(target=install.work)
    work.start()
    try:
        meter.wait_open(timeout=60)
        why = client.get(f"documents/{document['id']}/why").json
        assert "waiting for documents@127.0.0.1" in why["sentence"]
        progress = client.get(f"documents/{document['id']}").json["progress"]
        assert progress["unit"] == "pages read by document-ai"
    finally:
        meter.release()
        work.join()


def test_a_service_that_cannot_be_reached_is_named(install, meter):
    """By the document and its story, while it is tried again; not by a document that does not need it."""
    client = install.client
    document = client.upload("collections/shelf/documents", books.plain(2), "a.pdf").json["document"]
    other = client.text("The ferry leaves at noon.")
    meter.close()
    work = threading.Thread(target=install.work)
    work.start()
    try:
        until(lambda: client.get(f"documents/{document['id']}").json["waiting"], 60, "it says nothing")
        waiting = client.get(f"documents/{document['id']}").json["waiting"]
        assert "document service documents@127.0.0.1" in waiting["sentence"]
        assert client.get(f"documents/{other['id']}").json["waiting"] is None
        why = client.get(f"documents/{document['id']}/why").json
        assert why["sentence"].startswith("Waiting for the document service documents@")
    finally:
        install.worker.engine.drain()
        work.join()


@pytest.mark.g5
def test_a_worker_killed_with_the_answer_in_its_hands_is_charged_once(install, meter, tmp_path):
    """Another process sends the same bytes under the same key, gets the same answer, and publishes it."""
    client = install.client
    document = client.upload("collections/shelf/documents", books.plain(2), "a.pdf").json["document"]
    service = f'wire = "documents"\nbase_url = "{meter.base_url}"\nkey_retention = 3600\n'
    (tmp_path / "service.toml").write_text(f"[providers.document-ai]\n{service}")
    own = {"CONFIG": tmp_path / "service.toml", "PYTHON_PATH": tmp_path, "PARSERS": ",".join(PARSERS)}
    own |= {"DATA_DIR": install.settings.data_dir, "DATABASE_URL": install.settings.database}
    environment = os.environ | {f"HOLDFAST_{name}": str(value) for name, value in own.items()}
    command = [sys.executable, "-c", DOOMED, "send.answered"]
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL
    assert client.get(f"documents/{document['id']}").json["published_generation"] in {None, 0}
    expired = update(tasks).where(tasks.c.state == "running").values(lease_until=1.0)
    install.worker.db.write("by_hand", lambda tx: tx.execute(expired))
    install.worker.engine.sweep()
    install.work()
    assert client.get(f"documents/{document['id']}").json["index_status"] == "success"
    totals = meter.totals()
    assert (totals.charges, totals.excess, totals.replays, totals.exchanges) == (1, 0, 1, 2)


@pytest.mark.parametrize(
    ("table", "wrong"),
    [
        ({"wire": "documents", "api_key": "k"}, "base_url is required"),
        ({"wire": "documents", "base_url": "http://x/v1", "parameters": {}}, "are for wire = openai"),
        ({"base_url": "http://x/v1", "prices": {"m": {"page": 1}}}, "prices by page are for wire"),
        ({"base_url": "http://x/v1", "prices": {"m": {"output": 1}}}, "set `input`"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(table, wrong):
    """Before anything starts."""
    with pytest.raises(ValueError, match=wrong):
        settings.Settings(providers={"odd": table})
