"""A document is found by what it is called, as well as by what it says."""

import pytest

from holdfast.service.requests import RequestContext
from tests.indexing.install import WISH

SAID = "Ropes are inspected every spring.\n\nThe keeper signs the book."


def titles(install, words, **more):
    return [hit.title for hit in install.find(words, **more)]


def test_a_document_is_found_by_its_title_and_by_its_file_name(install):
    """By words that it does not say; a file's ending is no word of its name."""
    install.indexed(SAID, "docs/harbour/mooring_rules-2024.pdf.txt", title="Berthing regulations")
    install.indexed("Nothing to see here.", "other.txt")
    assert titles(install, "berthing regulation") == ["Berthing regulations"]
    assert titles(install, "mooring rules") == ["Berthing regulations"]
    assert titles(install, "harbour 2024") == ["Berthing regulations"]
    assert titles(install, "txt") == []


def test_the_part_that_answers_stands_for_the_document(install):
    """Not its beginning, when the words of the query are further in."""
    text = "\n\n".join(
        f"Part {n}. " + f"{word} " * 200 for n, word in enumerate(("anchor", "lantern", "rudder"))
    )
    install.indexed(text, title="Ship manual")
    install.indexed("A lantern.", title="Lamps")
    best = install.find("ship manual lantern")[0]
    assert (best.title, "lantern" in best.text) == ("Ship manual", True)


@pytest.mark.g3
def test_a_title_leads_only_to_what_is_published_and_ones_own(install):
    """Renamed, not yet indexed, deleted, of another collection or tenant: as the snapshot says."""
    document = install.indexed(SAID, title="Berthing regulations")
    install.collections.make(RequestContext(tenant="rival"), "shelf")
    install.indexed("Something else.", to="attic")
    install.upload("Waiting.", title="Berthing fees")
    assert titles(install, "berthing") == ["Berthing regulations"]
    assert titles(install, "berthing", where="attic") == titles(install, "berthing", tenant="rival") == []
    install.documents.change(WISH, document.id, title="Storm signals")
    assert titles(install, "berthing") == []
    assert titles(install, "storm") == ["Storm signals"]
    install.work()
    assert titles(install, "berthing") == ["Berthing fees"]
    install.documents.delete(WISH, document.id)
    assert titles(install, "storm") == []
