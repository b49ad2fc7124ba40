"""A follow-up that failed is explained, retried and followed by every face."""

import urllib.request

from tests.commands import caller

TEXT = "The ferry leaves the harbour at noon."
BAD = {"sort": "analyse", "params": {"analyser": "tests.actions.analysers:bad"}}


def failed(client):
    """A document whose follow-up has failed, and the action."""
    document = client.indexed(TEXT)
    action = client.post("collections/shelf/actions", BAD).json["action"]["id"]
    client.install.work()
    return document["id"], action


def follow_up(client, document):
    return client.get(f"documents/{document}/actions").json["follow_ups"][0]


def test_a_failed_follow_up_is_explained_and_retried(install, client, monkeypatch):
    """The API says why it failed, does it once more, and shows the new run in place of the failed one."""
    document, action = failed(client)
    before = follow_up(client, document)
    why = client.get(f"documents/{document}/why?action={action}").json
    assert (before["status"], why["index_status"]) == ("failed", "failed")
    assert why["sentence"].startswith("Failed:")
    monkeypatch.setattr("tests.actions.analysers.bad", lambda text, passages: {"length": len(text)})
    said = client.post(f"documents/{document}/actions/{action}/retry")
    assert (said.status, said.json["status"]) == (202, "queued")
    install.work()
    after = follow_up(client, document)
    assert (after["status"], after["result"]["found"]) == ("success", {"length": len(TEXT)})
    assert after["run_id"] != before["run_id"]
    again = client.post(f"documents/{document}/actions/{action}/retry")
    assert (again.status, again.code) == (409, "nothing_to_retry")


def test_the_command_line_knows_its_subject(install, client, monkeypatch, capsys):
    """`why` and `retry` take `document:ID#action:N`."""
    document, action = failed(client)
    subject = f"document:{document}#action:{action}"
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", install.settings.database_url.get_secret_value())
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(install.settings.data_dir))
    holdfast = caller(monkeypatch, capsys)
    assert "Failed:" in holdfast("why", subject)[1]
    code, out, _ = holdfast("retry", subject)
    assert (code, "generation 2" in out) == (0, True)
    assert follow_up(client, document)["status"] == "queued"
    assert holdfast("retry", subject)[0] == 3


def test_a_run_says_what_it_does(install, client):
    """Indexing, a follow-up and its failure have lines in their logs, and the web UI shows them."""
    document, _action = failed(client)
    indexed = client.get(f"runs/{client.get(f'documents/{document}').json['run_id']}/log").json
    assert [line["text"] for line in indexed["lines"]] == [
        "parsed 1 page of text, cut 1 chunk for wordllama-256 of local",
        "1 of 1 chunk embedded: 1 paid, 0 reused",
    ]
    run_id = follow_up(client, document)["run_id"]
    items = [line["text"] for line in client.get(f"runs/{run_id}/log").json["lines"]]
    assert items[0] == "read 1 chunk of 1 page"
    assert items[-1].startswith("failed: ")
    with urllib.request.urlopen(f"http://127.0.0.1:{install.port}/runs/{run_id}") as page:
        assert "read 1 chunk of 1 page" in page.read().decode()
