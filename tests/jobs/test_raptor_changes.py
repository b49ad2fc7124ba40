"""Trees of summaries after their documents changed: what is reached, and what search may still say."""

from holdfast.kinds import neighbour_groups
from holdfast.kinds.neighbour_groups import GroupRules
from tests.jobs.install import paragraphs
from tests.jobs.test_raptor import author, calls_of  # noqa: F401 (a fixture)


def test_what_is_below_a_summary_that_is_gone_is_on_top(small):
    """A deleted document takes the summaries above it along; those of the other documents can be reached."""
    documents = small.shelf(*(paragraphs(name, 8) for name in ("alpha", "beta", "gamma")))
    calls_of(small)
    small.client.call("DELETE", f"documents/{documents[0]['id']}")
    top = {one["key"] for one in small.client.get("collections/shelf/tree").json["nodes"]}
    assert len(top) == 2
    small.work()
    small.tidy()
    assert {one["key"] for one in small.client.get("collections/shelf/tree").json["nodes"]} == top


def test_search_shows_no_summary_of_an_older_version(small):
    """From the publication of new content on; the tree shows it, and says that it is stale."""
    name = small.shelf(paragraphs("alpha", 8), paragraphs("beta", 8))[0]["id"]
    calls_of(small, scope="document")
    small.client.put(f"documents/{name}/content", {"text": paragraphs("gamma", 8)})
    small.work()
    hits = small.client.get("search?collection=shelf&q=alpha&k=50").json["hits"]
    assert [hit["text"] for hit in hits if "alpha" in hit["text"]] == []
    assert any(node["stale"] for node in small.client.get(f"documents/{name}/tree").json["nodes"])


def test_no_summary_says_what_a_chunk_said_that_is_switched_off(small):
    """It is found by no search, not by way of a summary either."""
    name = small.shelf(paragraphs("alpha", 4))[0]["id"]
    calls_of(small, scope="document")
    first = small.client.get(f"documents/{name}/chunks").json["chunks"][0]
    small.client.call("PATCH", f"documents/{name}/chunks/{first['id']}", {"enabled": False})
    small.work()
    hits = small.client.get("search?collection=shelf&q=alpha0word3&k=50").json["hits"]
    assert [hit["text"] for hit in hits if "alpha0word" in hit["text"]] == []


def test_a_summary_of_more_documents_than_are_named_is_no_hit(small):
    """However many it covers, and the API lists only some of them."""
    texts = (f"The harbour master{n} signed the rule number{n} of the harbour." for n in range(24))
    ids = sorted(one["id"] for one in small.shelf(*texts))
    calls_of(small, group=32)
    named = "".join(f"&document={each}" for each in ids[:20])
    hits = small.client.get(f"search?collection=shelf&q=harbour&k=50{named}").json["hits"]
    assert [hit["type"] for hit in hits if hit["type"] == "summary"] == []
    assert hits


def test_thousands_of_equal_texts_are_divided_into_halves():
    """Equal boundaries are cut in the middle, so the depth stays small, and every text is in one group."""
    ranks = [(0.0, b"same")] * 9_999
    parts = list(neighbour_groups._divided(ranks, 0, 10_000, GroupRules()))
    assert [at for part in parts for at in part] == list(range(10_000))
    assert {len(part) for part in parts} <= set(range(3, 13))
