"""A webhook is tried out: the test goes the way of every delivery, and what came back is shown."""

from holdfast.kinds import webhook

URL = "collections/shelf/actions"


def hook(client, url):
    client.collection("shelf")
    body = client.post(URL, {"sort": "webhook", "name": "mine", "params": {"url": url}}).json
    return body["action"]["id"], body["secret"]


def test_a_test_is_signed_and_its_answer_is_shown(install, client, receiver):
    """It says that it is a test, and is no follow-up of any document."""
    number, secret = hook(client, receiver.url)
    said = client.post(f"{URL}/{number}/test")
    assert (said.status, said.json["event"], said.json["state"]) == (202, "webhook.test", "pending")
    install.work()
    (came,) = receiver.came
    at = int(came.headers["holdfast-signature"].split(",")[0].removeprefix("t="))
    assert came.headers["holdfast-signature"] == webhook.signature(secret, came.body, at)
    assert came.event["action"] == {"id": number, "name": "mine"}
    assert came.event["collection"] == "shelf"
    shown = client.get(f"deliveries/{said.json['id']}").json
    assert (shown["state"], shown["last_status"], shown["tries"]) == ("delivered", 200, 1)
    assert client.get(URL).json["actions"][0]["fired"] == 0


def test_a_test_that_did_not_land_is_tried_at_once_by_the_next_click(install, client, receiver):
    """The answer of the receiver is shown meanwhile; no second test piles up behind it."""
    number, _ = hook(client, receiver.url)
    receiver.script = [500]
    first = client.post(f"{URL}/{number}/test").json["id"]
    install.work()
    shown = client.get(f"deliveries/{first}").json
    assert (shown["state"], shown["last_status"]) == ("pending", 500)
    assert client.post(f"{URL}/{number}/test").json["id"] == first
    install.work()
    assert receiver.ids() == [first, first]
    assert client.get(f"deliveries/{first}").json["state"] == "delivered"
    assert client.post(f"{URL}/{number}/test").json["id"] != first


def test_only_webhooks_of_ones_own_are_tried_out(install, client, receiver):
    """Not another sort, not a removed one, not another tenant's, and not with a key that only reads."""
    number, _ = hook(client, receiver.url)
    prompt = client.post(URL, {"sort": "prompt", "params": {"instruction": "Sum it up."}}).json["action"][
        "id"
    ]
    assert client.post(f"{URL}/{prompt}/test").code == "bad_params"
    for other in ("0", "x", "9" * 30):
        assert client.post(f"{URL}/{other}/test").code == "unknown_action"
    assert client.call("DELETE", f"{URL}/{number}").status == 200
    assert client.post(f"{URL}/{number}/test").code == "unknown_action"
    mine, _ = hook(client, receiver.url)
    assert install.key("default", "read").post(f"{URL}/{mine}/test").status == 403
    assert install.key("ben", "read", "write").post(f"{URL}/{mine}/test").status == 404
    install.work()
    assert receiver.came == []


def test_removing_a_webhook_ends_its_test(install, client, receiver):
    """What is on its way is cancelled with the action."""
    number, _ = hook(client, receiver.url)
    test = client.post(f"{URL}/{number}/test").json["id"]
    client.call("DELETE", f"{URL}/{number}")
    install.work()
    assert receiver.came == []
    assert client.get(f"deliveries/{test}").json["state"] == "cancelled"
