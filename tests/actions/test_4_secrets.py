"""Secrets of webhooks, when the settings have a key: none that was drawn is in the database."""

import pytest
from sqlalchemy import text

from holdfast.kinds import webhook, webhook_signature
from tests.api.install import ApiInstall

KEY = "k" * 32
URL = "collections/shelf/actions"


@pytest.fixture
def opened(database_url, tmp_path):
    """`opened(key)` is an installation on the one database, whose processes have this key."""
    items = []

    def one(key):
        items.append(ApiInstall(database_url, tmp_path / "data", webhook_private=True, webhook_key=key))
        return items[-1]

    yield one
    for each in items:
        each.close()


def hook(client, receiver, **params):
    """A webhook on the shelf: its number, and the secret that was shown."""
    client.collection("shelf")
    body = client.post(URL, {"sort": "webhook", "params": {"url": receiver.url, **params}}).json
    return body["action"]["id"], body["secret"]


def is_signed(came, secret):
    at = int(came.headers["holdfast-signature"].split(",")[0].removeprefix("t="))
    return came.headers["holdfast-signature"] == webhook.signature(secret, came.body, at)


def contents(install):
    """Every text and every byte that the tables of webhooks hold."""
    with install.runtime.db.engine.connect() as connection:
        tables = ("actions", "deliveries", "runs", "journal", "idempotency")
        return str([connection.execute(text(f"SELECT * FROM holdfast_{name}")).all() for name in tables])


def test_a_secret_that_was_drawn_is_not_in_the_database(opened, receiver):
    """It signs all the same, at a document's end and in a test."""
    install = opened(KEY)
    number, secret = hook(install.client, receiver)
    install.client.post(f"{URL}/{number}/test")
    install.client.text("Some words.")
    install.work()
    assert {came.event["event"] for came in receiver.came} == {"webhook.test", "document.ready"}
    assert all(is_signed(came, secret) for came in receiver.came)
    assert len(secret) == 43
    assert secret not in contents(install)
    assert KEY not in contents(install)


def test_without_its_key_a_delivery_waits_and_says_why(opened, receiver):
    """Not signed with something else: it is tried again, and lands when the key is back."""
    install = opened(KEY)
    number, secret = hook(install.client, receiver)
    event = install.client.post(f"{URL}/{number}/test").json["id"]
    for other in (None, "x" * 32):
        poor = opened(other)
        poor.work()
        shown = poor.client.get(f"deliveries/{event}").json
        assert shown["state"] == "pending"
        assert "WEBHOOK_KEY" in shown["last_error"]
        assert poor.client.post(f"{URL}/{number}/test").json["id"] == event  # at once, not after its pause
    assert receiver.came == []
    install.work()
    (came,) = receiver.came
    assert is_signed(came, secret)


def test_secrets_from_before_and_secrets_that_were_given_sign_as_ever(opened, receiver):
    """The key concerns what is drawn from now on."""
    before, values = hook(opened(None).client, receiver)[1], "a secret of mine, long enough"
    install = opened(KEY)
    hook(install.client, receiver, secret=values)
    install.client.text("Some words.")
    install.work()
    assert len(receiver.came) == 2
    for secret in (before, values):
        assert [is_signed(came, secret) for came in receiver.came].count(True) == 1
    said = install.client.post(
        URL,
        {
            "sort": "webhook",
            "params": {"url": receiver.url, "secret": webhook_signature.stored_form(KEY, "n" * 43)},
        },
    )
    assert said.code == "bad_secret"
