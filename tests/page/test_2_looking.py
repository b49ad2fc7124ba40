"""Every page can be used by everybody: by eye, by ear, by keyboard, in the dark, on a phone."""

import pytest

from holdfast.chaos.waiting import until
from tests.page.browser_user import Api
from tests.page.sample_data import World

PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def shelf(stand):
    """A collection with a document in every state that rests, and the addresses of all pages."""
    api = Api(stand.address)
    api.collection("shelf")
    name = api.text("shelf", "Anchors", "Anchors hold in mud.\n\nRopes wear out.")
    broken = World(api).upload("shelf", "broken.pdf", b"%PDF-1.4 this is no PDF")
    until(lambda: api.document(name)["ready"], 30, "it is not indexed")
    until(lambda: api.document(broken)["index_status"] == "failed", 30, "it does not fail")
    crew = api.text(
        "shelf", "Crew", "Ann Archer and Ben Baker sail from Port Alder. Ben Baker met Cora Cole."
    )
    until(lambda: api.document(crew)["ready"], 30, "it is not indexed")
    graph = api.call("POST", "collections/shelf/jobs", {"kind": "graph"})["job_id"]
    api.collection("bare")
    action = {"sort": "prompt", "name": "Abstract", "params": {"instruction": "Sum it up."}}
    api.call("POST", "collections/shelf/actions", action)
    api.call("PUT", "budgets", {"scope": "collection:bare", "hard": 5, "soft": 1})
    job = api.call("POST", "collections/shelf/jobs", {"kind": "qa", "params": {"limit": 3}})["job_id"]
    until(lambda: api.get(f"jobs/{job}")["job"]["state"] == "success", 60, "the job does not end")
    until(lambda: api.get(f"jobs/{graph}")["job"]["state"] == "success", 60, "the graph is not built")
    entity = api.get("collections/shelf/graph?q=Ben%20Baker")["entities"][0]
    return {
        "graph": "/collections/shelf/graph",
        "no graph": "/collections/bare/graph",
        "entity": f"/collections/shelf/graph?entity={entity['key']}",
        "report": f"/collections/shelf/graph?community={entity['community']}",
        "home": "/",
        "collection": "/collections/shelf",
        "actions": "/collections/shelf/actions",
        "no actions": "/collections/bare/actions",
        "nothing in it": "/collections/bare",
        "document": f"/documents/{name}",
        "failed": f"/documents/{broken}",
        "nothing found": "/search?collection=bare&q=anchors",
        "not there": "/collections/nowhere",
        "search": "/search?collection=shelf&q=anchors",
        "jobs": "/jobs",
        "job": f"/jobs/{job}",
        "bill": "/bill",
        "operations": "/operations",
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(look, stand, shelf, scheme):
    """Names, roles, order, contrast."""
    reader = look(stand.address, color_scheme=scheme)
    wrong = {}
    for name, path in shelf.items():
        reader.open(path)
        wrong[name] = reader.judged()
    assert {name: result for name, result in wrong.items() if result} == {}


def test_nothing_is_wider_than_a_phone(look, stand, shelf):
    """No page scrolls sideways at 390 pixels."""
    reader = look(stand.address)
    reader.page.set_viewport_size(PHONE)
    wide = {}
    for name, path in shelf.items():
        page = reader.open(path)
        wide[name] = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
    assert {name: over for name, over in wide.items() if over > 0} == {}


def test_dark_follows_the_system_and_can_be_chosen(look, stand):
    """Dark where the system is; another theme can be selected, and the next page remembers it."""
    reader = look(stand.address, color_scheme="dark")
    page = reader.open("/")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.select_option("#theme", "light")
    light = page.evaluate(ground)
    assert dark != light
    assert sum(int(n) for n in light.strip("rgb()").split(",")) > 700
    reader.open("/bill")
    assert page.evaluate(ground) == light
    page.select_option("#theme", "system")
    reader.open("/jobs")
    assert (page.evaluate(ground), page.input_value("#theme")) == (dark, "system")


def test_the_keyboard_is_enough(reader, shelf):
    """Skip link first, then the navigation; a dialog is opened, filled, and left with Escape."""
    page = reader.open("/")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#new-collection[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("#new-collection:not([open])", state="attached")
    page.keyboard.press("Enter")
    page.wait_for_selector("#new-collection[open]")
    page.keyboard.type("By keyboard")
    page.keyboard.press("Enter")
    page.wait_for_url("**/collections/*")
    assert reader.text("h1") == "By keyboard"


def test_without_scripts_everything_can_still_be_read(look, stand, shelf):
    """The server renders all of it: numbers, story, results; links and forms lead on."""
    reader = look(stand.address, java_script_enabled=False)
    for path in shelf.values():
        assert reader.open(path, live=False).query_selector("main h1") is not None
    page = reader.open("/collections/shelf", live=False)
    page.fill("#by-title", "anch")
    page.click("#tools button")
    assert len(page.query_selector_all("li.doc")) == 1


def test_what_others_wrote_is_text_and_never_code(reader, api):
    """A title, a text and a collection that are written to break out of their place."""
    nasty = "<img src=x onerror=alert(1)>\"'--><script>window.broken = 1</script>"
    api.call("POST", "collections", {"id": "nasty", "title": nasty})
    name = api.text("nasty", nasty, f"{nasty} anchors hold")
    until(lambda: api.document(name)["ready"], 30, "it is not indexed")
    for path in ("/", "/collections/nasty", f"/documents/{name}", "/search?collection=nasty&q=anchors"):
        page = reader.open(path)
        assert nasty.partition('"')[0] in page.inner_text("main")
        assert page.evaluate("() => window.broken") is None
        assert page.query_selector("main img[src=x]") is None


def test_dialogs_are_as_good_as_pages(look, stand, shelf):
    """Each that can be opened is judged as it stands open, light and dark."""
    wrong = {}
    for scheme in ("light", "dark"):
        reader = look(stand.address, color_scheme=scheme)
        for name in ("home", "collection", "actions", "jobs"):
            page = reader.open(shelf[name])
            for dialog in page.query_selector_all("dialog:has(form.stack)"):
                dialog.evaluate("(one) => one.showModal()")
                if result := reader.judged():
                    wrong[f"{name} {dialog.get_attribute('id')} {scheme}"] = result
                dialog.evaluate("(one) => one.close()")
    assert wrong == {}


def test_an_estimate_holds_for_what_was_estimated(reader, api, shelf):
    """A value that is changed while the estimate is on its way is not applied at the price of another."""
    page = reader.open("/collections/shelf")
    page.click("text=Options")
    page.fill("#o-chunk_size", "512")
    held = []

    def hold(route):
        held.append(route)

    page.route("**/api/v1/estimate", hold)
    page.click("#options >> text=Estimate")
    until(lambda: page.evaluate("() => 1") and held, 30, "no estimate was asked for")
    page.fill("#o-chunk_size", "640")
    held[0].continue_()
    page.wait_for_selector("#options .problem:not([hidden])")
    assert page.locator("#options >> text=Apply").is_disabled()


def test_a_job_is_estimated_before_it_is_started(reader, api, shelf):
    """The dialog says what it would cost; only then can it be started."""
    page = reader.open("/jobs")
    page.click("text=New job")
    page.select_option("#job-collection", "shelf")
    page.fill("#job-qa-limit", "2")
    start = page.locator("#new-job button:has-text('Start')")
    assert start.is_disabled()
    page.click("#new-job >> text=Estimate")
    reader.shows("#new-job [data-estimated]", " paid call")
    start.click()
    page.wait_for_url("**/jobs/*")


def test_a_job_of_the_page_may_wait_for_documents_and_has_a_limit(reader, api, shelf):
    """The box and the amount in the dialog are what the request says."""
    page = reader.open("/jobs")
    page.click("text=New job")
    page.select_option("#job-collection", "shelf")
    page.fill("#job-qa-limit", "4")
    page.check("#new-job [name=wait_for_ready]")
    page.fill("#job-max-cost", "1.5")
    page.click("#new-job >> text=Estimate")
    reader.shows("#new-job [data-estimated]", " paid call")
    with page.expect_request(lambda sent: sent.url.endswith("/collections/shelf/jobs")) as sent:
        page.click("#new-job button:has-text('Start')")
    assert sent.value.post_data_json["wait_for_ready"] is True
    assert sent.value.post_data_json["max_cost"] == 1.5
    page.wait_for_url("**/jobs/*")


def test_options_are_estimated_before_they_are_applied(reader, api, shelf):
    """The change is priced first; only then can it be asked for."""
    page = reader.open("/collections/shelf")
    page.click("text=Options")
    page.fill("#o-chunk_size", "64")
    apply = page.locator("#options >> text=Apply")
    assert apply.is_disabled()
    page.click("#options >> text=Estimate")
    page.wait_for_selector("[data-estimated]:not([hidden])")
    page.fill("#o-max-cost", "2.5")  # no estimate depends on it
    with page.expect_request(lambda sent: sent.method == "PATCH") as sent:
        apply.click()
    assert (sent.value.post_data_json["max_cost"], sent.value.post_data_json["options"]) == (
        2.5,
        {"chunk_size": 64},
    )
    until(lambda: api.get("collections/shelf")["options"] == {"chunk_size": 64}, 30, "nothing was changed")
