"""What a person sets out to do gets done: select, replace, upload many, drop a folder, go back."""

import re
import signal

import pytest

from holdfast.chaos.waiting import until
from tests.api.install import ApiInstall
from tests.documents import files as documents

HEIC = b"\0\0\0\x18ftypheic" + bytes(range(256)) * 40


def drop(page, *paths):
    """Files and folders of the disk are dropped on the web UI, as by hand."""
    session = page.context.new_cdp_session(page)
    box = page.locator("#drop").bounding_box()
    carried = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    for step in ("dragEnter", "dragOver", "drop"):
        where = {"x": box["x"] + 20, "y": box["y"] + 10}
        session.send("Input.dispatchDragEvent", {"type": step, "data": carried, **where})


def files(number, text="Paper {n} is short."):
    return [
        {"name": f"paper-{n:03}.txt", "mimeType": "text/plain", "buffer": text.format(n=n).encode()}
        for n in range(number)
    ]


def top(page, selector):
    return page.locator(selector).bounding_box()["y"]


def test_ticking_a_row_moves_nothing(reader, api):
    """The bar for many lies over the page: the row under the pointer stays there, wide and on a phone."""
    api.collection("ticked")
    for number in range(3):
        api.text("ticked", f"Paper {number}", f"Paper {number} is short.")
    page = reader.open("/collections/ticked")
    page.wait_for_function("() => document.querySelectorAll('li.doc[data-status=success]').length === 3")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 860})
        before = top(page, "li.doc >> nth=0")
        page.check("li.doc >> nth=0 >> input[name=pick]")
        page.wait_for_selector("#bulk:not([hidden])")
        assert top(page, "li.doc >> nth=0") == before
        page.keyboard.press("Escape")
        page.wait_for_selector("#bulk", state="hidden")
        assert page.locator("input[name=pick]:checked").count() == 0


def test_a_failed_document_takes_another_file(reader, api):
    """In the list and on its own page: the file is replaced, and the document becomes ready."""
    api.collection("replaced")
    page = reader.open("/collections/replaced")
    for number in range(2):
        broken = f"%PDF-1.4 this is no PDF {number}".encode()
        page.set_input_files(
            "#files", {"name": f"bad-{number}.pdf", "mimeType": "application/pdf", "buffer": broken}
        )
    page.wait_for_function("() => document.querySelectorAll('li.doc[data-status=failed]').length === 2")
    with page.expect_file_chooser() as chooser:
        page.click("li.doc[data-status=failed] >> nth=0 >> text=Replace file")
    chooser.value.set_files(files(1)[0])
    page.wait_for_selector("li.doc[data-status=success]")
    page.click("li.doc[data-status=failed] a")
    page.wait_for_selector(".why[data-status=failed]")
    with page.expect_file_chooser() as chooser:
        page.click(".why >> text=Replace file")
    chooser.value.set_files({"name": "good.txt", "mimeType": "text/plain", "buffer": b"Anchors hold."})
    page.wait_for_selector(".why[data-status=success]")


def test_a_file_that_cannot_be_read_is_not_shown_as_accepted(reader, api):
    """What the content gives away is refused at once; what only the work finds out is told in its row."""
    api.collection("unreadable")
    page = reader.open("/collections/unreadable")
    page.set_input_files("#files", {"name": "photo.heic", "mimeType": "image/heic", "buffer": HEIC})
    reader.shows("#uploads li", "not supported")
    assert api.get("collections/unreadable/documents")["documents"] == []
    page.click("#uploads li >> text=Dismiss")
    old = documents.compound(b"Anchors hold.", "WordDocument")
    page.set_input_files("#files", {"name": "old.doc", "mimeType": "application/msword", "buffer": old})
    page.wait_for_selector("#uploads li[data-state=failed]")
    assert "save it as DOCX" in reader.text("#uploads li")
    assert page.locator("#uploads .good").count() == 0
    assert page.locator("#uploads li progress:visible").count() == 0


def test_forty_uploads_leave_the_list_in_sight_and_can_be_cancelled(reader, api, stand):
    """The server hangs meanwhile: those under way and those that wait are cancelled with one click."""
    api.collection("forty")
    page = reader.open("/collections/forty")
    page.set_input_files("#files", files(2))
    page.wait_for_function("() => document.querySelectorAll('li.doc[data-status=success]').length === 2")
    page.wait_for_selector("#uploads", state="hidden")
    stand.api.tell(signal.SIGSTOP)
    try:
        page.set_input_files("#files", files(40, "Another paper, {n}."))
        reader.shows("#uploads-sum", "of 40")
        assert top(page, "li.doc >> nth=0") < 860
        page.click("#uploads li >> nth=0 >> text=Cancel")
        page.click("#uploads >> text=Cancel all")
        page.wait_for_selector("#uploads", state="hidden")
    finally:
        stand.api.tell(signal.SIGCONT)
    page.wait_for_selector("#live[data-state=live]")
    page.set_input_files("#files", files(40, "A third paper, {n}."))
    page.wait_for_selector("#uploads", state="hidden")
    until(lambda: len(api.get("collections/forty/documents?limit=100")["documents"]) >= 42, 30, "not all")


def test_an_upload_that_fails_shows_no_full_bar_and_is_sent_again(reader, api, stand):
    """The API is down: each row says so; one click sends it again when the API is back."""
    api.collection("cut")
    page = reader.open("/collections/cut")
    stand.api.tell()
    stand.api.ended(30)
    page.set_input_files("#files", files(1))
    page.wait_for_selector("#uploads li[data-state=failed]")
    assert page.locator("#uploads li progress:visible").count() == 0
    stand.serve()
    page.wait_for_selector("#live[data-state=live]")
    page.click("#uploads li >> text=Retry")
    page.wait_for_selector("li.doc[data-status=success]")


def test_a_folder_is_uploaded_with_what_is_in_it(reader, api, tmp_path):
    """Also what lies deeper; hidden files are left out, and an empty folder is told as one."""
    api.collection("folders")
    (tmp_path / "papers/old").mkdir(parents=True)
    (tmp_path / "papers/new.txt").write_text("Anchors hold in mud.")
    (tmp_path / "papers/old/new.txt").write_text("Ropes wear out.")
    (tmp_path / "papers/.hidden").write_text("Nobody wants this.")
    (tmp_path / "empty").mkdir()
    page = reader.open("/collections/folders")
    drop(page, tmp_path / "papers", tmp_path / "empty")
    page.wait_for_function("() => document.querySelectorAll('li.doc[data-status=success]').length === 2")
    titles = {one["title"] for one in api.get("collections/folders/documents")["documents"]}
    assert titles == {"papers/new.txt", "papers/old/new.txt"}
    drop(page, tmp_path / "empty")
    reader.shows("#said", "no files")


def test_an_unknown_address_is_a_page_for_people_and_json_for_programs(install, look):
    """With the way home; a slash too many leads to the page that was meant."""
    reader = look(f"http://127.0.0.1:{install.port}")
    page = reader.open("/no/such/page")
    assert reader.text("h1") == "Page not found"
    page.click(".empty >> text=Go to Home")
    page.wait_for_selector("#collections")
    reader.open("/operations/")
    assert reader.text("h1") == "Operations"
    assert page.url.endswith("/operations")
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    said = install.client.get("nothing", headers=browser)
    assert (said.status, said.code) == (404, "not_found")
    said = install.client.get("/no/such/page", headers={"Accept": "application/json"})
    assert (said.status, said.code) == (404, "not_found")
    install.key("anna", "read")
    reader.open("/no/such/page", live=False)
    assert reader.text("h1") == "Page not found"
    assert page.locator("nav").count() == 0


@pytest.fixture
def shelves(sqlite_url, tmp_path):
    """An installation with some hundred documents that are queued."""
    install = ApiInstall(sqlite_url, tmp_path / "data")
    for number in range(230):
        install.client.text(f"Text number {number}.", title=f"Paper {number:03}")
    yield install
    install.close()


def test_back_leads_to_the_place_in_the_list(shelves, look):
    """Filter, order and the row that was looked at: the second hundred is fetched again by itself."""
    reader = look(f"http://127.0.0.1:{shelves.port}")
    page, link = reader.open("/collections/shelf?status=queued&sort=title"), "a:text('Paper 150')"
    while not page.locator(link).count():
        before = page.locator("li.doc").count()
        page.evaluate("() => document.querySelector('.more').scrollIntoView()")
        page.wait_for_function("(n) => document.querySelectorAll('li.doc').length > n", arg=before)
    page.locator(link).scroll_into_view_if_needed()
    position = top(page, link)
    page.click(link)
    page.wait_for_selector(".why")
    page.go_back()
    page.wait_for_selector(link)
    until(lambda: abs(top(page, link) - position) < 4, 15, "it is elsewhere")
    assert page.input_value("#sort") == "title"
    page.click(link)
    page.wait_for_selector(".why")
    page.click(".crumbs >> text=shelf")
    page.wait_for_selector(link)
    assert re.search(r"status=queued&sort=title$", page.url)
    until(lambda: abs(top(page, link) - position) < 4, 15, "it is elsewhere")


def test_a_webhook_to_a_forbidden_address_is_refused_when_it_is_added(sqlite_url, tmp_path, look):
    """Beside the field, with the reason and the setting that allows it; nothing is added."""
    guarded = ApiInstall(sqlite_url, tmp_path / "data")
    try:
        guarded.client.collection("shelf")
        reader = look(f"http://127.0.0.1:{guarded.port}")
        page = reader.open("/collections/shelf/actions")
        page.click("text=Add action")
        page.select_option("#action-sort", "webhook")
        for url in ("http://127.0.0.1:9/hook", "http://localhost:9/hook", "http://169.254.169.254/"):
            page.fill("#action-webhook-url", url)
            page.click("#new-action >> text=Estimate")
            reader.shows("#new-action .problem", "HOLDFAST_WEBHOOK_PRIVATE")
            assert page.is_disabled("#new-action button:has-text('Add')")
            said = guarded.client.post(
                "collections/shelf/actions", {"sort": "webhook", "params": {"url": url}}
            )
            assert (said.status, said.code) == (400, "url_forbidden")
        assert guarded.client.get("collections/shelf/actions").json["actions"] == []
        page.keyboard.press("Escape")
    finally:
        guarded.close()
