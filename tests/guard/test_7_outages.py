"""What happens to messages when servers do not answer, or drop them."""

import threading

import pytest
from celery.exceptions import Reject, TaskRevokedError
from sqlalchemy import text

from holdfast.chaos.brokers import RabbitBroker
from tests.guard.application import GuardedApp


@pytest.fixture
def on_rabbitmq(sqlite_url, require, services):
    """An application on RabbitMQ."""
    broker = RabbitBroker(require("rabbitmq"), services["rabbitmq"]["management"], own=False)
    application = GuardedApp(sqlite_url, broker=broker.url)
    yield application
    application.close()
    application.celery.close()
    broker.close()


def test_rabbitmq_delivers_the_report_of_a_task_that_has_expired(on_rabbitmq):
    """It drops messages that have expired; the one that only reports the end of the run does not expire."""

    @on_rabbitmq.guard.task("report:{n}")
    def build(n): ...

    requested = build.request_async((7,), expires=0.01)
    on_rabbitmq.flush()
    threading.Event().wait(0.05)
    db = on_rabbitmq.guard.runtime().db
    db.write("test", lambda tx: tx.execute(text("UPDATE holdfast_tasks SET look_again_at = 0")))
    on_rabbitmq.sweep()  # cancelled as expired
    on_rabbitmq.sweep()  # and reported
    on_rabbitmq.execute(on_rabbitmq.next_message())
    with pytest.raises(TaskRevokedError):
        requested.result.get(timeout=10, interval=0.02)


def test_without_database_and_broker_a_message_stays_where_it_is():
    """The delivery is rejected so that the broker has it again; nothing can be stored or published."""
    down = GuardedApp("postgresql://nobody@127.0.0.1:1/none", broker="redis://127.0.0.1:1/0")
    down.celery.conf.update(task_publish_retry=False)

    @down.guard.task("report:{n}")
    def build(n): ...

    build.push_request(id="a", args=(7,), kwargs={}, called_directly=False, is_eager=False, headers={})
    with pytest.raises(Reject, match="neither the database nor the broker answers") as rejected:
        build(7)
    assert rejected.value.requeue
    build.pop_request()
    down.close()
