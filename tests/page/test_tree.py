"""Trees, graphs and mind maps in a browser: started where they are missing, followed, opened to passages."""

import pytest

from tests.api.install import ApiInstall

LOOKS = (
    ("light", 1280),
    ("dark", 1280),
    ("dark", 390),
)
TABS = ("tree", "graph", "mindmap")


def pages(name):
    """A text of some chunks with names in it, and headings."""
    people = ("Ann Archer", "Ben Baker", "Cora Cole", "Dan Drake")
    parts = [
        f"## {name} {number}\n\nIn {name} the keeper {people[number % 4]} met {people[(number + 1) % 4]}. "
        + " ".join(f"{name}{number}word{at}" for at in range(150))
        for number in range(9)
    ]
    return "\n\n".join(parts)


@pytest.fixture
def library(sqlite_url, tmp_path):
    """An installation with two documents, and nothing derived from them."""
    install = ApiInstall(sqlite_url, tmp_path / "data")
    install.client.collection("shelf")
    for name in ("alpha", "beta"):
        install.client.upload("collections/shelf/documents", pages(name).encode(), f"{name}.md")
    install.work()
    yield install
    install.close()


def test_a_tree_is_started_where_it_is_missing_and_opens_to_a_passage(library, look):
    """It says that it is free, shows the estimate, the waiting job, and then the summaries."""
    reader = look(f"http://127.0.0.1:{library.port}")
    page = reader.open("/collections/shelf/tree")
    assert "It costs nothing here" in reader.text(".empty")
    page.click("text=Make it now")
    page.wait_for_selector("#new-job [data-estimated]:not([hidden])")
    assert "2 documents" in reader.text("#new-job [data-estimated]")
    page.click("#new-job >> text=Start")
    page.wait_for_selector("#new-job", state="hidden")
    page = reader.open("/collections/shelf/tree")
    assert "waiting for a worker" in reader.text(".empty")
    library.work()
    page.wait_for_selector(".tree-node")
    assert "No language model was asked" in reader.text("#main")
    page.click(".tree .tree summary:has-text('alpha.md')")
    inner = page.locator("details.tree-node[open] details.tree-node[open] details.tree-node").first
    inner.locator("summary").first.click()
    inner.locator("summary:has-text('Passages of alpha.md')").click()
    inner.get_by_role("link", name="Open in the document").first.click()
    page.wait_for_url("**/documents/*?at=*")


def test_what_is_derived_is_read_by_everybody(library, look):
    """Empty, built, out of date; light, dark, on a phone: axe finds nothing, and nothing is cut off."""
    address = f"http://127.0.0.1:{library.port}"

    def judged(words):
        for scheme, width in LOOKS:
            reader = look(address, color_scheme=scheme)
            reader.page.set_viewport_size({"width": width, "height": 850})
            for tab in TABS:
                page = reader.open(f"/collections/shelf/{tab}")
                assert words in reader.text("#main")
                assert reader.judged() == []
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                current = "document.querySelector('.tabs [aria-current]').getBoundingClientRect()"
                assert page.evaluate(f"{current}.right <= innerWidth && {current}.left >= 0")

    judged("It costs nothing here")
    for kind in ("raptor", "graph", "mindmap"):
        assert library.client.post("collections/shelf/jobs", {"kind": kind}).status == 202
    library.work()
    judged("No language model was asked")
    document = library.client.get("collections/shelf/documents").json["documents"][0]["id"]
    library.client.put(f"documents/{document}/content", {"text": "All of it is new."})
    library.work()
    judged("Documents have changed since.")


def test_a_failed_run_is_said_where_its_result_would_be(library, look):
    """Without anything to show, the reason is given, and a way to the job."""
    library.client.collection("empty")
    library.client.text("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n", to="empty")
    library.work()
    assert library.client.post("collections/empty/jobs", {"kind": "graph"}).status == 202
    library.work()
    reader = look(f"http://127.0.0.1:{library.port}")
    page = reader.open("/collections/empty/graph")
    assert "The last run failed: the documents name nothing" in reader.text(".empty")
    page.click(".empty >> text=Open the job")
    page.wait_for_url("**/jobs/*")
