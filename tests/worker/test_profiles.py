"""How a worker and a sender talk to each broker."""

import ast
import logging
import ssl
from pathlib import Path

import pytest
from kombu import Connection

from holdfast.chaos.waiting import until
from holdfast.core.errors import BadRequestError
from holdfast.core.states import LANE_RANK
from holdfast.settings import Settings
from holdfast.worker import app as celery_app
from holdfast.worker import brokers, consumer, preflight, queues, sender
from holdfast.worker.brokers import Tuning

REDIS = "redis://:s3cret@127.0.0.1:6379/3"
RABBITMQ = "amqp://holdfast:s3cret@127.0.0.1:5672/holdfast"


def conf(url, **changes):
    return celery_app.conf([brokers.broker(url, Tuning())], **changes)


@pytest.mark.parametrize("url", [REDIS, RABBITMQ, "filesystem:///tmp/nowhere"])
def test_every_broker_is_consumed_late_one_at_a_time_and_in_json(url):
    """Late acks, reject on worker lost, prefetch 1, JSON only, no results, retry for ever."""
    output = conf(url)
    assert output["task_acks_late"] is True
    assert output["task_reject_on_worker_lost"] is True
    assert output["worker_prefetch_multiplier"] == 1
    assert output["accept_content"] == ["json"]
    assert output["task_serializer"] == "json"
    assert output["result_backend"] is None
    assert output["task_ignore_result"] is True
    assert output["broker_connection_retry_on_startup"] is True
    assert output["broker_connection_max_retries"] is None
    assert output["worker_cancel_long_running_tasks_on_connection_loss"] is False


def test_the_app_has_no_result_backend_and_takes_no_other_content():
    """What the settings say is what the app does: its backend keeps nothing, pickle is refused."""
    app = celery_app.build([brokers.broker(REDIS, Tuning())])
    assert type(app.backend).__name__ == "DisabledBackend"
    assert set(app.conf.accept_content) == {"json"}
    assert {name for name in app.tasks if not name.startswith("celery.")} == {queues.WAKE, queues.DELIVER}


@pytest.mark.parametrize("events", [False, True])
def test_one_setting_turns_events_and_remote_control_on(events):
    """Flower needs both; without it neither costs anything."""
    output = conf(REDIS, events=events)
    names = ("worker_send_task_events", "task_send_sent_event", "worker_enable_remote_control")
    assert [output[name] for name in names] == [events] * 3


def test_redis_is_given_time_to_answer_and_never_waits_for_ever():
    """Visibility 1 h, timeouts and health check 30 s, retry on timeout, keepalive, restore every 2 s."""
    assert brokers.broker(REDIS, Tuning()).consuming == {
        "visibility_timeout": 3600.0,
        "unacked_restore_interval": 2.0,
        "unacked_restore_throttle": 1,
        "retry_on_timeout": True,
        "socket_keepalive": True,
        "health_check_interval": 30,
        "socket_connect_timeout": 30.0,
        "socket_timeout": 30.0,
    }


def test_redis_settings_reach_the_client(redis_broker):
    """A consumer's channel and the sockets that it opens have them; a misspelt option would be ignored."""
    profile = brokers.broker(redis_broker.url, Tuning())
    with Connection(profile.url, transport_options=dict(profile.consuming)) as connection:
        channel = connection.default_channel
        assert channel.visibility_timeout == 3600
        assert channel.unacked_restore_interval == 2.0
        assert channel.unacked_restore_throttle == 1
        output = channel.client.connection_pool.connection_kwargs
        assert output["socket_connect_timeout"] == 30
        assert output["socket_timeout"] == 30
        assert output["socket_keepalive"] is True
        assert output["health_check_interval"] == 30
        assert output["retry_on_timeout"] is True


def test_the_embedded_broker_is_polled_every_50_ms(tmp_path):
    """Its folders are made, and its transport looks twenty times a second."""
    profile = brokers.broker(f"filesystem://{tmp_path}/broker", Tuning())
    profile.prepare()
    assert profile.consuming["polling_interval"] == 0.05
    with Connection(profile.url, transport_options=dict(profile.consuming)) as connection:
        assert connection.transport.polling_interval == 0.05
    assert sorted(path.name for path in (tmp_path / "broker").iterdir()) == ["control", "queue"]


def test_rabbitmq_gets_confirms_and_heartbeats(rabbit_broker):
    """Publishing waits for the broker's word, and both sides agree on a heartbeat of 30 s."""
    profile = brokers.broker(rabbit_broker.url, Tuning())
    assert profile.consuming["confirm_publish"] is True
    assert conf(rabbit_broker.url)["broker_heartbeat"] == 30
    with profile.connection() as connection:
        connection.connect()
        assert connection.get_heartbeat_interval() == 30
        assert connection.connection.confirm_publish is True


def test_rabbitmq_has_quorum_queues_and_keeps_dead_letters(rabbit_broker):
    """The broker itself tells of a quorum queue per lane, bounded, whose rejected messages are kept."""
    profile = brokers.broker(rabbit_broker.url, Tuning())
    with profile.connection() as connection:
        queues.declare_dead_letters(connection)
        for lane in LANE_RANK:
            queues.of_lane(lane)(connection.default_channel).declare()
        with connection.Producer() as producer:
            producer.publish({}, exchange=queues.EXCHANGE.name, routing_key="bulk")
        message = queues.of_lane("bulk")(connection.default_channel).get()
        message.reject()
    output = {
        queue["name"]: queue for queue in rabbit_broker._ask("GET", f"/api/queues/{rabbit_broker.vhost}")
    }
    assert set(output) == {*(queues.name(lane) for lane in LANE_RANK), "holdfast.dead"}
    assert {queue["type"] for queue in output.values()} == {"quorum"}
    assert output["holdfast.bulk"]["arguments"]["x-dead-letter-exchange"] == "holdfast.dead"
    assert output["holdfast.bulk"]["arguments"]["x-overflow"] == "reject-publish"
    with profile.connection() as connection:
        result = lambda: queues.dead_letters()(connection.default_channel).get(no_ack=True)
        assert until(result, 10, "the dead letter does not arrive").payload == {}


def test_celerys_queues_for_countdowns_are_not_declared():
    """Countdowns are `due_at` in the database; the step that declares 28 queues on RabbitMQ is gone."""
    steps = consumer.Consumer.Blueprint.default_steps
    assert not [step for step in steps if "delayed" in step.lower()]
    assert len(steps) > 5


def test_tls_is_checked_against_the_given_certificates(tmp_path):
    """`rediss` and `amqps` verify the server, with the file of the settings if there is one."""
    ca = tmp_path / "ca.pem"
    for url, prefix in ((REDIS.replace("redis", "rediss"), "ssl_"), (RABBITMQ.replace("amqp", "amqps"), "")):
        tls = brokers.broker(url, Tuning(ca_file=ca)).tls
        assert tls[f"{prefix}cert_reqs"] is ssl.CERT_REQUIRED
        assert tls[f"{prefix}ca_certs"] == str(ca)
    assert brokers.broker(REDIS, Tuning()).tls is None


def test_a_worker_does_not_go_over_to_a_broker_with_other_tls(tmp_path, monkeypatch):
    """Celery has one TLS setting for all brokers, so only those of the same nature are consumed together."""
    monkeypatch.setattr(preflight, "_try", lambda own: None)

    def consumed(own, *others):
        settings = Settings(broker_url=own, broker_urls=",".join((own, *others)), data_dir=tmp_path)
        return [str(each) for each in preflight.consumed_brokers(settings)]

    embedded = f"filesystem://{tmp_path}/broker"
    redis, rabbitmq = REDIS.replace(":s3cret@", ""), RABBITMQ.replace(":s3cret", "")
    assert consumed(REDIS, RABBITMQ, embedded) == [redis, rabbitmq]
    assert consumed(RABBITMQ.replace("amqp", "amqps"), REDIS) == [rabbitmq.replace("amqp", "amqps")]
    assert consumed(embedded, REDIS) == [embedded]


@pytest.mark.parametrize(
    "url", [REDIS, RABBITMQ, "amqps://u:s3cret@h/v", "rediss://u:s3cret@h?password=s3cret"]
)
def test_a_password_is_never_shown(url):
    """Neither str nor repr of a broker, nor its connection, shows it."""
    profile = brokers.broker(url, Tuning())
    assert "s3cret" not in f"{profile} {profile!r} {vars(Settings(broker_url=url))}"
    assert str(profile).startswith(url.partition("://")[0])


@pytest.mark.parametrize(
    "url",
    [
        "redis://:s3#cret@host/0",
        "amqp://host:s3cret",
        "redis://",
        "redis://u:[s3cret@h/0",
        "amqp://u:s3/cret@h",
    ],
)
def test_an_address_that_breaks_apart_is_told_without_its_password(url):
    """Such addresses come from passwords with odd characters; no piece of one is shown."""
    with pytest.raises(BadRequestError) as refused:
        brokers.broker(url, Tuning())
    assert "s3" not in refused.value.message
    assert "%23" in refused.value.message
    assert refused.value.__suppress_context__


def test_the_task_bodies_are_under_ten_lines():
    """They hand over to the engine and do nothing else."""
    tree = ast.parse(Path(celery_app.__file__).read_text())
    bodies = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any("task" in ast.unparse(one) for one in node.decorator_list)
    ]
    assert sorted(node.name for node in bodies) == ["deliver", "wake"]
    for node in bodies:
        assert node.end_lineno - node.body[0].lineno + 1 < 10


def test_a_failed_send_is_told_without_the_password(caplog):
    """The log names the broker as a person may see it."""
    sending = sender.open_sender(Settings(broker_url="redis://:s3cret@127.0.0.1:9/0"))
    with caplog.at_level(logging.DEBUG):
        sending.wake("bulk")
        sending.close()
    assert "redis://127.0.0.1:9/0: a wake-up was not sent" in caplog.text
    assert "s3cret" not in caplog.text
