"""The knowledge graph in a browser: opened by a click or by the keyboard, and drawn by the server."""

from holdfast.chaos.waiting import until
from tests.page.browser_user import Api

TEXT = "Ann Archer and Ben Baker sail from Port Alder. Ben Baker met Cora Cole at Lake Birch."


def test_an_entity_opens_in_place_and_its_passage_in_the_document(look, stand):
    """By a click and by arrow keys; Back closes it; its source leads to the passage."""
    api = Api(stand.address)
    api.collection("harbour")
    document = api.text("harbour", "Crew", TEXT)
    until(lambda: api.document(document)["ready"], 30, "it is not indexed")
    job = api.call("POST", "collections/harbour/jobs", {"kind": "graph"})["job_id"]
    until(lambda: api.get(f"jobs/{job}")["job"]["state"] == "success", 60, "the graph is not built")
    page = look(stand.address).open("/collections/harbour/graph")
    page.locator("#graph a[aria-label^='Ben Baker'] circle").click()
    page.wait_for_selector("#graph .chosen")
    assert page.locator("#graph-panel h2").inner_text() == "Ben Baker"
    assert "entity=" in page.url
    assert page.evaluate("document.activeElement.classList.contains('chosen')")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.closest('#graph') !== null")
    page.go_back()
    page.wait_for_selector("#graph .chosen", state="detached")
    page.locator("table").get_by_role("link", name="Ben Baker").click()
    page.wait_for_selector("#graph .chosen")
    page.locator("#graph-panel summary", has_text="Crew").click()
    page.get_by_role("link", name="Open in the document").first.click()
    page.wait_for_url(f"**/documents/{document}?at=0.0#c-0-0")
