"""Mind maps: one call for a document and one for the collection, paid again only if an outline changes."""

import re
import xml.etree.ElementTree as ET

import pytest

from holdfast.core.states import Status
from holdfast.kinds import topic_blocks
from holdfast.store.derived import trees
from tests.api.install import ApiInstall
from tests.jobs.install import ask, done, job, results


def outlined(name, sections=4, body="Some text about it."):
    """A document of so many headings, each with a text below it and two headings of its own."""
    parts = [f"# Book of {name}"]
    for number in range(sections):
        parts += [f"## {name} section {number}", f"{body} {name}{number}."]
        parts += [f"### {name} part {number} {side}\n\n{body} {side}{number}." for side in ("left", "right")]
    return "\n\n".join(parts)


@pytest.fixture
def author(author):
    """Maps of two topics: the first half of the lines, which it names after them, and the rest."""

    def say(messages):
        lines = re.findall(r"^ *(\d+)\. (.+)$", author.passage(messages), re.MULTILINE)
        half = max(1, len(lines) // 2)
        return {
            "topics": [
                {"title": f"About {part[0][1][:40]}", "lines": [int(number) for number, _ in part]}
                for part in (lines[:half], lines[half:])
                if part
            ]
        }

    author.say = say
    return author


def put(install, name, text, document=None):
    """A Markdown document, new or with new content; nobody works on it yet."""
    if document is not None:
        install.client.upload(f"documents/{document['id']}/content", text.encode(), name, method="PUT")
        return document
    return install.client.upload("collections/shelf/documents", text.encode(), name).json["document"]


def shelf(install, *texts):
    """Markdown documents, published."""
    install.client.collection("shelf")
    items = [put(install, f"text{n}.md", text) for n, text in enumerate(texts)]
    install.work()
    return [install.client.get(f"documents/{each['id']}").json for each in items]


def calls_of(install, **params):
    """How many calls a job paid for, and the job."""
    before = install.paid
    finished = done(install, "mindmap", **params)
    assert finished["state"] == "success", finished
    return install.paid - before, finished


def walk(topics):
    for topic in topics:
        yield topic
        yield from walk(topic["topics"])


def test_a_map_of_documents_and_of_their_collection(install):
    """A call each and one for all; nodes have sources; the same again, in whatever order, costs nothing."""
    documents = shelf(install, outlined("alpha"), outlined("beta"), outlined("gamma"))
    assert install.client.get("collections/shelf/mindmap").json["generation"] is None
    paid, finished = calls_of(install)
    assert paid == 4
    whole = install.client.get("collections/shelf/mindmap").json
    assert (whole["generation"], whole["stale"], whole["stand_in"]) == (1, False, False)
    assert {one["document_id"] for topic in whole["topics"] for one in topic["sources"]} == {
        one["id"] for one in documents
    }
    mine = install.client.get(f"documents/{documents[0]['id']}/mindmap").json
    assert [topic["title"] for topic in mine["topics"]] == [
        "About alpha section 0",
        "About alpha section 2",
    ]
    assert all(topic["sources"] for topic in walk(mine["topics"] + whole["topics"]))
    (head,) = install.runtime.db.read(lambda tx: trees.of_collection(tx, "default", "shelf", "mindmap", 9))
    assert trees.faults(install.runtime.db, head) == trees.TreeFaults(0, 0, 0)
    assert len(results(install.client, finished["job_id"])) == 3
    assert calls_of(install, mode="force")[0] == 0
    backwards = [one["id"] for one in reversed(documents)]
    assert calls_of(install, documents=backwards)[0] == 0


def test_what_an_edit_costs(small):
    """Of the text nothing; of a heading its document and the collection; and the map is stale until then."""
    documents = shelf(small, outlined("alpha"), outlined("beta"), outlined("gamma"))
    calls_of(small)
    name = f"documents/{documents[0]['id']}"
    put(small, "text0.md", outlined("alpha", body="Rather other text."), documents[0])
    small.work()
    assert small.client.get(f"{name}/mindmap").json["stale"]
    assert calls_of(small)[0] == 0
    assert not small.client.get(f"{name}/mindmap").json["stale"]
    put(small, "text0.md", outlined("alpha").replace("section 2", "chapter 2"), documents[0])
    small.work()
    assert calls_of(small)[0] == 2


def test_the_estimate_is_what_is_paid(small):
    """Before the first run, and when all is known."""
    shelf(small, *(outlined(name) for name in ("alpha", "beta", "gamma")), "One.")
    foreseen = small.estimate("mindmap").forecast.calls
    paid, _ = calls_of(small)
    assert foreseen == paid == 4
    again = small.estimate("mindmap").forecast
    assert (again.calls, again.known_calls) == (0, 4)


BAD = {
    "nonsense": "I like trains.",
    "cut": '{"topics": [{"title": "A", "lines": [1, 2',
    "types": {"topics": {"title": 3, "lines": "all"}},
    "lines": {"topics": [{"title": "A", "lines": [900, -1, True, "x", 1.5]}]},
    "repeats": {"topics": [{"title": "The same", "lines": list(range(1, 13))}] * 50},
    "few": {"topics": [{"title": "A", "lines": [1]}, {"title": "B", "lines": [2]}]},
    "refusal": "",
}


def test_an_answer_that_is_no_map(small, author):
    """The headings are the map, marked, and the document is listed with what was wrong."""
    shelf(small, *(outlined(f"x{number}") for number in range(len(BAD))))
    author.say = lambda messages: BAD[list(BAD)[int(re.search(r"x(\d)", author.passage(messages))[1])]]
    _, finished = calls_of(small, scope="document")
    listed = results(small.client, finished["job_id"])
    assert [one["error"]["code"] for one in listed if one["error"]] == ["bad_answer"] * len(BAD)
    for document in small.client.get("collections/shelf/documents").json["documents"]:
        topics = small.client.get(f"documents/{document['id']}/mindmap").json["topics"]
        assert [topic["title"][2:] for topic in topics] == [f" section {n}" for n in range(4)]
        assert {topic["from_headings"] for topic in walk(topics)} == {True}


def test_small_and_large_documents(small):
    """One word is a map of one topic, for nothing; two thousand headings are one call and a small tree."""
    flat = "\n\n".join(f"# Heading {number}\n\nText {number}." for number in range(2000))
    one, many = shelf(small, "Word", flat)
    paid, _ = calls_of(small, scope="document")
    assert paid == 1
    topics = small.client.get(f"documents/{one['id']}/mindmap").json["topics"]
    assert [(topic["title"], len(topic["sources"])) for topic in topics] == [("Word", 1)]
    small.author.say = lambda _messages: "no"
    calls_of(small, scope="document", notes="Anew.")
    topics = small.client.get(f"documents/{many['id']}/mindmap").json["topics"]
    every = list(walk(topics))
    assert max(len(topic["topics"]) for topic in every) <= 7 >= len(topics)
    assert {topic["level"] for topic in every} == {1, 2, 3}


def test_a_collection_of_one_document_is_the_map_of_that_document(small):
    """The collection has nothing to add, and is not paid for."""
    (document,) = shelf(small, outlined("alpha"))
    assert calls_of(small)[0] == 1
    mine = small.client.get(f"documents/{document['id']}/mindmap").json
    assert small.client.get("collections/shelf/mindmap").json["topics"] == mine["topics"]


@pytest.mark.g3
def test_topics_of_a_deleted_document_are_withheld(small):
    """With the deletion: topics that have anything from it go; what is below takes their position."""
    documents = shelf(small, outlined("canary"), outlined("beta"), outlined("gamma"))
    calls_of(small)
    small.client.call("DELETE", f"documents/{documents[0]['id']}")
    body = small.client.get("collections/shelf/mindmap")
    assert b"canary" not in body.raw
    small.work()
    small.tidy()
    calls_of(small)
    covered = {
        one["document_id"]
        for topic in walk(small.client.get("collections/shelf/mindmap").json["topics"])
        for one in topic["sources"]
    }
    assert covered == {one["id"] for one in documents[1:]}


def test_other_forms(small):
    """Markdown is a list that no title breaks out of; the picture is XML with every title in it."""
    (document,) = shelf(small, outlined("<b>alpha</b> & [x](y) *z*"))
    calls_of(small)
    name = f"documents/{document['id']}/mindmap"
    markdown = small.client.get(f"{name}?format=markdown")
    assert markdown.headers["content-type"].startswith("text/markdown")
    assert r"\<b\>alpha" in markdown.raw.decode()
    picture = small.client.get(f"{name}?format=svg")
    assert picture.headers["content-type"] == "image/svg+xml"
    drawing = ET.fromstring(picture.raw)
    texts = " ".join(element.text or "" for element in drawing.iter("{http://www.w3.org/2000/svg}text"))
    assert "<b>alpha</b>" in texts
    assert small.client.get(f"{name}?format=pdf").status == 400


def test_a_map_of_summaries_for_a_text_without_headings(small, author):
    """A text without headings is mapped by the titles of its tree of summaries, once there is one."""
    text = "\n\n".join(f"Paragraph {n} " + " ".join(f"p{n}w{m}" for m in range(150)) for n in range(12))
    (document,) = shelf(small, text)
    calls_of(small)
    author.say = lambda _messages: "A written title\nAnd a summary."
    assert done(small, "raptor")["state"] == Status.SUCCESS
    author.say = lambda _messages: "No map."
    calls_of(small, mode="force")
    topics = small.client.get(f"documents/{document['id']}/mindmap").json["topics"]
    assert {topic["title"] for topic in topics} == {"A written title"}


def test_parameters_and_two_at_once(small):
    """A wrong parameter is refused; a second job while one is under way as well."""
    shelf(small, outlined("alpha"))
    assert ask(small.client, "mindmap", scope="world").status == 400
    first = ask(small.client, "mindmap")
    second = ask(small.client, "mindmap", scope="document")
    assert (second.status, second.code) == (409, "duplicate")
    small.work()
    assert job(small.client, first.json["job_id"])["state"] == "success"


def test_without_a_language_model(sqlite_url, tmp_path):
    """The headings are the maps and the titles of documents that of the collection; nothing is asked."""
    install = ApiInstall(sqlite_url, tmp_path / "data")
    try:
        documents = shelf(install, outlined("alpha"), outlined("beta"), "Two words")
        assert done(install, "mindmap")["state"] == Status.SUCCESS
        whole = install.client.get("collections/shelf/mindmap").json
        assert (whole["stand_in"], len(whole["topics"])) == (True, 3)
        assert {topic["title"] for topic in whole["topics"]} == {one["title"] for one in documents}
        mine = install.client.get(f"documents/{documents[0]['id']}/mindmap").json
        assert [topic["title"] for topic in mine["topics"]] == [f"alpha section {n}" for n in range(4)]
        assert [below["title"] for below in mine["topics"][1]["topics"]] == [
            "alpha part 1 left",
            "alpha part 1 right",
        ]
    finally:
        install.close()


def test_more_documents_than_one_call_takes(small, monkeypatch):
    """Groups are mapped first; an edit of one document pays for it, its old and new group and the top."""
    monkeypatch.setattr(topic_blocks, "MOST_LINES", 6)
    documents = shelf(small, *(outlined(f"name{n}") for n in range(8)))
    assert 10 <= calls_of(small)[0] <= 8 + small.estimate("mindmap").forecast.known_calls
    every = list(walk(small.client.get("collections/shelf/mindmap").json["topics"]))
    assert {one["document_id"] for topic in every for one in topic["sources"]} == {
        one["id"] for one in documents
    }
    put(small, "text0.md", outlined("another"), documents[0])
    small.work()
    assert calls_of(small)[0] <= 7
    assert calls_of(small, mode="force")[0] == 0
