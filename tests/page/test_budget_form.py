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
    reader.shows("section[aria-labelledby=budgets]", "There is no budget")
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
