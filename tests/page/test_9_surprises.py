"""What nobody planned for: quick hands, two windows, the wrong page, endless titles, hundreds of files."""

from holdfast.chaos.waiting import until

LONG = "Unbrokenwordwithoutanend" * 20
DROP = """() => {
  const carried = new DataTransfer();
  carried.items.add(new File(["Anchors"], "a.txt", {type: "text/plain"}));
  const told = new DragEvent("drop", {dataTransfer: carried, bubbles: true, cancelable: true});
  document.body.dispatchEvent(told);
  return told.defaultPrevented;
}"""


def test_two_quick_clicks_create_one_collection(reader, api):
    """Both are made before the first is answered."""
    page = reader.open("/")
    page.click("text=New collection >> nth=0")
    page.fill("#new-title", "Only once")
    page.evaluate(
        "() => { for (const _ of [1, 2]) document.querySelector('#new-collection .main').click(); }"
    )
    page.wait_for_url("**/collections/*")
    page.wait_for_selector("#live[data-state=live]")
    assert [one["title"] for one in api.get("collections")["collections"]].count("Only once") == 1


def test_what_was_deleted_in_another_window_is_told(reader, api):
    """A document and a collection: the web UI does not go on showing them as if they were there."""
    api.collection("gone")
    name = api.text("gone", "Short-lived", "Anchors hold.")
    until(lambda: api.document(name)["ready"], 30, "it is not indexed")
    page = reader.open(f"/documents/{name}")
    api.call("DELETE", f"documents/{name}")
    page.wait_for_selector("#gone:not([hidden])")
    reader.open("/collections/gone")
    other = api.text("gone", "Another", "Ropes wear out.")
    page.wait_for_selector(f"#d-{other}")
    api.call("DELETE", "collections/gone")
    page.wait_for_selector("#gone:not([hidden])")


def test_a_file_dropped_on_the_wrong_page_does_not_leave_it(reader):
    """Without this the browser would open the file in place of the page."""
    page = reader.open("/bill")
    assert page.evaluate(DROP) is True
    reader.shows("#said", "Open a collection to upload files")


def test_an_endless_title_breaks_no_page(reader, api):
    """In the list, on its own page, in a dialog and in the uploads, on a phone."""
    api.collection("endless")
    name = api.text("endless", LONG, "Anchors hold.")
    page = reader.page
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/collections/endless", f"/documents/{name}"):
        reader.open(path)
        assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0, path
    reader.open("/collections/endless")
    page.set_input_files(
        "#files", {"name": f"{LONG[:200]}.png", "mimeType": "image/png", "buffer": b"\0" * 99}
    )
    page.wait_for_selector("#uploads li[data-state=failed]")
    assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0


def test_hundreds_of_files_are_asked_about_and_then_all_sent(reader, api):
    """One question, one panel; when it is gone every file is there once."""
    api.collection("hundreds")
    page = reader.open("/collections/hundreds")
    many = [
        {"name": f"{n}.txt", "mimeType": "text/plain", "buffer": f"File {n} of many.".encode()}
        for n in range(150)
    ]
    page.set_input_files("#files", many)
    page.click("#sure-yes:has-text('Upload')")
    page.wait_for_function(
        "() => document.querySelectorAll('#uploads-list > li').length === 150"
        " || document.getElementById('uploads-sum').textContent.includes('indexed')"
    )
    assert page.locator("#uploads").bounding_box()["height"] < 300
    until(lambda: count(api, "hundreds") == 150, 90, "not all were sent", every=0.5)


def count(api, collection):
    return len(api.get(f"collections/{collection}/documents?limit=500")["documents"])


def test_the_keyboard_selects_and_dismisses_without_losing_its_place(reader, api):
    """Space ticks, Escape clears; after a row of the uploads is dismissed the next one has the focus."""
    api.collection("keys")
    api.text("keys", "Paper", "Paper is short.")
    page = reader.open("/collections/keys")
    page.focus("input[name=pick]")
    page.keyboard.press("Space")
    page.wait_for_selector("#bulk:not([hidden])")
    page.keyboard.press("Escape")
    page.wait_for_selector("#bulk", state="hidden")
    assert page.evaluate("() => document.activeElement.name") == "pick"
    bad = [{"name": f"{n}.png", "mimeType": "image/png", "buffer": bytes([0, n])} for n in range(2)]
    page.set_input_files("#files", bad)
    page.wait_for_function("() => document.querySelectorAll('#uploads li[data-state=failed]').length === 2")
    page.focus("#uploads li >> nth=0 >> text=Dismiss")
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.closest('#uploads li') !== null")
    assert reader.judged() == []
