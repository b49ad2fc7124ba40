"""The budget form of the Bill page: a limit is set, changed and removed, and what is typed stays."""


def put(page, **values):
    """What the API answered to the form with these values."""
    for name, value in values.items():
        page.fill(f"#{name}", value)
    with page.expect_response(lambda one: one.request.method == "PUT") as answer:
        page.click("#budget-form button")
    return answer.value


def test_a_limit_is_set_changed_and_removed_in_the_form(reader, api):
    """Each is answered with 200, is shown, and is what the API says afterwards."""
    page = reader.open("/bill")
    assert put(page, hard="5", soft="2").status == 200
    reader.shows("section[aria-labelledby=budgets]", "of $5.00")
    assert put(page, hard="7.5").status == 200
    reader.shows("section[aria-labelledby=budgets]", "of $7.50")
    (budget,) = api.get("budgets")["budgets"]
    assert (budget["hard"], budget["soft"]) == (7.5, 2)
    page.click("section[aria-labelledby=budgets] li button")
    page.click("#sure-yes")
    reader.shows("section[aria-labelledby=budgets]", "No budget is set")
    assert api.get("budgets")["budgets"] == []


def test_what_is_typed_while_an_answer_is_on_its_way_stays(reader, api):
    """The form is emptied of what was sent alone; what came after is the next request, not an empty one."""
    page = reader.open("/bill")

    def late(route):
        response = route.fetch()
        page.fill("#hard", "9")
        route.fulfill(response=response)

    page.route("**/api/v1/budgets", late, times=1)
    assert put(page, hard="5").status == 200
    page.wait_for_selector("#budget-form button:not([aria-busy])")
    assert page.input_value("#hard") == "9"
    assert put(page).status == 200
    reader.shows("section[aria-labelledby=budgets]", "of $9.00")
    api.call("PUT", "budgets", {"scope": "tenant", "hard": None})


def test_what_is_typed_stays_while_the_page_refreshes_itself(reader, api):
    """From the first refresh on: the form with its values and its focus is the one that was there."""
    page = reader.open("/bill", live=False)
    page.fill("#hard", "9")
    page.select_option("#period", "day")
    page.evaluate("document.getElementById('budget-form').mark = 'mine'")
    page.wait_for_selector("#live[data-state=live]")
    for limit in (3, 4):
        api.call("PUT", "budgets", {"scope": "tenant", "hard": limit})
        reader.shows("section[aria-labelledby=budgets]", f"of ${limit}.00")
    assert (page.input_value("#hard"), page.input_value("#period")) == ("9", "day")
    assert page.evaluate("document.getElementById('budget-form').mark") == "mine"
    assert page.evaluate("document.activeElement.id") == "hard"
    api.call("PUT", "budgets", {"scope": "tenant", "hard": None})


def test_a_section_that_appears_above_takes_nothing_from_the_form(reader, api):
    """As one does for orders in doubt: what is below it is the same as before, in its place."""
    page = reader.open("/bill")
    page.fill("#hard", "9")
    above = '<section aria-labelledby="orders"><h2 id="orders">In doubt or parked</h2></section>'

    def rendered(route):
        response = route.fetch()
        route.fulfill(response=response, body=response.text().replace("</dl>", f"</dl>{above}", 1))

    page.route("**/bill", rendered)
    api.call("PUT", "budgets", {"scope": "tenant", "hard": 3})
    page.wait_for_selector("#orders")
    assert page.input_value("#hard") == "9"
    assert page.locator("#budget-form").count() == page.locator("#by-model").count() == 1
    titles = page.locator("#main h2").all_inner_texts()
    assert titles.index("In doubt or parked") == 0 < titles.index("By model") < titles.index("Budgets")
    page.unroute("**/bill", rendered)
    assert put(page).status == 200
    reader.shows("section[aria-labelledby=budgets]", "of $9.00")
    api.call("PUT", "budgets", {"scope": "tenant", "hard": None})


def test_a_second_limit_that_is_set_while_the_first_is_on_its_way_is_set_too(reader, api):
    """A click in that moment is neither lost nor takes the values of the first."""
    page = reader.open("/bill")
    sent = []

    def slow(route):
        sent.append(route.request.post_data_json["hard"])
        if len(sent) == 1:
            page.fill("#hard", "8")
            page.click("#budget-form button")
        route.continue_()

    page.route("**/api/v1/budgets", slow)
    page.fill("#hard", "5")
    page.click("#budget-form button")
    reader.shows("section[aria-labelledby=budgets]", "of $8.00")
    assert sent == [5, 8]
    api.call("PUT", "budgets", {"scope": "tenant", "hard": None})
