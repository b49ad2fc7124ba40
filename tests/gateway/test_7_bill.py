"""Who spent what, and what was saved: in the bill, and in the web UI."""

import urllib.request

from holdfast.service.gateway_reports import GatewayReports
from tests.gateway.install import EMBEDDER, chat


def counted(install):
    """The counts of the last second are written."""
    install.gateway.counting.flush(install.runtime.db, whole=True)


def test_the_bill_shows_who_spent(install, meter):
    """By key and by scope: paid from the charges, saved from what was reused."""
    first, second = (install.key("a").key for _ in range(2))
    for key, scope in ((first, "x"), (second, "x"), (second, "y")):
        install.post("chat/completions", chat("a cat"), scope=scope, key=key)
    counted(install)
    names = {each.id for each in install.access.every()}
    client = install.key("a", "read")
    by_key = {line["about"]: line for line in client.get("bill?by=key").json["lines"]}
    by_scope = {line["about"]: line for line in client.get("bill?by=scope").json["lines"]}
    assert set(by_key) <= names
    assert sorted((each["orders"], each["reused_calls"]) for each in by_key.values()) == [(1, 0), (1, 1)]
    assert {about: each["orders"] for about, each in by_scope.items()} == {"x": 1, "y": 1}
    assert by_scope["x"]["saved"] == by_scope["x"]["paid"] > 0
    by_reason = client.get("bill?by=reason").json["lines"]
    assert [line["about"] for line in by_reason] == ["gateway:request"]
    assert meter.totals().charges == 2


def test_what_was_asked_is_counted(install, meter):
    """Requests, reuse, savings, the slowest and the errors; of other tenants nothing."""
    meter.plan(latency=0.0)
    for _ in range(3):
        install.post("embeddings", {"model": EMBEDDER, "input": ["one", "two"]})
    install.post("chat/completions", b"{")
    counted(install)
    report = GatewayReports(install.runtime.db).summary("default").report
    assert (report.sums.requests, report.sums.reused, report.sums.errors) == (4, 2, 1)
    assert report.sums.reused_calls == 4
    assert [(line.about, line.counts.requests) for line in report.by_endpoint] == [
        ("embeddings", 3),
        ("chat/completions", 1),
    ]
    assert [(note.code, note.status) for note in report.errors] == [("not_json", 400)]
    assert GatewayReports(install.runtime.db).summary("other").report.sums.requests == 0


def test_a_hit_writes_nothing(quick, meter):
    """Counts wait in memory for the next second: an answer from the ledger costs no transaction."""
    body = {"model": EMBEDDER, "input": "one"}
    quick.post("embeddings", body)
    quick.gateway._stop.set()
    writes = []
    write, quick.runtime.db.write = quick.runtime.db.write, lambda *args, **more: writes.append(args[0])
    try:
        assert quick.post("embeddings", body).charge == "reused"
    finally:
        quick.runtime.db.write = write
    assert writes == []


def page(install, path):
    """A page of the web UI, as a browser gets it."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{install.port}{path}", headers={"accept": "text/html"}
    )
    with urllib.request.urlopen(request) as response:
        return response.read().decode()


def test_the_page_of_the_gateway(quick, meter):
    """A person sees it in the web UI, with and without requests."""
    assert "No program has used the gateway" in page(quick, "/gateway")
    for _ in range(2):
        quick.post("chat/completions", chat("a cat"), scope="report")
    quick.post("chat/completions", b"{", scope="broken")
    counted(quick)
    for span in ("day", "week", "nonsense"):
        shown = page(quick, f"/gateway?span={span}")
        assert [word for word in ("50 %", "By scope", "not_json", "No key") if word not in shown] == []
    assert "Requests to the gateway" in page(quick, "/bill")
