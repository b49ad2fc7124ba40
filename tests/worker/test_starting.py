"""What keeps a worker from starting: one line that says what to do, a code for scripts, and no traceback."""

import os
import socket
import subprocess
from contextlib import closing
from urllib.parse import urlsplit

import psycopg
import pytest

from holdfast.chaos.waiting import until
from holdfast.cli import worker_command
from holdfast.core.errors import StoreUnavailableError
from holdfast.core.states import Status
from holdfast.worker import preflight, run
from tests.worker.install import KINDS

USAGE, NOT_READY = 2, 4


def with_password(url, password):
    parts = urlsplit(url)
    user = parts.username or ""
    return parts._replace(netloc=f"{user}:{password}@{parts.hostname}:{parts.port}").geturl()


def only_line(told):
    """The complaint, which is all that was said."""
    code, out, err = told
    lines = [line for line in (out + err).splitlines() if line.strip()]
    assert len(lines) == 1, lines
    assert "Traceback" not in lines[0]
    return code, lines[0]


@pytest.fixture
def start(holdfast, install, monkeypatch):
    """`start("--lanes", "x", kinds=…)`: a worker that cannot begin, in this process."""
    monkeypatch.setattr(run, "_consume", lambda *_: pytest.fail("it would have begun"))
    monkeypatch.setattr(worker_command.logs, "set_up", lambda _: None)  # it would outlive the test

    def call(*words, **changes):
        values = {"data_dir": install.data_dir, "database_url": install.database_url, "kinds": KINDS}
        return only_line(holdfast("worker", *words, **values | changes))

    return call


@pytest.mark.parametrize("service", ["redis", "rabbitmq"])
def test_a_wrong_password_of_the_broker_is_told_at_once(start, require, service):
    """Time does not mend it: exit code 4, and neither password is shown."""
    url = require(service)
    code, line = start(broker_url=with_password(url, "wr0ng"))
    assert code == NOT_READY
    assert "[broker_refused]" in line
    assert "check user, password and path in HOLDFAST_BROKER_URL" in line
    assert "wr0ng" not in line
    assert urlsplit(url).password not in line


def test_a_virtual_host_that_is_not_there_is_told_at_once(start, require):
    """It is as final as a wrong password."""
    code, line = start(broker_url=f"{require('rabbitmq').rstrip('/')}/nowhere")
    assert (code, "not found" in line, "[broker_refused]" in line) == (NOT_READY, True, True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda url: with_password(url, "wr0ng"), "password authentication failed"),
        (lambda url: urlsplit(url)._replace(path="/nowhere_at_all").geturl(), "does not exist"),
        (lambda url: f"{url}?sslmode=require", "does not support SSL"),
    ],
    ids=["password", "database", "tls"],
)
def test_a_database_that_refuses_is_not_waited_for(start, require, change, said):
    """Wrong password, no such database, no TLS: exit code 4 at once, with the server's own word."""
    code, line = start(database_url=change(require("postgresql")))
    assert code == NOT_READY
    assert said in line
    assert "DATABASE_URL" in line
    assert "wr0ng" not in line


def test_tls_that_the_broker_does_not_speak_is_told_at_once(start, require):
    """RabbitMQ answers in plain words; the line says which address would do."""
    code, line = start(broker_url=require("rabbitmq").replace("amqp://", "amqps://"))
    assert code == NOT_READY
    assert "does not speak TLS on this port" in line
    assert "use amqp://" in line


def test_a_host_called_auth_is_no_refusal():
    """What a driver says of a host that is down contains its name; only whole phrases count as refusals."""
    down = 'connection to server at "password-auth-role.db" (10.0.0.1), port 5432 failed: Connection refused'
    assert not preflight._REFUSALS.search(down)
    assert preflight._REFUSALS.search('FATAL:  role "holdfast" does not exist')


def test_a_silent_database_is_given_up_after_a_while(install):
    """Waiting for it ends with an error that says what to check."""
    settings = install.settings(database_url="postgresql://u:p@127.0.0.1:9/db")
    with pytest.raises(StoreUnavailableError) as given_up:
        preflight.waited_for_database(settings, patience=0.6)
    assert "check that it runs" in given_up.value.message


def test_a_port_in_use_is_told(start):
    """The line names the setting to change."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        code, line = start("--health-port", str(taken.getsockname()[1]))
    assert code == NOT_READY
    assert "set HOLDFAST_HEALTH_PORT to a free port" in line


def test_a_data_folder_that_cannot_be_used_is_told(start, tmp_path):
    """A file stands where the folder should be."""
    (tmp_path / "file").write_text("")
    code, line = start(data_dir=tmp_path / "file" / "data")
    assert code == NOT_READY
    assert "set HOLDFAST_DATA_DIR to a writable folder" in line


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"brokr_url": "redis://h"},
            "HOLDFAST_BROKR_URL is not a setting; the closest is HOLDFAST_BROKER_URL",
        ),
        ({"broker_url": "kafka://h"}, "should start with filesystem://"),
        ({"broker_url": "redis://h:notaport"}, "is not a valid URL"),
        ({"worker_lanes": "express"}, "should be one or more of"),
        ({"kinds": "no.such.module:KINDS"}, "cannot be imported (No module named"),
        ({"kinds": "tests.worker.kinds:NO_SUCH"}, "cannot be imported (module"),
        ({"kinds": "tests.worker.kinds"}, "should be like module:name"),
        ({"kinds": ":"}, "should be like module:name"),
        ({"kinds": "tests.worker.kinds:NOT_A_KIND"}, "which is no Kind"),
        ({"kinds": "tests.worker.kinds:TWICE"}, "is registered twice"),
        ({"kinds": "tests.worker.kinds:broken"}, "ZeroDivisionError: a mistake of the user, in"),
    ],
)
def test_a_setting_that_makes_no_sense_is_told(start, changes, said):
    """Exit code 2, for starting it again would not help."""
    code, line = start(**changes)
    assert code == USAGE
    assert said in line


@pytest.mark.parametrize(
    "words",
    [
        ("--lanes", "express"),
        ("--lanes", ","),
        ("--lanes", "bulk,express"),
        ("--autoscale", "many"),
        ("--autoscale", "0"),
        ("--autoscale", "1,2"),
        ("--autoscale", "2,0"),
        ("--autoscale", "-3,1"),
        ("--autoscale", "9999,1"),
    ],
)
def test_a_word_that_makes_no_sense_is_told(start, words):
    """Exit code 2, and the line says what would do."""
    code, line = start(*words)
    assert code == USAGE
    assert "choose from" in line or "should look like 8,2" in line


def test_a_database_without_tables_is_told(start, tmp_path):
    """The line says which command makes them; the worker makes no empty file."""
    missing = tmp_path / "new" / "holdfast.db"
    code, line = start(database_url=f"sqlite:///{missing}")
    assert code == NOT_READY
    assert "run: holdfast migrate" in line
    assert not missing.exists()


@pytest.mark.g4
def test_a_broker_that_is_not_there_yet_is_waited_for(install, redis_broker):
    """Silent TLS, a wrong host: the worker stays up and says so, and what is accepted meanwhile waits."""
    worker = install.start("worker", "-c", "1", broker_url="redis://:s3cret@no-such-host.invalid:6379/0")
    worker.says("the broker redis://no-such-host.invalid:6379/0 does not answer yet .*requests are accepted")
    worker.says("does not answer .*retrying every few seconds")
    until(lambda: worker.health("/healthz")[0] == 200, 10, "it is not alive")
    status, output = worker.health("/readyz")
    assert (status, output["broker"], "the broker is not connected" in output["problems"]) == (
        503,
        False,
        True,
    )
    install.broker_url = redis_broker.url
    assert install.run(install.ask("nap")).status is Status.QUEUED
    worker.tell()
    code, seconds = worker.ended(30)
    assert (code, seconds < 20) == (0, True)  # it did not wait for its drain of 25 s to be over
    assert "s3cret" not in worker.said()
    assert "Traceback" not in worker.said()


@pytest.mark.g4
@pytest.mark.postgresql
def test_a_database_that_is_not_there_yet_is_waited_for(on_postgresql, require):
    """The worker says so once, waits, and begins when it is back."""
    name = urlsplit(on_postgresql.database_url).path[1:]
    with psycopg.connect(require("postgresql"), autocommit=True) as server:
        server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        try:
            worker = on_postgresql.start("worker", "-c", "1")
            worker.says("the database does not answer .*not currently accepting connections.*retrying")
        finally:
            server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    worker.ready()
    requested = on_postgresql.ask("nap")
    assert on_postgresql.done(requested).status is Status.SUCCESS
    assert worker.said().count("not currently accepting") <= 2


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 4 MB, where root may have one."""
    folder = tmp_path / "small"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip(f"NO SMALL DISK: mounting a tmpfs needs root ({result.stderr.strip()})")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.g4
def test_a_full_disk_is_told_and_survived(install, small_disk):
    """Nothing can be written: commands say so, and a worker goes on working as soon as there is room."""
    changes = {"data_dir": str(small_disk), "database_url": f"sqlite:///{small_disk}/holdfast.db"}
    install.database_url, install.broker_url = changes["database_url"], f"filesystem://{small_disk}/broker"
    assert install.command("migrate", **changes).returncode == 0
    requested = install.ask("nap", wakes=False)
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as out:
        for size in (65_536, 4096, 512, 1):
            while True:
                try:
                    out.write(b"x" * size)
                except OSError:
                    break
    refused = install.command("migrate", **changes | {"database_url": f"sqlite:///{small_disk}/other.db"})
    assert (refused.returncode, "Traceback" in refused.stderr) == (NOT_READY, False)
    worker = install.start("worker", "-c", "1", **changes)
    worker.says(r"full|No space|disk I/O")
    assert worker.poll() is None
    os.truncate(filler, 0)
    assert install.done(requested).status is Status.SUCCESS
    assert "Traceback" not in worker.said()


def test_a_read_only_data_folder_is_told(install, small_disk):
    """The database may be elsewhere, but the embedded broker needs a folder that it can write to."""
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    output = install.command(
        "worker", data_dir=str(small_disk), broker_url=f"filesystem://{small_disk}/broker"
    )
    code, line = only_line((output.returncode, output.stdout, output.stderr))
    assert code == NOT_READY
    assert "Read-only file system" in line
    assert "set HOLDFAST_DATA_DIR to a writable folder" in line


def test_a_process_in_another_folder_does_not_start(install, tmp_path):
    """Exit code 2 and one line that names the settings, instead of a failure for every document."""
    assert install.command("sweep", "--once").returncode == 0
    for words in (["worker"], ["api", "--port", "0"], ["sweep", "--once"], ["up"], ["index", "."]):
        done = install.command(*words, data_dir=str(tmp_path / "elsewhere"))
        said = done.stdout + done.stderr
        assert done.returncode == 2, (words, said)
        assert "HOLDFAST_DATABASE_URL, HOLDFAST_BROKER_URL and HOLDFAST_DATA_DIR" in said
        assert "[other_blobs]" in said
    assert install.command("status", data_dir=str(tmp_path / "elsewhere")).returncode == 0
