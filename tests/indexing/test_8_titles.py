"""A document is found by what it is called, as well as by what it says."""

import pytest

from holdfast.service.requests import RequestContext
from tests.indexing.house import WISH

SAID = "Ropes are inspected every spring.\n\nThe keeper signs the book."


def titles(house, words, **more):
    return [hit.title for hit in house.find(words, **more)]


def test_a_document_is_found_by_its_title_and_by_its_file_name(house):
    """By words that it does not say; a file's ending is no word of its name."""
    house.indexed(SAID, "docs/harbour/mooring_rules-2024.pdf.txt", title="Berthing regulations")
    house.indexed("Nothing to see here.", "other.txt")
    assert titles(house, "berthing regulation") == ["Berthing regulations"]
    assert titles(house, "mooring rules") == ["Berthing regulations"]
    assert titles(house, "harbour 2024") == ["Berthing regulations"]
    assert titles(house, "txt") == []


def test_the_part_that_answers_stands_for_the_document(house):
    """Not its beginning, when the words of the query are further in."""
    text = "\n\n".join(
        f"Part {n}. " + f"{word} " * 200 for n, word in enumerate(("anchor", "lantern", "rudder"))
    )
    house.indexed(text, title="Ship manual")
    house.indexed("A lantern.", title="Lamps")
    best = house.find("ship manual lantern")[0]
    assert (best.title, "lantern" in best.text) == ("Ship manual", True)


@pytest.mark.g3
def test_a_title_leads_only_to_what_is_published_and_ones_own(house):
    """Renamed, not yet indexed, deleted, of another collection or tenant: as the snapshot says."""
    found = house.indexed(SAID, title="Berthing regulations")
    house.collections.make(RequestContext(tenant="rival"), "shelf")
    house.indexed("Something else.", to="attic")
    house.upload("Waiting.", title="Berthing fees")
    assert titles(house, "berthing") == ["Berthing regulations"]
    assert titles(house, "berthing", where="attic") == titles(house, "berthing", tenant="rival") == []
    house.documents.change(WISH, found.id, title="Storm signals")
    assert titles(house, "berthing") == []
    assert titles(house, "storm") == ["Storm signals"]
    house.work()
    assert titles(house, "berthing") == ["Berthing fees"]
    house.documents.delete(WISH, found.id)
    assert titles(house, "storm") == []
