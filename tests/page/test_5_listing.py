"""Documents in any order, by status and by title, page after page; and why each is as it is."""

import pytest

from holdfast.core.errors import BadRequestError
from holdfast.service.document_views import position_of
from holdfast.store.library.document_lists import SortKey

TITLES = ["Ropes", "anchors", "Ebb", "100 % sure", "Quay_1"]


@pytest.fixture
def client(install):
    created = install.client
    for title in TITLES[:4]:
        created.text(f"All about {title}.", title=title)
    install.work()
    created.text("Nobody has read this yet.", title=TITLES[4])
    return created


def walked(client, query):
    """The titles of a list that is read two at a time."""
    result, cursor = [], ""
    while True:
        said = client.get(f"collections/shelf/documents?limit=2{query}{cursor}")
        assert said.status == 200, said.raw
        result += [one["title"] for one in said.json["documents"]]
        if said.json["next"] is None:
            return result
        cursor = f"&cursor={said.json['next']}"


def test_every_order_gives_every_document_once(client):
    """Each way round, across pages; ties are broken by the id."""
    for type_name in ("id", "title", "status", "updated", "pages", "cost"):
        ways = [f"&sort={type_name}"] + ([f"&sort=-{type_name}"] if type_name != "id" else [])
        for way in ways:
            assert sorted(walked(client, way)) == sorted(TITLES), way
    assert walked(client, "&sort=title") == ["100 % sure", "anchors", "Ebb", "Quay_1", "Ropes"]
    assert walked(client, "&sort=-title") == ["Ropes", "Quay_1", "Ebb", "anchors", "100 % sure"]
    assert walked(client, "&sort=status")[0] == "Quay_1"
    assert walked(client, "&sort=-updated")[0] == "Quay_1"
    assert walked(client, "&sort=pages")[0] == "Quay_1"


def test_filters_by_status_and_title(client):
    """Letters that mean something to a database are letters here."""
    assert walked(client, "&status=queued") == ["Quay_1"]
    assert sorted(walked(client, "&status=success")) == sorted(TITLES[:4])
    assert walked(client, "&q=ROPE") == ["Ropes"]
    assert walked(client, "&q=%25") == ["100 % sure"]
    assert walked(client, "&q=_") == ["Quay_1"]
    assert walked(client, "&q=%00") == []
    assert walked(client, "&status=failed&q=a&sort=cost") == []


def test_a_cursor_of_another_list_is_refused(client):
    """As a bad request, whatever is in it."""
    wrong = ("", "%00", "x" * 300, "WyJ0aXRsZSIsIDEsICJhIl0", "WyJwYWdlcyIsIE5hTiwgImEiXQ", "W10", "bnVsbA")
    for cursor in wrong:
        for type_name in ("title", "pages", "-cost"):
            said = client.get(f"collections/shelf/documents?sort={type_name}&cursor={cursor}")
            assert (said.status, said.code) == (400, "bad_cursor"), cursor
    with pytest.raises(BadRequestError):
        position_of(SortKey.ID, "a b")


def test_why_is_a_sentence_with_what_is_safe_to_do(client, install):
    """The same for programs and for people: queued without a worker, being worked on, failed, done."""
    name = client.get("collections/shelf/documents?q=Quay").json["documents"][0]["id"]
    said = client.get(f"documents/{name}/why").json
    assert said["sentence"] == "Waiting for a worker, but none is online."
    assert said["next_step"] == "start_worker"
    install.begun()
    said = client.get(f"documents/{name}/why").json
    assert said["sentence"].startswith("somebody is working on it (lease renewed")
    assert client.post(f"documents/{name}/cancel").status == 200
    assert client.get(f"documents/{name}/why").json["next_step"] == "retry"
    broken = client.upload("collections/shelf/documents", b"%PDF-1.4 no", "broken.pdf").json["document"]["id"]
    install.work()
    said = client.get(f"documents/{broken}/why").json
    assert (said["next_step"], said["sentence"][:7]) == ("retry", "Failed:")
    done = client.get("collections/shelf/documents?status=success").json["documents"][0]["id"]
    assert client.get(f"documents/{done}/why").json["sentence"] == "Ready. Generation 1 is searchable."
