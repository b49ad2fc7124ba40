"""Documents are dropped, move without a reload, are refused twice, cancelled, and survive their worker."""

import signal

import pytest

from holdfast.chaos.waiting import until
from holdfast.kinds import webhook
from tests.webhooks.receiver import Receiver

LONG = "\n\n".join(f"Paragraph {n} tells of anchors, ropes and tides. " * 12 for n in range(60))
DROP = """([files]) => {
  const carried = new DataTransfer();
  for (const [name, text] of files) carried.items.add(new File([text], name, {type: "text/plain"}));
  for (const sort of ["dragenter", "dragover", "drop"])
    document.getElementById("drop").dispatchEvent(
      new DragEvent(sort, {dataTransfer: carried, bubbles: true, cancelable: true}));
}"""


def row(name):
    return f"#d-{name}"


def test_files_that_are_dropped_are_indexed_before_ones_eyes(reader, api):
    """Three files on the web UI, three rows that become ready; the browser never reloads."""
    api.collection("dropped")
    page = reader.open("/collections/dropped")
    page.evaluate("() => { window.mark = 'same page'; }")
    page.evaluate(DROP, [[[f"note-{n}.txt", f"A note about harbour {n}."] for n in range(3)]])
    page.wait_for_selector("#uploads >> text=/Accepted|Ready/")
    page.wait_for_function("() => document.querySelectorAll('li.doc[data-status=success]').length === 3")
    reader.shows("#n-success", "3")
    assert page.evaluate("() => window.mark") == "same page"
    page.evaluate(DROP, [[["again.txt", "A note about harbour 1."]]])
    page.wait_for_selector("#uploads >> text=Already here")


@pytest.mark.g6
def test_a_second_click_shows_what_runs_and_can_end_it(reader, api, stand):
    """The provider is held, so that the run stays; the 409 is told inline, with progress and a way out."""
    api.collection("clicked")
    stand.meter.hold()
    name = api.text("clicked", "Held", LONG)
    page = reader.open("/collections/clicked")
    page.wait_for_selector(f"{row(name)}[data-status=indexing]")
    page.click(f"{row(name)} button:has-text('Index')")
    answer = page.wait_for_selector(f"{row(name)} .answer")
    assert "already in progress" in answer.inner_text()
    assert answer.query_selector("progress") is not None
    page.click(f"{row(name)} .answer >> text=Cancel run")
    page.wait_for_selector(f"{row(name)}[data-status=not_indexed]")
    page.wait_for_selector(f"{row(name)} .answer", state="detached")
    stand.meter.release()
    assert api.document(name)["index_status"] == "not_indexed"


def test_progress_moves_without_a_reload(reader, api, stand):
    """The bar of a long document goes through values between nothing and all."""
    api.collection("moving")
    stand.meter.plan(latency=0.5)
    try:
        name = api.text("moving", "Long", "\n\n".join(f"{LONG}\n\nPart {n}." for n in range(12)))
        page = reader.open(f"/documents/{name}")
        page.wait_for_function(
            "() => { const bar = document.querySelector('.why progress');"
            " return bar && bar.value > 0 && bar.value < 1000; }"
        )
        assert "%" in reader.text(".why .far-words")
    finally:
        stand.meter.plan(latency=0.0)
    page.wait_for_selector(".why[data-status=success]")
    assert reader.asked(f"/documents/{name}") < 60


@pytest.mark.g7
def test_a_worker_that_is_killed_is_shown_and_the_document_heals(reader, api, stand):
    """By kill -9, with an order open: the journal tells of the lease that ran out, another worker goes on."""
    api.collection("killed")
    stand.meter.hold()
    name = api.text("killed", "Survivor", LONG + " killed")
    page = reader.open(f"/documents/{name}")
    page.wait_for_selector(".why[data-status=indexing]")
    reader.shows(".why-sentence", "is working on it")
    stand.meter.wait_open(1, 30)
    holder = reader.text(".why-sentence").partition(" is working")[0]
    stand.worker.tell(signal.SIGKILL, group=True)
    stand.worker.clear()
    until(
        lambda: api.get(f"documents/{name}/why")["sentence"].startswith(f"{holder} stopped"), 30, "not told"
    )
    page.reload()
    reader.shows(".why-sentence", f"{holder} stopped responding more than")
    reader.shows("#main", f"{holder} (lease expired)")
    stand.meter.release()
    stand.work()
    page.wait_for_selector(".why[data-status=success]")
    story = reader.text("#journal + .log")
    assert f"The worker of {holder} died while working on the plan; it is queued again." in story
    assert "started the plan." in story
    assert "epoch" not in story
    assert "is in doubt: its process has died. It is unknown whether it was charged." in story
    assert "resent the order in doubt with its original idempotency key." in story
    assert "2\N{MULTIPLICATION SIGN}" in reader.text("[aria-label='Paid requests of version 1']")
    assert api.document(name)["ready"] is True


def test_many_are_chosen_and_deleted(reader, api):
    """Two of three are ticked, and gone after one question; the third stays."""
    api.collection("many")
    names = [api.text("many", f"Paper {n}", f"Paper number {n} is short.") for n in range(3)]
    page = reader.open("/collections/many")
    for name in names[:2]:
        page.check(f"{row(name)} input[name=pick]")
    assert reader.text("#n-chosen") == "2"
    page.click("#bulk >> text=Delete")
    page.click("#sure-yes")
    page.wait_for_selector(row(names[0]), state="detached")
    page.wait_for_selector(row(names[1]), state="detached")
    reader.shows("#n-documents", "1")
    assert page.is_visible(row(names[2]))


def test_a_failure_says_why_and_offers_the_next_step(reader, api):
    """A file that cannot be read: the sentence, and a button that asks again."""
    api.collection("broken")
    page = reader.open("/collections/broken")
    broken = {"name": "broken.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.4 this is no PDF"}
    page.set_input_files("#files", broken)
    page.wait_for_selector("li.doc[data-status=failed]")
    page.click("li.doc a")
    page.wait_for_selector(".why[data-status=failed]")
    assert reader.text(".why-sentence").startswith("Failed:")
    before = api.get("collections/broken/documents")["documents"][0]["index_generation"]
    page.click(".why button:has-text('Retry')")
    until(
        lambda: api.get("collections/broken/documents")["documents"][0]["index_generation"] > before,
        30,
        "nothing was asked for",
    )


def test_a_filtered_list_lets_go_of_what_has_changed(reader, api, stand):
    """Under *Queued* a row leaves when its document is ready, and another comes when it is asked for."""
    api.collection("filtered")
    stand.meter.hold()
    first = api.text("filtered", "First", "The first is under way.")
    page = reader.open("/collections/filtered?status=indexing")
    page.wait_for_selector(f"{row(first)}[data-status=indexing]")
    page.evaluate("() => { window.mark = 'same page'; }")
    stand.meter.release()
    page.wait_for_selector(row(first), state="detached")
    page.wait_for_selector("#no-docs >> text=No matching documents")
    stand.meter.hold()
    second = api.text("filtered", "Second", "The second is under way.")
    page.wait_for_selector(f"{row(second)}[data-status=indexing]")
    page.wait_for_selector("#no-docs", state="hidden")
    stand.meter.release()
    page.wait_for_selector(row(second), state="detached")
    assert page.evaluate("() => window.mark") == "same page"


def test_an_action_is_added_shows_its_results_and_is_removed(reader, api):
    """By hand, with a document that is ready and one that becomes so; the browser never reloads."""
    api.collection("acted")
    name = api.text("acted", "Tides", "The ebb begins at noon. The flood begins at six.")
    until(lambda: api.document(name)["ready"], 30, "it is not indexed")
    page = reader.open("/collections/acted/actions")
    page.click("text=Add action")
    page.fill("#action-name", "Abstract")
    page.fill("#action-prompt-instruction", "Say what this is about.")
    page.click("#new-action >> text=Estimate")
    reader.shows("#new-action [data-estimated]", "Runs now on 1 document that is ready")
    page.click("#new-action button:has-text('Add')")
    page.wait_for_selector(".action .chip[data-state=done]")
    assert "Tides" in reader.text(".action tbody")
    other = api.text("acted", "Quays", "The quay is long. The quay is old.")
    reader.shows(".action tbody", "Quays")
    reader.shows(".action .numbers-inline", "2 done")
    reader.open(f"/documents/{other}")
    reader.shows("#follow-ups + .plain-list", "Abstract")
    page = reader.open("/collections/acted/actions")
    page.click(".action >> text=Remove")
    page.click("#sure-yes")
    page.wait_for_selector("text=No actions yet")
    assert api.get("collections/acted/actions")["actions"] == []


def test_a_webhook_is_added_and_tested_before_anything_happens(reader, api):
    """Its secret is shown once, and what it answers to a test: here, and on the Operations page."""
    api.collection("hooked")
    with Receiver() as receiver:
        receiver.script = [200, 503]
        page = reader.open("/collections/hooked/actions")
        page.click("text=Add action")
        page.select_option("#action-sort", "webhook")
        page.fill("#action-webhook-url", receiver.url)
        page.click("#new-action >> text=Estimate")
        page.click("#new-action button:has-text('Add')")
        page.wait_for_selector("#new-secret[open]")
        secret = page.input_value("#secret-value")
        page.click("#new-secret >> text=Done")
        page.wait_for_function("() => document.getElementById('secret-value').value === ''")
        page.click("text=Send a test")
        reader.shows(".action tbody", "HTTP 200")
        signed = dict(
            part.split("=", 1) for part in receiver.came[0].headers["holdfast-signature"].split(",")
        )
        assert webhook.signature(secret, receiver.came[0].body, int(signed["t"])).endswith(signed["v1"])
        page = reader.open("/operations")
        page.click("li:has-text('Hooked') >> text=Send a test")
        reader.shows("[aria-label=Deliveries] tbody", "HTTP 503")
        assert [came.event["event"] for came in receiver.came[:2]] == ["webhook.test"] * 2


def test_files_are_described_and_search_filters_groups_and_pages(reader, api):
    """Metadata that is not JSON stops the upload; a search by it shows its files, page by page."""
    api.collection("described")
    other = api.text("described", "Other", "An anchor of nobody.")
    page = reader.open("/collections/described")
    page.click("#upload-about summary")
    page.fill("#upload-metadata", '{"author": ')
    page.evaluate(DROP, [[["bad.txt", "An anchor that is not sent."]]])
    reader.shows("#upload-metadata-problem", "not valid JSON")
    page.fill("#upload-metadata", '{"author": "Ann"}')
    page.fill("#upload-labels", "public, hr")
    page.evaluate(DROP, [[[f"anchor-{n}.txt", f"Anchor {n} holds in the mud."] for n in range(22)]])
    page.wait_for_function("() => document.querySelectorAll('li.doc[data-status=success]').length === 23")
    assert api.document(other)["metadata"] == {}
    page = reader.open("/search?collection=described&q=anchor", live=False)
    page.click(".more-options summary")
    page.fill("#filter", '{"eq": {"author": "Ann", "$labels": "hr"}}')
    page.check("input[name=group]")
    page.press("#filter", "Enter")
    page.wait_for_selector("text=20 documents")
    page.click("nav[aria-label='Pages of hits'] >> text=Next")
    page.wait_for_selector("text=2 documents after the first 20")
    assert page.locator(".hits > li.card").count() == 2


def test_search_finds_and_leads_into_the_document(reader, api):
    """The words of the question are marked, the leg is named, the link shows the passage."""
    api.collection("found")
    name = api.text("found", "Anchoring", "Anchors hold in mud.\n\nRopes wear out at the fairlead.")
    until(lambda: api.document(name)["ready"], 30, "it is not indexed")
    page = reader.open("/search?collection=found&q=anchors+in+mud")
    assert "Anchors" in [each.inner_text() for each in page.query_selector_all("mark")]
    assert "words" in reader.text(".hit-foot")
    page.click(".hits a")
    page.wait_for_selector(".passages .target")
    assert "Anchors hold" in reader.text(".passages .target")
