"""A question in the browser: the answer streams, sources beside it, and a citation opens its passage."""

import pytest

from holdfast.chaos.waiting import until
from holdfast.testing.meter import Meter
from tests.ask.conftest import AskInstall, ScriptedModel
from tests.documents import scans


@pytest.fixture
def library(sqlite_url, tmp_path):
    """An installation whose model is the meter, with a PDF."""
    model = ScriptedModel()
    model.says = "The heron rests in the reeds [1]. It has 9 eggs [1]. It sings [7]."
    with Meter(chat=model) as meter:
        install = AskInstall(sqlite_url, tmp_path / "data", meter, model)
        install.client.collection("shelf")
        book = scans.pdf([["The heron rests in the reeds."]])
        install.client.upload("collections/shelf/documents", book, "book.pdf")
        install.work()
        yield install
        install.close()


def test_an_answer_streams_beside_its_sources(library, look):
    """First words before the end; checked sentences; where a citation stands; the second time for nothing."""
    reader = look(f"http://127.0.0.1:{library.port}")
    page = reader.open("/collections/shelf")
    library.meter.hold("during")
    page.fill("#question", "Where does the heron rest?")
    page.press("#question", "Enter")
    until(lambda: reader.text("#answer-text").strip() == "The", 30, "the first word is not shown")
    assert page.locator("#answer-sources li").count() == 1
    library.meter.release()
    until(lambda: "Paid $" in reader.text("#answer-foot"), 30, "the answer does not end")
    assert "1 unknown citation removed" in reader.text("#answer-foot")
    assert page.locator("#answer-text [data-support=none]").count() == 2
    page.click("#answer-text a.cite >> nth=0")
    picture = page.locator("#answer-sources details.viewer img")
    until(lambda: picture.evaluate("image => image.naturalWidth") > 500, 30, "its page is not shown")
    assert reader.judged() == []
    page.emulate_media(color_scheme="dark")
    assert reader.judged() == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert reader.judged() == []
    page.press("#question", "Enter")
    until(lambda: "Replayed, cost nothing" in reader.text("#answer-foot"), 30, "it was not replayed")
    page = reader.open("/search?collection=shelf&q=")
    page.fill("#q", "xqzvw kkkrt pfffg")
    page.click("[data-ask-here]")
    until(lambda: "no model was asked" in reader.text("#answer-problem"), 30, "the refusal is not shown")
    assert reader.judged() == []
    assert library.meter.totals().charges == 1
