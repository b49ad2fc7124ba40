"""Actions over HTTP: what a collection is told to do with each ready document, and what came of it."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.kinds import webhook
from tests.actions.conftest import ANALYSER

TEXT = "The lighthouse of Amrum was lit in 1875. Its keeper was called Boy Hansen. He kept it for nine years."
SCHEMA = {"type": "object", "properties": {"year": {"type": "integer"}}}
SORTS = {
    "analyse": {"analyser": ANALYSER},
    "prompt": {"instruction": "Say in one sentence what this is about."},
    "agent": {"instruction": "Read the text and say what matters."},
    "extract": {"schema": SCHEMA},
    "qa": {"limit": 2},
}


def added(client, action_type, params=None, to="shelf", **more):
    client.collection(to)
    said = client.post(
        f"collections/{to}/actions",
        {"sort": action_type, "params": SORTS.get(action_type, {}) | (params or {}), **more},
    )
    assert said.status in (200, 201), said.raw
    return said.json


def followed(client, document):
    return client.get(f"documents/{document['id']}/actions").json["follow_ups"]


@pytest.mark.parametrize("action_type", SORTS)
def test_each_sort_of_action_is_done_with_a_document_that_becomes_ready(install, client, action_type):
    """Its result and cost are shown with the document, and counted with the action."""
    action = added(client, action_type, name="mine")["action"]
    document = client.indexed(TEXT)
    (done,) = followed(client, document)
    assert (done["status"], done["sort"], done["name"], done["generation"]) == (
        "success",
        action_type,
        "mine",
        1,
    )
    assert done["error"] is None
    assert done["result"]
    (listed,) = client.get("collections/shelf/actions").json["actions"]
    assert listed == action | {"fired": 1, "done": 1}


def test_an_analyser_sees_the_text_and_its_chunks(small):
    """What it answers is kept as it is."""
    client = small.client
    added(client, "analyse")
    (done,) = followed(client, client.indexed(TEXT))
    assert done["result"] == {
        "analyser": ANALYSER,
        "found": {"characters": len(TEXT), "chunks": 1, "pages": done["result"]["found"]["pages"]},
    }


def test_an_action_is_done_at_once_with_what_is_ready(install, client):
    """And again with each new generation, once."""
    document = client.indexed(TEXT)
    added(client, "analyse")
    install.work()
    client.put(f"documents/{document['id']}/content", {"text": TEXT + " Then he left."})
    install.work()
    result = followed(client, document)
    assert [(each["generation"], each["status"]) for each in result] == [(2, "success"), (1, "success")]


def test_two_clicks_are_one_action(small):
    """The second is told that it is there; documents are followed up once."""
    client = small.client
    first, second = added(client, "analyse"), added(client, "analyse")
    assert first["action"]["id"] == second["action"]["id"]
    client.indexed(TEXT)
    (listed,) = client.get("collections/shelf/actions").json["actions"]
    assert listed["fired"] == 1
    assert added(client, "analyse", name="other")["action"]["id"] != first["action"]["id"]


def test_many_clicks_at_once_are_one_action_and_one_of_them_has_its_secret(install, client, receiver):
    """Whoever made it is shown what was drawn; the others are told that it is there."""
    client.collection()
    body = {"sort": "webhook", "params": {"url": receiver.url}}
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda _: client.post("collections/shelf/actions", body), range(8)))
    assert {each.status for each in said} <= {200, 201}
    assert len({each.json["action"]["id"] for each in said}) == 1
    assert len([each for each in said if each.json["secret"]]) == 1


def test_a_removed_action_is_gone_and_may_be_added_anew(install, client):
    """What waited because of it is cancelled."""
    action = added(client, "analyse")["action"]
    document = client.text(TEXT)
    install.worker.engine.work_off(lanes=["interactive"])
    assert client.call("DELETE", f"collections/shelf/actions/{action['id']}").json["action"]["running"] == 1
    assert client.call("DELETE", f"collections/shelf/actions/{action['id']}").code == "unknown_action"
    install.work()
    assert [each["status"] for each in followed(client, document)] == ["cancelled"]
    assert client.get("collections/shelf/actions").json == {"actions": []}
    added(client, "analyse")
    install.work()
    assert [each["status"] for each in followed(client, document)] == ["cancelled", "success"]


def test_a_collection_takes_its_actions_along_when_it_is_deleted(install, client):
    """One of the same name starts with none."""
    added(client, "analyse")
    client.text(TEXT)
    client.call("DELETE", "collections/shelf")
    client.collection()
    assert client.get("collections/shelf/actions").json == {"actions": []}
    client.indexed(TEXT)
    assert install.worker.engine.work_off() == []


WRONG = [
    ("unknown_action_type", {"sort": "sing"}),
    ("bad_params", {"sort": "prompt"}),
    ("bad_params", {"sort": "prompt", "params": {"instruction": ""}}),
    ("bad_params", {"sort": "prompt", "params": {"instruction": "a\u0000b"}}),
    ("bad_params", {"sort": "prompt", "params": {"instruction": "x" * 20_001}}),
    ("bad_params", {"sort": "prompt", "params": {"instruction": ["a"]}}),
    ("bad_params", {"sort": "prompt", "params": {"instruction": "a", "most_parts": True}}),
    ("bad_params", {"sort": "prompt", "params": {"instruction": "a", "most_parts": 10**30}}),
    ("bad_params", {"sort": "prompt", "params": {"instruction": "a", "shout": 1}}),
    ("bad_params", {"sort": "agent", "params": {"instruction": "a", "most_steps": 1}}),
    ("bad_params", {"sort": "agent", "params": {"instruction": "a", "most_cost": -1}}),
    ("bad_params", {"sort": "agent", "params": {"instruction": "a", "most_cost": "much"}}),
    ("unknown_analyser", {"sort": "analyse", "params": {"analyser": "os:system"}}),
    ("bad_params", {"sort": "analyse", "params": {"analyser": 7}}),
    ("bad_schema", {"sort": "extract", "params": {"schema": {"type": "array"}}}),
    ("bad_params", {"sort": "qa", "params": {"limit": 501}}),
    ("bad_params", {"sort": "qa", "params": {"documents": ["1"]}}),
    ("bad_params", {"sort": "webhook"}),
    ("url_forbidden", {"sort": "webhook", "params": {"url": "ftp://files.example"}}),
    ("url_forbidden", {"sort": "webhook", "params": {"url": "http://me:word@host.example"}}),
    ("bad_params", {"sort": "webhook", "params": {"url": "http://host.example/" + "a" * 2000}}),
    ("bad_secret", {"sort": "webhook", "params": {"url": "http://host.example", "secret": "short"}}),
    ("bad_secret", {"sort": "webhook", "params": {"url": "http://host.example", "secret": 5}}),
    ("bad_name", {"sort": "analyse", "params": {"analyser": ANALYSER}, "name": "a\u0000"}),
]


def test_what_can_never_be_done_is_refused_and_nothing_is_left(small):
    """A clear 400 for each."""
    client = small.client
    client.collection()
    for code, body in WRONG:
        said = client.post("collections/shelf/actions", body)
        assert (said.status, said.code) == (400, code), (body, said.raw)
    assert client.get("collections/shelf/actions").json == {"actions": []}
    assert client.call("DELETE", "collections/shelf/actions/99999999999999999999").status == 404


def test_an_analyser_that_answers_nonsense_fails_its_follow_up_alone(small):
    """The document stays ready; the failure is shown and counted."""
    client = small.client
    added(client, "analyse", {"analyser": "tests.actions.analysers:bad"})
    document = client.indexed(TEXT)
    assert document["ready"]
    (done,) = followed(client, document)
    assert (done["status"], done["error"]["code"]) == ("failed", "bad_result")
    assert client.get("collections/shelf/actions").json["actions"][0]["failed"] == 1


def test_a_webhook_is_told_and_shown_and_its_secret_never_again(install, client, receiver):
    """A secret is drawn and shown once; neither lists nor deliveries have it."""
    created = added(client, "webhook", {"url": receiver.url})
    secret = created["secret"]
    assert len(secret) > 30
    assert added(client, "webhook", {"url": receiver.url})["secret"] is None
    document = client.indexed(TEXT)
    (sent,) = client.get("deliveries").json["deliveries"]
    assert (sent["state"], sent["event"], sent["url"]) == ("delivered", "document.ready", receiver.url)
    assert sent["id"] == receiver.came[0].id
    assert receiver.came[0].event["document"]["id"] == document["id"]
    shown = [client.get(path).raw for path in ("deliveries", "collections/shelf/actions", "events")]
    shown += [client.get(f"documents/{document['id']}/{path}").raw for path in ("actions", "runs", "why")]
    assert all(secret.encode() not in raw for raw in shown)
    assert [each["status"] for each in followed(client, document)] == ["success"]


def test_deliveries_are_listed_by_state_and_page_and_sent_again(install, client, receiver):
    """The newest first; one that failed is sent again by a person."""
    receiver.script = [410]
    added(client, "webhook", {"url": receiver.url, "secret": "a secret of ours, long enough"})
    client.indexed("First.")
    client.indexed("Second.")
    page = client.get("deliveries?limit=1").json
    rest = client.get(f"deliveries?limit=1&cursor={page['next']}").json
    assert [page["deliveries"][0]["state"], rest["deliveries"][0]["state"]] == ["delivered", "failed"]
    (failed,) = client.get("deliveries?state=failed").json["deliveries"]
    assert (failed["error"], failed["last_status"]) == ("webhook_gone", 410)
    assert client.post(f"deliveries/{failed['id']}/resend").status == 202
    assert client.post(f"deliveries/{failed['id']}/resend").code == "delivery_busy"
    install.work()
    assert client.get(f"deliveries/{failed['id']}").json["state"] == "delivered"
    assert client.get("deliveries?state=failed").json["deliveries"] == []
    assert client.post("deliveries/nothing/resend").code == "unknown_delivery"
    assert client.get("deliveries?state=lost").status == 400


def test_one_who_may_only_read_changes_nothing(small, receiver):
    """403 for one's own things, and nothing happens."""
    install, client = small, small.client
    added(client, "webhook", {"url": receiver.url})
    client.indexed(TEXT)
    (sent,) = client.get("deliveries").json["deliveries"]
    reader = install.key("default", "read")
    for method, path in (
        ("POST", "collections/shelf/actions"),
        ("DELETE", "collections/shelf/actions/1"),
        ("POST", f"deliveries/{sent['id']}/resend"),
    ):
        body = {"sort": "analyse", "params": {"analyser": ANALYSER}} if path.endswith("actions") else None
        assert reader.call(method, path, body).status == 403, path
    assert json.loads(reader.get("deliveries").raw)["deliveries"][0]["id"] == sent["id"]


def test_a_job_tells_whoever_asked_for_it_that_it_has_ended(small, receiver):
    """By the callback of the request; and an address that is none is refused."""
    client = small.client
    client.indexed(TEXT)
    expected = {"kind": "extract", "params": {"schema": SCHEMA}}
    bad = client.post("collections/shelf/jobs", expected | {"callback": {"url": "ftp://files.example"}})
    assert (bad.status, bad.code) == (400, "url_forbidden")
    secret = "a secret of ours, long enough"
    callback = {"url": receiver.url, "secret": secret}
    response = client.post("collections/shelf/jobs", expected | {"callback": callback})
    assert response.status == 202, response.raw
    small.work()
    (came,) = receiver.came
    assert (came.event["event"], came.event["job"]["id"]) == ("job.succeeded", response.json["job_id"])
    at, signed = (part.partition("=")[2] for part in came.headers["holdfast-signature"].split(","))
    assert webhook.signature(secret, came.body, int(at)).endswith(signed)
    assert secret.encode() not in client.get(f"jobs/{response.json['job_id']}").raw
