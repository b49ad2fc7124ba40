"""A provider that cannot be reached is told of at once, by every face, and no longer once it answers."""

import contextlib
import os
import socket
import subprocess
import threading
import time

import pytest
from sqlalchemy import select

from holdfast import settings
from holdfast.chaos.waiting import until
from holdfast.chaos.worker_processes import PROGRAM
from holdfast.store.base.schema import orders
from holdfast.store.features import open_database
from holdfast.store.library import documents
from holdfast.store.money import provider_troubles
from holdfast.store.views import reads
from holdfast.testing.meter import Meter
from tests.api.install import ApiInstall

SOON = 5.0


def closed_port():
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture
def wrong(installed, monkeypatch):
    """An installation whose embedding provider is at a port where nobody listens."""
    port = closed_port()
    monkeypatch.setenv("HOLDFAST_EMBEDDING_BASE_URL", f"http://127.0.0.1:{port}/v1")
    return port


@pytest.fixture
def office(wrong):
    database = open_database(settings.load().database_url.get_secret_value())
    yield database
    database.close()


def test_index_says_who_refuses(wrong, office, tmp_path, holdfast):
    """A real worker meets a closed port: the command, `status` and `why` name provider, reason and tries."""
    (tmp_path / "alpha.txt").write_text("Alpha begins the alphabet.")
    folder = tmp_path / "told"
    words = [str(PROGRAM), "index", str(tmp_path / "alpha.txt")]
    with folder.open("wb") as out, subprocess.Popen(words, stdout=out, stderr=out, env=os.environ) as started:
        try:
            refused = f"openai@127.0.0.1:{wrong}: connection refused"
            until(lambda: refused in folder.read_text(), 90, "nothing was said")
            (document,) = documents.page(office, "default", "default")
            run = reads.run(office, document.run_id).run
            (trouble,) = provider_troubles.all_of(office)
            assert reads.moment(office) - trouble.since - run.started_at < SOON
            assert refused in holdfast("status")[1]
            assert refused in holdfast("why", f"document:{document.id}")[1].replace("\n", " ")
        finally:
            started.terminate()


@pytest.fixture
def install(database_url, tmp_path):
    address = f"http://127.0.0.1:{closed_port()}/v1"
    wrong = {"embedding_provider": "openai", "embedding_base_url": address, "embedding_api_key": "key"}
    installation = ApiInstall(database_url, tmp_path / "data", **wrong)
    yield installation
    installation.worker.engine.drain()
    installation.close()


def test_the_api_says_what_a_document_waits_for(install):
    """`/status`, the document and its story tell of it within seconds of the first try."""
    response = install.client.text("Alpha begins the alphabet.")
    thread = threading.Thread(target=install.work)
    began = time.monotonic()
    thread.start()
    try:
        until(lambda: install.client.get("status").json["providers"], SOON, "the status says nothing")
        waiting = install.client.get(f"documents/{response['id']}").json["waiting"]
        assert time.monotonic() - began < SOON
        assert waiting["reason"] == "provider"
        assert "connection refused, 1 attempt" in waiting["sentence"]
        why = install.client.get(f"documents/{response['id']}/why").json
        assert why["sentence"].startswith("Waiting for the embedding provider openai@127.0.0.1")
    finally:
        install.worker.engine.drain()
        thread.join()


def test_a_provider_that_answers_again_is_told_of_no_more(database_url, tmp_path):
    """The first answer clears it, whoever had written it down."""
    with Meter() as meter:
        right = {"embedding_provider": "openai", "embedding_base_url": meter.base_url}
        install = ApiInstall(database_url, tmp_path / "data", embedding_api_key="key", **right)
        try:
            (name,) = (each for each in install.runtime.providers if each.startswith("openai@"))
            note = {"reason": "connect: [Errno 111] Connection refused", "status": None, "tries": 3}
            provider_troubles.note(install.runtime.db, name, "embeddings", **note)
            assert install.client.get("status").json["providers"][0]["tries"] == 3
            install.client.indexed("Alpha begins the alphabet.")
            assert install.client.get("status").json["providers"] == []
        finally:
            install.close()


@pytest.fixture
def swallowing():
    """A port whose backlog is full: connections are neither accepted nor refused."""
    with socket.socket() as listener, contextlib.ExitStack() as held:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            one = held.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def test_a_host_that_swallows_connections_is_told_of_while_it_is_waited_for(
    database_url, tmp_path, swallowing
):
    """Within seconds of the order, long before the attempt to connect is given up."""
    there = {"embedding_provider": "openai", "embedding_base_url": f"http://127.0.0.1:{swallowing}/v1"}
    install = ApiInstall(database_url, tmp_path / "data", embedding_api_key="key", **there)
    response = install.client.text("Alpha begins the alphabet.")
    thread = threading.Thread(target=install.work)
    thread.start()
    try:
        until(lambda: install.client.get("status").json["providers"], 60, "the status says nothing")
        db = install.runtime.db
        (trouble,) = provider_troubles.all_of(db)
        (order,) = db.look(select(orders.c.created_at))
        assert reads.moment(db) - trouble.since - order.created_at < SOON
        assert trouble.what == f"waiting for 127.0.0.1:{swallowing} to accept a connection"
        waiting = install.client.get(f"documents/{response['id']}").json["waiting"]
        assert (waiting["reason"], trouble.what in waiting["sentence"]) == ("provider", True)
    finally:
        install.worker.engine.drain()
        thread.join()
        install.close()
