"""First pages are seen before a document is opened, whatever its format."""

from holdfast.chaos.waiting import until
from tests.documents import files
from tests.page.sample_data import World

DRAWN = "(selector) => [...document.querySelectorAll(selector)].map((image) => image.naturalWidth)"
CONTENTS = {
    "letter.md": b"# A letter\n\nTo whom it may concern.\n",
    "costs.csv": b"item,cost\nrent,1200\nfood,300\n",
    "plan.pptx": files.slides(pages=[("The plan", ["One", "Two"], "")]),
}


def test_the_list_and_the_document_show_first_pages(reader, api):
    """Every row and every document has a picture of 320 pixels, whatever was uploaded."""
    api.collection("pictures")
    world = World(api)
    names = [world.upload("pictures", name, content) for name, content in CONTENTS.items()]
    until(lambda: all(api.document(name)["ready"] for name in names), 60, "they are not indexed")
    page = reader.open("/collections/pictures")
    widths = lambda selector: page.evaluate(DRAWN, selector)
    until(lambda: widths("#docs .leaf img") == [320, 320, 320], 30, "the rows show no pictures")
    for name in names:
        page = reader.open(f"/documents/{name}")
        until(lambda: widths("img.thumb") == [320], 30, "the document shows no picture")


def test_a_document_that_is_not_ready_has_no_broken_picture(reader, api, stand):
    """Nothing is asked for before something is published; then the picture comes by itself."""
    api.collection("soon")
    stand.meter.hold()
    try:
        name = api.text("soon", "Soon", "Words that are still being read.")
        page = reader.open(f"/documents/{name}")
        assert page.locator("img.thumb").count() == 0
    finally:
        stand.meter.release()
    page.wait_for_selector("img.thumb")
    until(lambda: page.evaluate(DRAWN, "img.thumb") == [320], 30, "the picture does not come")
