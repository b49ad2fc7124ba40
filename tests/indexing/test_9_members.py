"""Files of archives and attachments of messages become documents, with their container and gone with it."""

import dataclasses
import io
import zipfile
from email.message import EmailMessage

import pytest

from holdfast.core.errors import NotFoundError
from holdfast.core.states import Status
from holdfast.documents.parse.records import MIB
from holdfast.store.library import document_moves
from holdfast.store.library.quotas import Quota
from tests.documents import files
from tests.indexing.install import WISH

TIDE, MOON = "The tide is high at noon.", "The moon is full tonight."


def archive(**members):
    """A ZIP of text files by name."""
    return files.archive({f"papers/{name}.txt": text.encode() for name, text in members.items()})


def message(attached, name="tide.txt"):
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "About the tide", "ada@example.org", "bo@example.org"
    mail["Message-ID"] = "<1@example.org>"
    mail.set_content("See the attachment.")
    mail.add_attachment(attached, maintype="application", subtype="octet-stream", filename=name)
    return mail.as_bytes()


def children(install, document):
    return install.documents.around(document).children


def test_the_files_of_an_archive_become_documents(install):
    """Each is found by its words and knows its archive; hidden files and unknown formats are left out."""
    data = files.archive(
        {
            "a/tide.txt": TIDE,
            "moon.txt": MOON,
            "a/": b"",
            "__MACOSX/x.txt": b"x",
            ".git/y.txt": b"y",
            "z.bin": bytes(range(256)) * 9,
        }
    )
    box = install.indexed(data, "papers.zip")
    assert (box.status, box.format, box.chunks) == (Status.SUCCESS, "zip", 0)
    assert [(each.name, each.title) for each in children(install, box)] == [
        ("a/tide.txt", "tide.txt"),
        ("moon.txt", "moon.txt"),
    ]
    hit = install.find("tide")[0]
    child = install.document(hit.document_id)
    assert [each.id for each in install.documents.around(child).parents] == [box.id]
    assert (child.source, child.status) == ("member", Status.SUCCESS)


def test_an_attachment_becomes_a_document(install):
    """The message is found by its words, its attachment by its own."""
    mail = install.indexed(message(TIDE.encode()), "mail.eml")
    assert install.find("attachment")[0].document_id == mail.id
    assert install.find("noon")[0].document_id == children(install, mail)[0].id


def test_a_message_in_an_archive_has_its_attachment_too(install):
    """And deleting the archive takes both along."""
    box = install.indexed(files.archive({"mail.eml": message(TIDE.encode())}), "mails.zip")
    mail = install.document(children(install, box)[0].id)
    inner = children(install, mail)[0].id
    install.documents.delete(WISH, box.id)
    for gone in (box.id, mail.id, inner):
        with pytest.raises(NotFoundError):
            install.document(gone)
    assert install.find("noon") == []


@pytest.mark.g5
def test_the_same_bytes_are_one_document(install):
    """In two archives, and as an upload of somebody's own: paid once, and gone with the last that has it."""
    first, second = install.indexed(archive(a=TIDE, b=MOON)), install.indexed(archive(a=TIDE))
    shared = children(install, second)[0].id
    assert shared in {each.id for each in children(install, first)}
    install.documents.delete(WISH, first.id)
    assert install.find("tide")[0].document_id == shared
    assert install.find("moon") == []
    assert install.upload(TIDE).document.id == shared
    install.documents.delete(WISH, second.id)
    assert install.find("tide")[0].document_id == shared


@pytest.mark.g3
def test_a_new_version_of_an_archive_replaces_its_documents(install):
    """What is not in it any more is gone, what is still there is not indexed again."""
    box = install.indexed(archive(a=TIDE, b=MOON))
    before = {each.title: each.id for each in children(install, box)}
    install.put(box.id, archive(a=TIDE, c="A star fell."), "papers.zip")
    install.work()
    after = {each.title: each.id for each in children(install, install.document(box.id))}
    assert set(after) == {"a.txt", "c.txt"}
    assert after["a.txt"] == before["a.txt"]
    assert install.document(after["a.txt"]).generation == 1
    assert install.find("moon") == []


@pytest.mark.g3
@pytest.mark.g4
def test_a_crash_before_the_archive_is_published_leaves_no_file_of_it_visible(install):
    """All of its documents appear with it, when another worker has finished it."""
    taken = install.upload(archive(**{f"n{number}": f"Word{number} of many." for number in range(60)}))
    assert len(install.work(most=3)) == 3
    assert children(install, taken.document) == []
    assert install.find("Word1") == []
    install.work()
    assert len(children(install, taken.document)) == 60
    assert install.find("Word59")


def test_a_quota_holds_for_the_files_of_an_archive(install):
    """If they do not all fit, none is there, and the archive says why."""
    install.engine.registry.get("index").publish.__self__._quota = Quota(documents=2)
    taken = install.upload(archive(a=TIDE, b=MOON))
    install.work()
    document = install.document(taken.document.id)
    assert install.run(document).error_code == "quota_exceeded"
    assert children(install, document) == []


def named(name):
    """A ZIP with a member of this name, which `zipfile` would not write by itself."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as book:
        info = zipfile.ZipInfo("x")
        info.filename = name
        book.writestr(info, "words")
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (files.archive({"zeros.txt": b"\0" * (200 * MIB)}), "archive_bomb"),
        (named("../../etc/passwd"), "unsafe_archive"),
        (named("/etc/passwd"), "unsafe_archive"),
        (named("C:\\windows\\x.txt"), "unsafe_archive"),
        (files.archive({}), "no_text"),
        (files.archive({f"{n}.txt": b"x" for n in range(1001)}), "too_large"),
        (archive(a=TIDE)[:-30], "broken_file"),
    ],
    ids=["bomb", "up", "absolute", "drive", "empty", "many", "torn"],
)
def test_a_hostile_archive_is_refused(install, data, code):
    """With a code, and without a document of it."""
    taken = install.upload(data, "a.zip")
    install.work()
    assert install.run(install.document(taken.document.id)).error_code == code
    assert install.documents.around(taken.document).children == []


def test_an_archive_in_an_archive_is_not_unpacked(install):
    """It is a document that says why it failed; the files beside it are indexed."""
    box = install.indexed(files.archive({"inner.zip": archive(a=TIDE), "moon.txt": MOON}))
    inner, moon = (install.document(each.id) for each in children(install, box))
    assert install.run(inner).error_code == "unsafe_archive"
    assert moon.status is Status.SUCCESS


def test_the_documents_inside_an_archive_move_with_it(install):
    """In one request; what somebody uploaded as well stays, and the other collection has it by its own."""
    install.collections.make(WISH, "attic")
    own = install.indexed(MOON, "moon.txt")
    box = install.indexed(
        files.archive({"a.txt": TIDE, "b.txt": MOON, "c.eml": message(b"A star.")}), "p.zip"
    )
    before = {each.name: each.id for each in children(install, box)}
    request = install.documents.request(WISH, install.collections.get("default", "attic"))
    document_moves.move(install.db, ("default", box.id), "attic", actor="me", request=request)
    install.work()
    after = {each.name: each for each in children(install, install.document(box.id))}
    assert {each.collection for each in after.values()} == {"attic"}
    assert (after["a.txt"].id, after["c.eml"].id) == (before["a.txt"], before["c.eml"])
    inner = children(install, install.document(before["c.eml"]))
    assert [each.collection for each in inner] == ["attic"]
    assert (before["moon.txt"], install.document(own.id).collection) == (own.id, box.collection)
    assert after["moon.txt"].id != own.id
    assert install.find("tide") == []


def test_a_key_deletes_of_an_archive_only_what_it_may_see(install):
    """A file that was given another label stays, as a document of its own."""
    box = install.indexed(archive(a=TIDE, b=MOON), labels=["public"])
    named = {each.title: each.id for each in children(install, box)}
    install.documents.change(WISH, named["b.txt"], labels=["secret"])
    limited = dataclasses.replace(WISH, restriction='{"in": {"$labels": ["public"]}}')
    install.documents.delete(limited, box.id)
    assert install.find("tide") == []
    left = install.document(named["b.txt"])
    assert (left.source, install.documents.around(left).parents) == ("upload", [])
    assert install.find("moon")[0].document_id == left.id
