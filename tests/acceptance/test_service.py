"""The whole service over HTTP on each stack: real API, real worker, real broker, a provider that charges."""

import re
from pathlib import Path

import pytest

from holdfast.chaos import stacks
from holdfast.testing.meter import Meter
from tests.acceptance.servers import all_servers
from tests.acceptance.service import Service, at_once
from tests.jobs.install import Author
from tests.webhooks.receiver import Receiver

pytestmark = pytest.mark.timeout(300)

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/receive-webhooks.md"
SECRET = "a secret of the receiver"
TOKEN = 0.02 / 1e6  # what a token costs in dollars


@pytest.fixture(scope="module", params=stacks.NAMES)
def service(request, require):
    """An API and a worker on a fresh stack, for all stories."""
    for name in stacks.NEEDED[request.param]:
        require(name)
    with (
        stacks.opened(all_servers(), request.param) as stack,
        Meter(honour_keys=True, chat=Author()) as meter,
        Service(stack, meter) as created,
    ):
        created.worker().ready()
        yield created


@pytest.fixture(autouse=True)
def _nobody_is_held_back(service):
    yield
    service.meter.release()


def test_what_is_uploaded_is_found(service):
    """202, then ready, then found; the same bytes once more are answered with the same document."""
    client = service.client
    client.collection("found")
    text = b"The lighthouse keeper counts the herons."
    said = client.upload("collections/found/documents", text, "lighthouse.txt")
    assert (said.status, said.json["disposition"]) == (202, "accepted")
    created = service.ended(said.json["document"]["id"])
    assert (created["index_status"], created["published_generation"], created["title"]) == (
        "success",
        1,
        "lighthouse.txt",
    )
    (hit,) = client.get("search?collection=found&q=herons").json["hits"]
    assert hit["document_id"] == created["id"]
    again = client.upload("collections/found/documents", text, "copy.txt")
    assert (again.status, again.json["disposition"]) == (200, "unchanged")
    assert again.json["document"]["id"] == created["id"]
    assert service.meter.charges_of(text.decode()) == 1


@pytest.mark.g1
@pytest.mark.g5
@pytest.mark.g6
def test_of_eight_who_click_at_once_one_is_taken(service):
    """The others are told what is under way; the work that was cancelled before is not paid again."""
    client, text = service.client, "Eight people want this at once."
    created = service.held(text, to="clicks")
    said = client.post(f"documents/{created['id']}/cancel")
    assert (said.status, said.json["document"]["index_status"]) == (200, "not_indexed")
    output = at_once(8, lambda _: client.post(f"documents/{created['id']}/index", {"mode": "retry"}))
    (taken,) = [each for each in output if each.status == 202]
    refused = [each for each in output if each.status == 409]
    assert len(refused) == 7
    for each in refused:
        error = each.json["error"]
        assert (error["code"], error["active"]["run_id"]) == ("duplicate", taken.json["run"]["id"])
        assert "already in progress" in error["message"]
    service.meter.release()
    assert service.ended(created["id"])["index_status"] == "success"
    assert service.meter.charges_of(text) == 1
    line = client.get("bill?by=collection").json["lines"]
    assert [each["refused_duplicates"] for each in line if each["about"] == "clicks"] == [7]


@pytest.mark.g1
def test_of_eight_who_upload_the_same_one_document_comes(service):
    """All are told of the same one."""
    service.client.collection("same")
    output = at_once(8, lambda _: service.client.upload("collections/same/documents", b"Eight times."))
    assert sorted(each.status for each in output) == [200] * 7 + [202]
    (one,) = {each.json["document"]["id"] for each in output}
    assert service.ended(one)["index_status"] == "success"
    assert service.meter.charges_of("Eight times.") == 1


@pytest.mark.g2
@pytest.mark.g3
def test_what_is_deleted_while_it_is_indexed_never_comes_back(service):
    """Neither itself nor anything of it, though its order was at the provider."""
    client = service.client
    created = service.held("A secret about walruses.", to="deleted")
    assert client.call("DELETE", f"documents/{created['id']}").status == 204
    service.meter.release()
    service.meter.wait_idle()
    after = client.text("Something about walruses that may stay.", to="deleted")
    assert service.ended(after["id"])["index_status"] == "success"
    assert client.get(f"documents/{created['id']}").status == 404
    hits = client.get("search?collection=deleted&q=walruses").json["hits"]
    assert [each["document_id"] for each in hits] == [after["id"]]


@pytest.mark.g5
def test_whoever_is_called_back_may_start_the_next_at_once(service):
    """The callback is signed, and comes when the job is over and its place is free."""
    client, requested = service.client, []
    service.ended(client.text("Herons eat fish. Walruses eat clams.", to="jobs")["id"])
    with Receiver() as receiver:

        def look(came):
            job = client.get(f"jobs/{came.event['job']['id']}").json["job"]
            requested.append(
                (job["state"], client.post("collections/jobs/jobs", {"kind": "qa", "mode": "force"}))
            )

        receiver.look = look
        callback = {"url": receiver.url, "secret": SECRET}
        said = client.post("collections/jobs/jobs", {"kind": "qa", "callback": callback})
        assert said.status == 202
        service.wait(lambda: receiver.came, "the receiver is called")
    (state, following) = requested[0]
    assert (state, following.status) == ("success", 202), following.raw
    names = {}
    exec(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0], names)
    assert names["is_genuine"](SECRET, receiver.came[0].headers["holdfast-signature"], receiver.came[0].body)
    job = f"jobs/{following.json['job_id']}"
    service.wait(lambda: client.get(job).json["job"]["state"] == "success", "the next job ends")
    assert client.get(f"{job}/results").json["results"]
    assert service.meter.totals().excess == 0


@pytest.mark.g4
def test_work_over_its_budget_waits_and_ends_when_that_is_raised(service):
    """It is not failed, nothing is paid meanwhile, and it says what it waits for."""
    client, text = service.client, "Far more words than three tokens could ever pay for."
    client.collection("budget")
    scope = {"scope": "collection:budget"}
    assert client.put("budgets", scope | {"hard": 3 * TOKEN}).status == 200
    response = client.text(text, to="budget")

    def waits():
        tasks = client.get(f"documents/{response['id']}/why").json["generations"][0]["tasks"]
        return any(task["waiting_for"] == "budget" for task in tasks)

    service.wait(waits, "the work waits for its budget")
    assert service.meter.charges_of(text) == 0
    client.put("budgets", scope | {"hard": 0})
    refused = client.post("collections/budget/documents", {"text": "Another."})
    assert (refused.status, refused.code) == (402, "over_budget")
    client.put("budgets", scope | {"hard": 1})
    assert service.ended(response["id"])["index_status"] == "success"
    assert service.meter.charges_of(text) == 1
