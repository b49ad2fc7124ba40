"""Passages are edited, turned off and restored in the web UI."""

import pytest

from holdfast.chaos.waiting import until
from tests.api.install import ApiInstall


@pytest.fixture
def library(sqlite_url, tmp_path):
    """An installation with a document of three passages."""
    install = ApiInstall(sqlite_url, tmp_path / "data")
    document = install.client.indexed(
        "The heron rests in the reeds.---The lamp costs ten.---All rights reserved.",
        options={"delimiter": "---"},
    )
    yield install, document["id"]
    install.close()


def test_a_passage_is_edited_turned_off_and_restored(library, look):
    """Each shows its badge once the new version is ready; what it was before can be seen."""
    install, document = library
    reader = look(f"http://127.0.0.1:{install.port}")
    page = reader.open(f"/documents/{document}")
    passage = page.locator("#passages > li")

    def becomes(number, text):
        install.work()
        page.reload()
        until(lambda: text in passage.nth(number).inner_text(), 30, f"{text} is not shown")

    passage.nth(1).get_by_role("button", name="Edit").click()
    field = page.locator("#edit-passage-text")
    assert field.input_value() == "The lamp costs ten."
    field.fill("The lamp costs twelve.")
    page.locator("#edit-passage-form .main").click()
    until(lambda: install.client.get(f"documents/{document}/edits").json["edits"], 30, "it was not saved")
    becomes(1, "Edited")
    passage.nth(2).get_by_role("button", name="Turn off").click()
    until(lambda: len(install.client.get(f"documents/{document}/edits").json["edits"]) == 2, 30, "not off")
    becomes(2, "Off")
    assert "The lamp costs twelve." in passage.nth(1).inner_text()
    assert reader.judged() == []
    passage.nth(1).get_by_role("button", name="Restore original").click()
    until(
        lambda: len(install.client.get(f"documents/{document}/edits").json["edits"]) == 1, 30, "not restored"
    )
    becomes(1, "The lamp costs ten.")


def test_an_edit_of_a_version_that_is_not_the_latest_is_refused_and_says_so(library, look):
    """Somebody else changed the passage while the dialog was open: nothing is overwritten, the text stays."""
    install, document = library
    page = look(f"http://127.0.0.1:{install.port}").open(f"/documents/{document}")
    page.locator("#passages > li").nth(1).get_by_role("button", name="Edit").click()
    page.locator("#edit-passage-text").fill("The lamp costs twelve.")
    chunk = install.client.get(f"documents/{document}/chunks").json["chunks"][1]["id"]
    path = f"/api/v1/documents/{document}/chunks/{chunk}"
    assert install.client.call("PATCH", path, {"text": "The lamp costs eleven."}).status == 202
    page.locator("#edit-passage-form .main").click()
    problem = page.locator("#edit-passage-form .problem")
    until(lambda: "has changed since" in problem.inner_text(), 30, "nothing was said")
    assert page.locator("#edit-passage-text").input_value() == "The lamp costs twelve."
    (edit,) = install.client.get(f"documents/{document}/edits").json["edits"]
    assert edit["text"] == "The lamp costs eleven."
