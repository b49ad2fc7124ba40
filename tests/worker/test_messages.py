"""Messages that nobody here has sent: logged in one line, rejected, counted, and work goes on."""

import json
import pickle
import re
import uuid

import pytest

from holdfast.chaos.waiting import until
from holdfast.core.states import Status
from holdfast.store.protocol import workers
from holdfast.worker import brokers, queues
from holdfast.worker.brokers import Tuning
from tests.worker.install import WorkerInstall


def celery_headers(task, **changes):
    ident = str(uuid.uuid4())
    return {"lang": "py", "task": task, "id": ident, "root_id": ident, "argsrepr": "", **changes}


EMBED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


def for_task(task, *arguments, **named):
    return json.dumps([arguments, named, EMBED]).encode(), "application/json", celery_headers(task)


STRANGE = {
    "the task of another app": (for_task("their.app.task", 1), r"it asks for 'their\.app\.task'"),
    "no Celery message": ((b'{"hello": "world"}', "application/json", {}), "it is not a Celery message"),
    "not JSON": (
        (b"{not json", "application/json", celery_headers(queues.WAKE)),
        r"it cannot be read|it is not a Celery message",
    ),
    "pickle": (
        (pickle.dumps([("bulk",), {}, EMBED]), "application/x-python-serialize", celery_headers(queues.WAKE)),
        r"it cannot be read \(.*untrusted content of type pickle",
    ),
    "no arguments": (for_task(queues.WAKE), r"its arguments are invalid \(holdfast\.wake with \(\)"),
    "an unknown lane": (for_task(queues.WAKE, "express"), r"with \('express',\)"),
    "no number": (for_task(queues.DELIVER, "seven"), r"holdfast\.deliver with \('seven',\)"),
}


def publish(url, body, content_type, headers):
    profile = brokers.broker(url, Tuning())
    profile.prepare()
    with profile.connection() as connection, connection.Producer() as producer:
        encoding = "binary" if b"\x80" in body else "utf-8"
        producer.publish(
            body if encoding == "binary" else body.decode(),
            exchange=queues.EXCHANGE.name,
            routing_key="bulk",
            declare=[queues.of_lane("bulk")],
            content_type=content_type,
            content_encoding=encoding,
            headers=headers,
        )


def dead_letters(install):
    with brokers.broker(install.broker_url, Tuning()).connection() as connection:
        return connection.default_channel.queue_declare("holdfast.dead", passive=True).message_count


@pytest.mark.g4
def test_strange_messages_are_set_aside_and_work_goes_on(everywhere):
    """One line each that says what is wrong, one count each in the metrics, no traceback, no lost task."""
    worker = everywhere.worker("-c", "1")
    for (body, content_type, headers), pattern in STRANGE.values():
        publish(everywhere.broker_url, body, content_type, headers)
        worker.says(f"rejected a message .*: (.*{pattern})", 20)
    assert len(re.findall(r"warning: .*rejected a message", worker.said())) == len(STRANGE)
    assert "Traceback" not in worker.said()
    requested = everywhere.ask("nap")
    assert everywhere.done(requested).status is Status.SUCCESS
    counted = rf"holdfast_worker_strange_messages_total {len(STRANGE)}\.0"
    until(lambda: re.search(counted, worker.health("/metrics")[1]), 5, "they are not counted")
    assert worker.health("/healthz")[0] == 200
    worker.tell()
    assert worker.ended(10)[0] == 0
    output = workers.known(everywhere.db)[0]
    assert (output.state, output.counts["strange_messages"]) == ("stopped", len(STRANGE))
    if everywhere.broker_url.startswith("amqp"):
        until(lambda: dead_letters(everywhere) == len(STRANGE), 5, "RabbitMQ does not keep them for a person")


@pytest.mark.g4
def test_a_message_of_another_release_with_more_arguments_still_wakes(install):
    """A wake-up carries nothing that could go stale; what is added to it is ignored."""
    worker = install.worker("-c", "1", sweep_interval="600")
    requested = install.ask("nap", wakes=False)
    publish(install.broker_url, *for_task(queues.WAKE, "bulk", {"since": 1}, colour="red"))
    assert install.done(requested, 10).status is Status.SUCCESS
    assert "rejected a message" not in worker.said()


def test_a_queue_of_another_shape_does_not_become_a_crash_loop(rabbit_broker, sqlite_url, tmp_path):
    """A classic queue has the name of a lane: the worker says so, tries now and then, and recovers."""
    rabbit_broker.flush()
    name = queues.name("bulk")
    path = f"/api/queues/{rabbit_broker.vhost}/{name}"
    rabbit_broker._ask("PUT", path, {"durable": True, "arguments": {"x-queue-type": "classic"}})
    install = WorkerInstall(tmp_path, sqlite_url, rabbit_broker.url)
    try:
        worker = install.start("worker", "-c", "1")
        worker.says("PRECONDITION_FAILED(?s:.)*delete that queue(?s:.)*PRECONDITION_FAILED")
        rabbit_broker.flush()
        worker.ready()
        requested = install.ask("nap")
        assert install.done(requested).status is Status.SUCCESS
        assert "Traceback" not in worker.said()
        assert worker.said().count("PRECONDITION_FAILED") < 6
    finally:
        install.clear()
