"""How much a tenant may hold: said beforehand, held when two ask at once, and free again after a deletion."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from holdfast.core.states import Status
from holdfast.store.base.schema import documents, journal, runs
from holdfast.store.library import quotas
from holdfast.store.library.quotas import Quota
from tests.api.install import ApiInstall
from tests.api.test_waiting import page


@pytest.fixture
def narrow(database_url, tmp_path):
    """An installation whose tenants may hold three documents of 1,000 bytes together."""
    install = ApiInstall(database_url, tmp_path / "data", quota_documents=3, quota_bytes=1000)
    yield install
    install.close()


def held(client):
    """What the tenant holds, as it is told."""
    said = client.get("quota").json
    assert said == client.get("status").json["quota"]
    return said["documents"]["used"], said["bytes"]["used"]


def counted(install, tenant="default"):
    """What the tenant holds, counted row by row."""
    mine = select(func.count(), func.coalesce(func.sum(documents.c.size), 0))
    row = install.runtime.db.look(mine.where(documents.c.tenant == tenant, ~documents.c.deleted))[0]
    return int(row[0]), int(row[1])


def test_a_tenant_adds_as_much_as_it_may(narrow):
    """Then 403 with how much that is; nothing of what is refused stays, and a deletion makes room."""
    client = narrow.client
    items = [client.text("a" * 300 + str(number)) for number in range(3)]
    assert held(client) == counted(narrow) == (3, 903)
    said = client.post("collections/shelf/documents", {"text": "one more"})
    assert (said.status, said.code) == (403, "quota_exceeded")
    assert "3 documents" in said.message
    assert held(client) == counted(narrow) == (3, 903)
    assert client.call("DELETE", f"documents/{items[0]['id']}").status == 204
    said = client.upload("collections/shelf/documents", b"b" * 500)
    assert (said.status, said.code, "1,000 bytes" in said.message) == (403, "quota_exceeded", True)
    assert client.upload("collections/shelf/documents", b"b" * 398).status == 202
    assert held(client) == counted(narrow) == (3, 1000)


def test_of_two_that_do_not_fit_together_one_is_refused(narrow):
    """Whoever comes first; eight at once are never more than three."""
    client = narrow.client
    client.collection()
    start = threading.Barrier(8)

    def add(number):
        start.wait()
        return client.upload("collections/shelf/documents", f"Number {number}.".encode()).status

    with ThreadPoolExecutor(8) as crowd:
        said = sorted(crowd.map(add, range(8)))
    assert said == [202] * 3 + [403] * 5
    assert held(client)[0] == counted(narrow)[0] == 3


def test_new_content_counts_by_what_it_adds(narrow):
    """It may shrink also above the limit, and grow to it; the same for what a URL gives."""
    client = narrow.client
    response = client.text("a" * 900)
    path = f"documents/{response['id']}/content"
    assert client.put(path, {"text": "b" * 1001}).code == "quota_exceeded"
    assert client.put(path, {"text": "b" * 1000}).status == 202
    quotas.set_limits(narrow.runtime.db, "default", Quota(bytes=10))
    assert client.put(path, {"text": "c" * 999}).status == 202
    assert held(client) == counted(narrow) == (1, 999)
    with page("d" * 2000) as url:
        said = client.post("collections/shelf/documents", {"url": url})
    assert (said.status, said.code) == (403, "quota_exceeded")


def test_the_text_of_an_edit_counts_until_it_is_taken_back(narrow):
    """Refused over the quota, with nothing stored; the original again, or a deleted document, frees it."""
    client = narrow.client
    document = client.indexed("a lamp " * 70)
    path = f"documents/{document['id']}/chunks"
    chunk = client.get(path).json["chunks"][0]["id"]
    assert client.call("PATCH", f"{path}/{chunk}", {"text": "b" * 200}).status == 202
    assert held(client) == (1, 690)
    said = client.call("PATCH", f"{path}/{chunk}", {"text": "b" * 520})
    assert (said.status, said.code, held(client)) == (403, "quota_exceeded", (1, 690))
    assert client.call("PATCH", f"{path}/{chunk}", {"text": None}).status == 202
    assert held(client) == (1, 490)
    client.call("PATCH", f"{path}/{chunk}", {"text": "b" * 200})
    assert client.call("DELETE", f"documents/{document['id']}").status == 204
    assert held(client) == (0, 0)


def test_a_refreshed_url_counts_too(narrow):
    """What is there now may be more than there is room for; the old content stays."""
    client = narrow.client
    client.collection()
    with page("e" * 500) as url:
        response = client.post("collections/shelf/documents", {"url": url}).json["document"]
        quotas.set_limits(narrow.runtime.db, "default", Quota(bytes=500))
    port = url.rpartition(":")[2].partition("/")[0]
    with page("f" * 600, int(port)):
        said = client.post(f"documents/{response['id']}/refresh")
    assert (said.status, said.code) == (403, "quota_exceeded")
    assert held(client) == (1, 500)


def test_a_copy_counts_and_a_move_does_not(narrow):
    """A copy is a document of its own; a collection that is deleted gives everything back at once."""
    client = narrow.client
    document = client.indexed("a" * 400)
    client.collection("other")
    assert client.put(f"collections/other/documents/{document['id']}", {"mode": "copy"}).status == 202
    assert held(client) == counted(narrow) == (2, 800)
    client.collection("third")
    copied = client.put(f"collections/third/documents/{document['id']}", {"mode": "copy"})
    assert (copied.status, copied.code) == (403, "quota_exceeded")
    assert client.put(f"collections/third/documents/{document['id']}", {"mode": "move"}).status == 200
    assert client.call("DELETE", "collections/third").status == 200
    assert client.call("DELETE", "collections/other").status == 200
    assert held(client) == counted(narrow) == (0, 0)


def test_an_import_ends_where_the_quota_does(narrow):
    """The job fails with the same code, and the tenant holds no more than it may."""
    theirs, mine = narrow.key("theirs"), narrow.key("mine")
    for number in range(3):
        theirs.indexed(f"Number {number}.")
    job = theirs.post("collections/shelf/export").json["job_id"]
    narrow.work()
    bundle = theirs.get(f"jobs/{job}/file").raw
    quotas.set_limits(narrow.runtime.db, "mine", Quota(documents=2))
    assert mine.upload("imports", bundle, "b.zip").status == 202
    narrow.work()
    row = narrow.runtime.db.look(select(runs).where(runs.c.tenant == "mine", runs.c.kind == "import"))[0]
    assert (row.status, row.error_code) == (Status.FAILED, "quota_exceeded")
    assert held(mine)[0] == counted(narrow, "mine")[0] <= 2


def test_a_large_file_without_room_is_refused_before_it_is_sent(narrow):
    """What it says of itself is enough: nothing is read, and nothing is on the disk."""
    client = narrow.client
    client.collection()
    said = client.upload("collections/shelf/documents", b"x" * 3_000_000)
    assert (said.status, said.code) == (403, "quota_exceeded")
    assert list((narrow.settings.data_dir / "blobs").glob("partial/*")) == []


def test_tenants_have_limits_of_their_own(install):
    """Without any there is none; one tenant's are not another's."""
    one, other = install.key("one"), install.key("other")
    quotas.set_limits(install.runtime.db, "one", Quota(documents=1))
    assert one.get("quota").json["documents"] == {"used": 0, "allowed": 1}
    assert other.get("quota").json["documents"] == {"used": 0, "allowed": None}
    one.text("Some words.")
    one.collection()
    assert one.post("collections/shelf/documents", {"text": "Others."}).code == "quota_exceeded"
    other.text("Some words.")
    other.text("Others.")
    quotas.set_limits(install.runtime.db, "one", quotas.UNLIMITED)
    one.text("Others.")


@pytest.mark.g6
def test_a_refusal_for_the_quota_is_in_the_journal(narrow):
    """Like every other: of an upload, of a large file before it is sent, of new content."""
    client = narrow.client
    items = [client.text(f"text {number}") for number in range(3)]
    big = b"b" * 2_000_000
    said = [
        client.post("collections/shelf/documents", {"text": "one more"}),
        client.upload("collections/shelf/documents", big),
        client.put(f"documents/{items[0]['id']}/content", {"text": "c" * 2000}),
    ]
    assert [each.code for each in said] == ["quota_exceeded"] * 3
    noted = select(journal.c.actor, journal.c.data).where(journal.c.reason == "refused:quota_exceeded")
    rows = narrow.runtime.db.look(noted)
    assert len(rows) == 3
    assert all(row.actor and "quota of tenant default" in row.data["message"] for row in rows)
