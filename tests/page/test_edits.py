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
