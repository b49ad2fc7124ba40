"""Flows in the browser: the steps of a document with time, cost and output, and a dry run of other steps."""

import pytest

from holdfast.chaos.waiting import until
from holdfast.testing.meter import Meter
from tests.flows.install import GIST, TERMS, FlowsInstall, flow
from tests.jobs.install import Author, paragraphs

SPLIT = "split: {size: 256}"
LOOKS = [("light", 1280), ("dark", 1280), ("light", 390)]
NAMES = ["light", "dark", "phone"]


def opened(look, library, path, scheme, width):
    """What is at the path, in this colour scheme, on a screen so wide."""
    reader = look(f"http://127.0.0.1:{library.port}", color_scheme=scheme)
    reader.page.set_viewport_size({"width": width, "height": 844})
    reader.open(path)
    return reader


@pytest.fixture
def library(sqlite_url, tmp_path):
    """An installation with a document that a flow made, whose model is the meter."""
    author = Author()
    with Meter(chat=author, honour_keys=True) as meter:
        install = FlowsInstall(sqlite_url, tmp_path / "data", meter, author)
        steps = SPLIT, GIST, TERMS, f"when: position > 5\n{GIST.replace('gist', 'rare')}"
        install.apply(flow(*steps, "publish: {fields: [gist]}"), to="shelf")
        install.document = install.client.indexed(paragraphs("tide", 3), title="Tides")
        yield install
        install.close()


@pytest.mark.parametrize(("scheme", "width"), LOOKS, ids=NAMES)
def test_the_steps_of_a_document(library, look, scheme, width):
    """Each step has its time, calls, cost and output; nothing is wider than the screen; axe is content."""
    reader = opened(look, library, f"/documents/{library.document['id']}", scheme, width)
    page = reader.page
    gist, terms, rare = page.locator("#flow-steps > li").all()
    assert "3 chunks" in gist.inner_text()
    assert "3 paid, 0 reused" in gist.inner_text()
    assert "gist of tide paragraph 0" in gist.inner_text()
    assert '{"topic": "topic of tide"}' in terms.inner_text()
    assert "left out for 3 by its condition" in rare.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert reader.judged() == []


def test_other_steps_are_tried_on_a_document(library, look):
    """The cost first, then the outputs; a fault at its line, with the cursor in it; nothing is indexed."""
    reader = look(f"http://127.0.0.1:{library.port}")
    page = reader.open(f"/documents/{library.document['id']}")
    # By its URL: what is shown is refreshed from time to time, and a click may hit the old link.
    page = reader.open(page.get_attribute("#steps-title + a", "href"))
    source = page.locator("#dry-run-source")
    assert source.input_value().startswith("flow: contracts")
    shorter = source.input_value().replace("in a sentence", "in a word")
    source.fill(shorter.replace("split", "splt"))
    page.click("text=Run the steps")
    until(lambda: "did you mean split?" in reader.text("#dry-run-problem"), 30, "no fault is shown")
    assert source.evaluate("one => one.value.slice(one.selectionStart, one.selectionStart + 4)") == "splt"
    assert reader.judged() == []
    charges = library.meter.totals().charges
    source.fill(shorter)
    page.click("text=Show the cost first")
    until(lambda: "3 calls not paid for, about $" in reader.text("#dry-run-foot"), 30, "no cost is shown")
    assert library.meter.totals().charges == charges
    page.fill("#dry-run-chunks", "1")
    page.click("text=Run the steps")
    until(lambda: "first 1 of 3 chunks: paid $" in reader.text("#dry-run-foot"), 30, "nothing is shown")
    assert "gist of tide paragraph 0" in reader.text("#dry-run-steps > li:nth-child(2)")
    assert library.meter.totals().charges == charges + 1
    assert reader.judged() == []
    assert [each["id"] for each in library.client.get("flows").json["flows"]] == ["contracts@1"]


@pytest.mark.parametrize(("scheme", "width"), LOOKS[1:], ids=NAMES[1:])
def test_a_dry_run_in_the_dark_and_on_a_phone(library, look, scheme, width):
    """It has enough contrast, and fits."""
    reader = opened(look, library, f"/documents/{library.document['id']}/dry-run", scheme, width)
    page = reader.page
    page.click("text=Run the steps")
    until(lambda: "paid $0.00" in reader.text("#dry-run-foot"), 30, "nothing is shown")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert reader.judged() == []
