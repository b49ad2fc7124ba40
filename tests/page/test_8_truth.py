"""What the web UI says is so: also when the server hangs, a worker dies or a webhook fails."""

import re
import signal

import pytest

from holdfast.chaos.waiting import until
from tests.api.install import ApiInstall
from tests.documents import pdfs
from tests.webhooks.receiver import Receiver

# A worker that reports every few seconds is missed well before this; half a minute is not "within seconds".
SOON = 22_000


@pytest.fixture
def quiet(sqlite_url, tmp_path):
    """An API whose worker works when it is told to."""
    install = ApiInstall(sqlite_url, tmp_path / "data", webhook_private=True)
    install.client.collection("shelf")
    yield install
    install.close()


@pytest.fixture
def watcher(quiet, look):
    """Somebody who looks at that."""
    return look(f"http://127.0.0.1:{quiet.port}")


def test_a_server_that_hangs_is_not_live(reader, stand):
    """The connection is open and silent: the web UI says so, with the time of the last news, and recovers."""
    page = reader.open("/operations")
    stand.api.tell(signal.SIGSTOP)
    try:
        page.wait_for_selector("#live[data-state=lost]", timeout=30_000)
        page.wait_for_selector("#away:not([hidden])")
        assert re.search(r"Last update at \d\d:\d\d:\d\d", reader.text("#away"))
    finally:
        stand.api.tell(signal.SIGCONT)
    page.wait_for_selector("#live[data-state=live]")
    page.wait_for_selector("#away", state="hidden")


def test_a_killed_worker_is_lost_within_seconds(reader, stand):
    """Its row, the sentence at the top of Operations and the one of Home follow its last sign of life."""
    page = reader.open("/operations")
    assert "All good: 1 worker online, broker connected." in reader.text("#health")
    stand.worker.tell(signal.SIGKILL, group=True)
    stand.worker.clear()
    page.wait_for_selector("[aria-label=Workers] .chip[data-state=lost]", timeout=SOON)
    reader.shows("#health", "No worker is online")
    assert "All good" not in reader.text("#main")
    assert "Last seen" in reader.text("[aria-label=Workers] thead")
    reader.open("/")
    assert "No worker is online" in reader.text("#health")
    stand.work()
    reader.shows("#health", "1 worker online")


def test_progress_never_says_that_all_is_done_while_parts_are_to_do(quiet, watcher):
    """One of three parts is done: the percentage, the parts and the chunks do not contradict each other."""
    pages = [f"Page {n} tells of anchors and tides." for n in range(1, 31)]
    said = quiet.client.upload("collections/shelf/documents", pdfs.make(pages), "long.pdf").json
    quiet.worker.engine.work_off(most=2)
    for path in (f"/documents/{said['document']['id']}", "/collections/shelf"):
        watcher.open(path)
        words = watcher.text(".far-words")
        assert "40 %" in words
        assert "1 of 3 parts" in words
        assert not re.search(r"\b(\d+) of \1\b", words)
    watcher.page.evaluate("() => { window.mark = 'same page'; }")
    quiet.worker.engine.work_off(most=1)
    watcher.shows(".far-words", "2 of 3 parts")
    assert watcher.page.evaluate("() => window.mark") == "same page"
    quiet.work()
    watcher.page.wait_for_selector("li.doc[data-status=success]")


def test_a_cancelled_version_is_told_beside_the_published_one(quiet, watcher):
    """Version 2 is cancelled: the sentence says so, and that version 1 answers."""
    name = quiet.client.indexed("Anchors hold in mud.")["id"]
    quiet.client.put(f"documents/{name}/content", {"text": "Anchors drag in sand."})
    page = watcher.open(f"/documents/{name}")
    page.click(".why button:has-text('Cancel')")
    watcher.shows(".why-sentence", "Version 2 was cancelled. Version 1 is still searchable.")
    assert watcher.text("#why") == "Status"
    assert page.is_visible(".why button:has-text('Retry')")


def test_webhooks_that_fail_need_attention_before_they_are_given_up(quiet, watcher):
    """Six events were refused once and are tried again: Operations and Home do not say that all is good."""
    with Receiver() as receiver:
        receiver.choose = lambda _came: 503
        hook = {"sort": "webhook", "params": {"url": receiver.url}}
        assert quiet.client.post("collections/shelf/actions", hook).status == 201
        for number in range(6):
            quiet.client.indexed(f"Anchor {number} holds.")
        quiet.work()
        assert len(receiver.came) == 6
    page = watcher.open("/operations")
    assert watcher.text("#concerns") == "Needs attention"
    output = watcher.text("#concerns + ul")
    assert "6 webhook deliveries are failing" in output
    assert "503" in output
    assert "All good" not in watcher.text("#main")
    watcher.open("/")
    page.click("text=1 thing needs attention")
    page.wait_for_url("**/operations#concerns")


def test_what_was_deleted_today_was_not_done_today(quiet, watcher):
    """Two documents are indexed, one is deleted: two are done."""
    names = [quiet.client.indexed(f"Anchor {n} holds.")["id"] for n in range(2)]
    assert quiet.client.call("DELETE", f"documents/{names[0]}").status == 204
    watcher.open("/")
    assert watcher.text("#n-done") == "2"
    until(lambda: watcher.text("#k-shelf .numbers").startswith("1 document"), 10, "it is still counted")
