"""`why` says where a document comes from: a source, an archive, an upload."""

import json

import pytest

from holdfast.service.documents import Upload
from tests.commands import caller
from tests.documents import files
from tests.looks.install import WISH


@pytest.fixture
def why(install, monkeypatch, capsys):
    """`why(document)` is what the command says of it, in one line; with more arguments, as they say."""
    values = {"DATA_DIR": install.settings.data_dir, "DATABASE_URL": install.settings.database}
    for name, value in values.items():
        monkeypatch.setenv(f"HOLDFAST_{name}", str(value))
    command = caller(monkeypatch, capsys)

    def say(document, *more):
        code, said, _ = command("why", f"document:{document.id}", *more)
        assert code == 0, said
        return " ".join(said.split())

    return say


def test_a_document_of_a_source_names_the_source_and_the_item(install, why):
    """Also when the item is gone from it."""
    install.write("tides.txt", "High at noon.")
    source = install.add(name="Harbour papers")
    install.work()
    document = install.shelf()["tides.txt"]
    assert f"It came from source Harbour papers ({source.id}): tides.txt" in why(document)
    (story,) = json.loads(why(document, "--json"))
    assert [each["external_id"] for each in story["origins"]] == ["tides.txt"]
    (install.folder / "tides.txt").unlink()
    install.write("other.txt", "Low at six.")
    install.look(source)
    assert "tides.txt, where it is no longer" in why(document)


def test_a_document_of_an_archive_names_the_archive(install, why):
    """And the archive itself was uploaded."""
    content = files.archive({"tides.txt": b"High at noon."})
    archive = install.documents.add(WISH, "shelf", [Upload(content, "papers.zip")])[0].document
    install.work()
    assert f"It is inside papers.zip (document:{archive.id})." in why(install.shelf()["tides.txt"])
    assert "It was uploaded as papers.zip" in why(archive)


def test_a_text_says_that_it_was_sent_as_one(install, why):
    """There is no file whose name could be told."""
    text = Upload(b"High at noon.", title="Tides", source="text")
    document = install.documents.add(WISH, "shelf", [text])[0].document
    assert "It was sent as text." in why(document)
