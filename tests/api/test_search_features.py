"""Search: several collections, pages, groups, likeness, synonyms, and nothing for nonsense."""

import json
from urllib.parse import quote

import pytest

LAMP = "The lighthouse keeper oils the great lamp before dusk and trims its wick."
BREAD = "Bakers knead the dough at four in the morning and let it rise near the oven."
TRAIN = "The night train to the coast leaves from platform nine, often an hour late."


@pytest.fixture
def shelf(client, install):
    """Three documents, ready."""
    texts = {"lamp": LAMP, "bread": BREAD, "train": TRAIN}
    ids = {name: client.text(text, title=name)["id"] for name, text in texts.items()}
    install.work()
    return ids


def hits(client, **body):
    reply = client.post("search", {"collections": ["shelf"], **body})
    assert reply.status == 200, reply.raw
    return reply.json["hits"]


def test_random_letters_find_nothing_and_words_still_do(client, shelf):
    """In a small collection everything is near everything; chance is no answer."""
    for nonsense in ("xqzvkj wplfgh", "qwertzuiopasdf", "zzkqpvbn xjrtl mmwq", "%%% ???"):
        assert client.get(f"search?collection=shelf&q={quote(nonsense)}").json["hits"] == [], nonsense
    assert hits(client, q="lighthouse xqzvkjw")[0]["document_id"] == shelf["lamp"]
    assert hits(client, q="a baker's loaf")[0]["document_id"] == shelf["bread"]


def test_what_has_few_of_the_words_is_marked_as_weak(client, shelf):
    """The best hit has the words; another may be shown, as what it is."""
    others = hits(client, q="lamp oil of the lighthouse")
    assert [each["weak"] for each in others][:1] == [False]
    assert all(each["weak"] for each in others[1:])


def test_hits_say_where_the_words_are(client, shelf):
    """Offsets in the whole text, by characters."""
    best = hits(client, q="oiling lamps")[0]
    assert [best["text"][start:end] for start, end in best["marks"]] == ["oils", "lamp"]
    assert best["collection"] == "shelf"


def test_pages_follow_one_another_and_groups_are_documents(client, install):
    """Each hit once, in the order of one long answer; with `group` each document once."""
    for number in range(7):
        client.text(f"Lamp number {number} burns.\n\n{'Oil. ' * 300}\n\nThe lamp {number} again.")
    install.work()
    whole = [each["chunk"] for each in hits(client, q="lamp", k=50)]
    paged, offset = [], 0
    while offset is not None:
        reply = client.get(f"search?collection=shelf&q=lamp&k=3&offset={offset}").json
        paged += [each["chunk"] for each in reply["hits"]]
        offset = reply["next_offset"]
    assert paged == whole
    groups = client.get("search?collection=shelf&q=lamp&k=5&group=true").json
    names = [each["document_id"] for each in groups["groups"]]
    assert (len(names), len(set(names)), groups["hits"], groups["next_offset"]) == (5, 5, [], 5)
    assert len(client.get("search?collection=shelf&q=lamp&k=5&offset=5&group=true").json["groups"]) == 2


def test_several_collections_are_searched_as_one(client, install, shelf):
    """The best of both, wherever it is; an unknown one is a 404; a filter holds in each."""
    other = client.indexed("A lighthouse on the rock, without a keeper.", to="attic", metadata={"a": 1})
    both = client.get("search?collection=shelf&collection=attic&q=lighthouse").json["hits"]
    assert {each["document_id"] for each in both if not each["weak"]} == {other["id"], shelf["lamp"]}
    assert {each["collection"] for each in both} == {"attic", "shelf"}
    condition = quote(json.dumps({"eq": {"a": 1}}))
    only = client.get(f"search?collection=shelf&collection=attic&q=lighthouse&filter={condition}").json[
        "hits"
    ]
    assert [each["document_id"] for each in only] == [other["id"]]
    assert client.get("search?collection=shelf&collection=nowhere&q=lamp").status == 404


def test_more_like_this_finds_other_documents_and_pays_nothing(client, install, shelf):
    """By the words and the stored vectors of a document, or of a hit; it is not among its own hits."""
    similar = client.indexed("The keeper of the light trims the wick of the lamp, and oils it at dusk.")
    assert hits(client, like=shelf["lamp"])[0]["document_id"] == similar["id"]
    chunk = hits(client, q="wick lamp")[0]
    others = hits(client, like=chunk["chunk"])
    assert chunk["document_id"] not in {each["document_id"] for each in others}
    assert others[0]["document_id"] in {shelf["lamp"], similar["id"]}
    assert client.post("search", {"collections": ["shelf"], "like": "no-such"}).status == 404
    assert client.post("search", {"collections": ["shelf"], "like": "a@b"}).status == 400
    assert client.post("search", {"collections": ["shelf"], "like": "a", "q": "b"}).status == 400


def test_synonyms_and_stop_words_hold_at_once(client, shelf):
    """For the collection that has them, without indexing anything again."""
    query = {"q": "pharos", "mode": "keyword"}
    assert hits(client, **query) == []
    rules = {"synonyms": [["pharos", "lighthouse"]], "stop_words": ["lamp"]}
    changed = client.call("PATCH", "/api/v1/collections/shelf", {"search": rules}).json
    assert (changed["collection"]["search"], changed["requested"]) == (rules, 0)
    assert [each["document_id"] for each in hits(client, **query)] == [shelf["lamp"]]
    assert hits(client, q="lamp platform", mode="keyword")[0]["document_id"] == shelf["train"]
    assert len(hits(client, q="lamp", mode="keyword")) == 1, "a query of stop words alone is still answered"
    for wrong in ({"synonyms": [["a"]]}, {"synonyms": "x"}, {"other": 1}, {"stop_words": ["..."]}):
        reply = client.call("PATCH", "/api/v1/collections/shelf", {"search": wrong})
        assert (reply.status, reply.code) == (400, "bad_search_rules"), wrong
    assert (
        client.call("PATCH", "/api/v1/collections/shelf", {"search": {}}).json["collection"]["search"] == {}
    )
