"""A key with a filter: what does not pass is not there, over the route table, new routes included."""

import pytest

from holdfast.service.access import Scope
from tests.api.install import PREFIX, Client
from tests.api.test_isolation import ask, followed, owner  # noqa: F401 - a fixture

MARK = "quicksilver"
ONLY = {"in": {"$labels": ["public"]}}


@pytest.fixture
def limited(install):
    """A key of the same tenant that sees public documents alone."""
    scopes = [Scope.READ, Scope.WRITE]
    return Client(
        install, install.access.make(tenant="owner", name="limited", scopes=scopes, only=ONLY).token
    )


def test_every_route_hides_what_the_filter_of_a_key_leaves_out(install, owner, limited):  # noqa: F811
    """404 for what is named, 403 for what is about more than documents, and nothing of it anywhere."""
    hidden = followed(owner)
    before = owner.get(f"documents/{hidden['document_id']}").json
    reached = set()
    for method, template in install.routes():
        reply = ask(limited, method, template, hidden)
        reached.add(reply.status)
        assert MARK.encode() not in reply.raw, (method, template)
        for secret in (hidden["document_id"], hidden["run_id"], hidden["job_id"]):
            if "{" not in template:
                assert secret.encode() not in reply.raw, (method, template)
        named = ("{document_id}", "{job_id}", "{run_id}", "{entity}", "{community}")
        if any(each in template for each in named):
            assert reply.status in {403, 404}, (method, template)
    assert reached >= {200, 403, 404}
    assert owner.get(f"documents/{hidden['document_id']}").json == before


def test_what_passes_is_reached_by_the_same_requests(install, owner, limited):  # noqa: F811
    """Otherwise the test above would prove nothing."""
    shown = followed(owner)
    path = f"documents/{shown['document_id']}"
    owner.call("PATCH", f"{PREFIX}/{path}", {"labels": ["public", "new"]})
    assert limited.get(path).status == 200
    assert limited.get(f"search?collection=shelf&q={MARK}").json["hits"]
    assert len(limited.get("collections/shelf/documents").json["documents"]) == 1
    for method, template in install.routes():
        if "{document_id}" in template and method == "GET":
            assert b"unknown_document" not in ask(limited, method, template, shown).raw, template
    assert limited.get(f"runs/{shown['run_id']}/log").status == 200


def test_a_key_with_a_filter_adds_and_changes_only_what_passes(install, owner, limited):  # noqa: F811
    """It hands out no document and loses none; of a hidden one with the same bytes it learns nothing."""
    refused = limited.post("collections/shelf/documents", {"text": "Mine."})
    assert (refused.status, refused.code) == (403, "key_restricted")
    added = limited.post("collections/shelf/documents", {"text": "Mine.", "labels": ["public"]}).json[
        "document"
    ]
    path = f"{PREFIX}/documents/{added['id']}"
    assert limited.call("PATCH", path, {"labels": []}).code == "key_restricted"
    assert limited.call("PATCH", path, {"metadata": {"a": 1}}).status == 200
    same = {"text": f"Only the owner knows of {MARK}.", "labels": ["public"]}
    reply = limited.post("collections/shelf/documents", same)
    assert (reply.code, MARK.encode() in reply.raw) == ("same_content", False)


def test_the_external_id_of_a_hidden_document_is_neither_read_nor_taken(install, owner, limited):  # noqa: F811
    """It is not looked up, changed or deleted by it; what the document holds is told by nothing."""
    path = "collections/shelf/documents"
    (hidden,) = owner.get(f"{path}?external_id=cms-7").json["documents"]
    assert limited.get(f"{path}?external_id=cms-7").json["documents"] == []
    assert limited.call("DELETE", f"{PREFIX}/{path}?external_id=cms-7").code == "unknown_document"
    reply = limited.post(path, {"text": "Mine.", "labels": ["public"], "external_id": "cms-7"})
    assert (reply.code, hidden["id"].encode() in reply.raw) == ("same_external_id", False)
    added = limited.post(path, {"text": "Mine.", "labels": ["public"]}).json["document"]
    taken = limited.call("PATCH", f"{PREFIX}/documents/{added['id']}", {"external_id": "cms-7"})
    assert (taken.code, hidden["id"].encode() in taken.raw) == ("same_external_id", False)
    assert owner.get(f"documents/{hidden['id']}").json == hidden


def test_a_key_with_a_filter_sees_nothing_on_the_web(install, owner, limited):  # noqa: F811
    """Its pages show whole collections: such a key does not sign in, and is no admin's."""
    with pytest.raises(Exception, match="limited to some documents"):
        install.access.sign_in(limited.key)
    with pytest.raises(Exception, match="admin"):
        install.access.make(tenant="owner", name="x", scopes=[Scope.ADMIN], only=ONLY)
