"""The Options of a collection choose the parser of each format."""

import pytest

from tests.api.install import ApiInstall


@pytest.fixture
def parsing(sqlite_url, tmp_path):
    """An installation with two parsers of its user."""
    names = ("harbour:Tides", "harbour:Charts")
    installation = ApiInstall(sqlite_url, tmp_path / "data", parsers=names)
    installation.client.collection("shelf")
    yield installation
    installation.close()


def test_a_parser_is_chosen_and_taken_back(parsing, look):
    """With the names that there are; what is not chosen is not sent, and no choice is none."""
    reader = look(f"http://127.0.0.1:{parsing.port}")
    for chosen, stored in (("harbour:Charts", {"parsers": {"pdf": "harbour:Charts"}}), ("", {})):
        page = reader.open("/collections/shelf")
        page.click("[data-open=options]")
        page.click("#o-parsers summary")
        names = page.eval_on_selector_all("#o-parser-pdf option", "each => each.map((one) => one.value)")
        assert names == ["", "holdfast", "harbour:Tides", "harbour:Charts"]
        page.select_option("#o-parser-pdf", chosen)
        page.click("#options [data-ask-estimate]")
        page.wait_for_selector("#options [data-after-estimate]:not([disabled])")
        with page.expect_response(lambda one: one.request.method == "PATCH") as answer:
            page.click("#options [data-after-estimate]")
        assert answer.value.status == 200
        assert parsing.client.get("collections/shelf").json["options"] == stored
