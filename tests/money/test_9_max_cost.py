"""`max_cost` of every request that leads to indexing: the order that would pass it is never sent."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from sqlalchemy import select, update

from holdfast import bootstrap
from holdfast.store.base.schema import ceilings, runs
from holdfast.testing.meter import Meter
from tests.api.install import ApiInstall
from tests.money.conftest import priced

TEXT = "The ferry leaves the harbour at noon."


def ended(install, document_id):
    """How the latest run of the document ended, after a worker had its turn."""
    install.work()
    document = install.client.get(f"documents/{document_id}").json
    return (document["error"] or {}).get("code", document["index_status"])


def test_an_upload_may_cost_so_much_and_no_more(install, client, meter):
    """As JSON and as a form; nothing is sent, and asked again with more it is indexed."""
    response = client.text(TEXT, max_cost=0)
    client.collection()
    form = client.upload("collections/shelf/documents", b"Another text.", max_cost="0").json["document"]
    assert [ended(install, each["id"]) for each in (response, form)] == ["over_max_cost"] * 2
    assert meter.totals().charges == 0
    again = client.post(f"documents/{response['id']}/index", {"max_cost": 1})
    assert again.status == 202, again.raw
    assert (ended(install, response["id"]), meter.totals().charges) == ("success", 1)


def test_new_content_may_cost_so_much_and_no_more(install, client, meter):
    """The old generation answers on; a form says it like JSON."""
    document = client.indexed(TEXT)
    path = f"documents/{document['id']}/content"
    assert client.put(path, {"text": "Other words.", "max_cost": 0}).status == 202
    assert ended(install, document["id"]) == "over_max_cost"
    assert client.upload(path, b"More other words.", method="PUT", max_cost="0").status == 202
    assert (ended(install, document["id"]), meter.totals().charges) == ("over_max_cost", 1)
    assert client.get(f"documents/{document['id']}").json["published_generation"] == 1


def test_an_edit_may_cost_so_much_and_no_more_and_is_on_the_bill(install, client, meter):
    """Refused before it is sent, the old text answers on; asked again, only the new text is paid."""
    document = client.indexed("The lamp costs ten.---The ferry is free.", options={"delimiter": "---"})["id"]
    (chunk, _) = client.get(f"documents/{document}/chunks").json["chunks"]
    before, billed = meter.totals().charges, client.get("bill?by=document").json
    path = f"/api/v1/documents/{document}/chunks/{chunk['id']}"
    edit = {"text": "The lamp costs twelve."}
    assert client.call("PATCH", path, edit | {"max_cost": 0}).status == 202
    assert (ended(install, document), meter.totals().charges) == ("over_max_cost", before)
    assert client.get(f"documents/{document}/chunks").json["chunks"][0]["text"] == "The lamp costs ten."
    assert client.post(f"documents/{document}/index", {"max_cost": 1}).status == 202
    assert (ended(install, document), meter.totals().charges) == ("success", before + 1)
    cost = client.get(f"documents/{document}").json["cost"]
    assert (cost["paid_calls"], cost["reused_calls"]) == (1, 1)
    after = client.get("bill?by=document").json
    assert cost["paid"] > 0
    assert after["total"] - billed["total"] == pytest.approx(cost["paid"])


class Pages(BaseHTTPRequestHandler):
    served = 0

    def do_GET(self):
        Pages.served += 1
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(f"Page {Pages.served} of the harbour.".encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def url():
    with HTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/page.txt"
        server.shutdown()


def test_a_url_and_its_refresh_may_cost_so_much_and_no_more(database_url, tmp_path, meter, url):
    """The first fetch and the next one each have a limit of their own."""
    install = priced(database_url, tmp_path, meter, fetch_private=True)
    try:
        install.client.collection()
        response = install.client.post("collections/shelf/documents", {"url": url, "max_cost": 0}).json[
            "document"
        ]
        assert ended(install, response["id"]) == "over_max_cost"
        said = install.client.post(f"documents/{response['id']}/refresh", {"max_cost": 0})
        assert (said.status, ended(install, response["id"])) == (202, "over_max_cost")
        assert meter.totals().charges == 0
        assert install.client.post(f"documents/{response['id']}/refresh").status == 202
        assert ended(install, response["id"]) == "success"
    finally:
        install.close()


def test_a_bulk_update_limits_the_run_of_each_document(install, client, meter, monkeypatch):
    """Those that are asked for at once, and those that the sweep asks for later."""
    monkeypatch.setattr("holdfast.service.bulk_updates.AT_ONCE", 1)
    ids = [client.indexed(f"{TEXT} Number {each}.")["id"] for each in range(3)]
    before = meter.totals().charges
    change = {"options": {"model": "text-embedding-3-large"}, "max_cost": 0}
    said = client.call("PATCH", "collections/shelf", change)
    assert (said.status, said.json["requested"], said.json["to_follow"]) == (200, 1, 2)
    bootstrap.AppServices(install.runtime).collections.rounds()
    assert [ended(install, each) for each in ids] == ["over_max_cost"] * 3
    assert meter.totals().charges == before


def test_a_copy_a_move_and_changed_options_may_cost_so_much_and_no_more(install, client, meter):
    """Whatever makes a generation takes a limit."""
    document = client.indexed(TEXT)
    other = {"id": "other", "options": {"model": "text-embedding-3-large"}}
    assert client.post("collections", other).status == 201
    said = client.put(f"collections/other/documents/{document['id']}", {"mode": "copy", "max_cost": 0})
    assert ended(install, said.json["document"]["id"]) == "over_max_cost"
    change = {"options": {"model": "text-embedding-ada-002"}, "max_cost": 0}
    assert client.call("PATCH", f"documents/{document['id']}", change).status == 202
    assert (ended(install, document["id"]), meter.totals().charges) == ("over_max_cost", 1)


def test_asked_again_the_limit_of_the_request_stays_and_that_of_the_settings_is_the_one_of_now(
    install, client
):
    """A retry by the engine carries what was asked for, and not what a setting said at the time."""
    response = client.text(TEXT, max_cost=0)
    assert ended(install, response["id"]) == "over_max_cost"
    subject = f"document:{response['id']}"
    assert install.runtime.engine.again("default", "index", subject).created
    assert ended(install, response["id"]) == "over_max_cost"
    db = install.runtime.db
    db.write("settings", lambda tx: tx.execute(update(ceilings).values(requested=False)))
    assert install.runtime.engine.again("default", "index", subject).created
    assert ended(install, response["id"]) == "success"


def test_the_ceiling_of_the_settings_holds_for_follow_ups_too(database_url, tmp_path):
    """Nobody requests those: the limit is there from the first order on that costs something."""
    with Meter(chat=lambda _messages: "It is about a ferry.") as meter:
        llm = {"llm_provider": "openai", "llm_base_url": meter.base_url, "llm_api_key": "k"}
        install = ApiInstall(database_url, tmp_path / "data", max_run_cost=0, **llm)
        try:
            install.client.indexed(TEXT)
            action = {"sort": "prompt", "params": {"instruction": "Sum up."}}
            assert install.client.post("collections/shelf/actions", action).status == 201
            install.work()
            failed = select(runs.c.error_code).where(runs.c.error_code.is_not(None))
            assert [row.error_code for row in install.runtime.db.look(failed)] == ["over_max_cost"]
            assert meter.totals().charges == 0
        finally:
            install.close()


@pytest.mark.parametrize("wrong", [-1, "much", 1e12])
def test_a_limit_that_is_none_is_refused(client, wrong):
    """Like any other field of the wrong form."""
    client.collection()
    said = client.post("collections/shelf/documents", {"text": TEXT, "max_cost": wrong})
    assert (said.status, said.code) == (400, "bad_request"), json.dumps(said.json)
