"""A key with a filter, and documents that are hidden while its request is on the way."""

import contextlib
import dataclasses
import json
import socket

import pytest

from holdfast.bootstrap.services import AppServices
from holdfast.core import filters
from holdfast.core.errors import BadRequestError
from holdfast.service.access import Scope
from holdfast.service.requests import RequestContext
from holdfast.store.library import document_requests, quotas
from holdfast.store.library.document_requests import DocumentAccess
from holdfast.store.library.quotas import Quota
from tests.api.install import PREFIX, ApiInstall, Client

ONLY = {"eq": {"$labels": "public"}}
SECRET = "codeword"


@pytest.fixture
def limited(install):
    """A key that sees public documents alone."""
    scopes = [Scope.READ, Scope.WRITE]
    return Client(install, install.access.make(tenant="owner", name="part", scopes=scopes, only=ONLY).token)


@pytest.fixture
def owner(install):
    scopes = [Scope.READ, Scope.WRITE]
    return Client(install, install.access.make(tenant="owner", name="owner", scopes=scopes).token)


@pytest.fixture
def document(install, owner):
    """A public document of the owner, ready."""
    owner.collection("shelf")
    owner.collection("attic")
    uploaded = owner.post("collections/shelf/documents", {"text": "The first words.", "labels": ["public"]})
    install.work()
    return uploaded.json["document"]


def late(limited, method, path, body, meanwhile):
    """The response to a request whose body arrives after `meanwhile`."""
    data = json.dumps(body).encode()
    head = (
        f"{method} {PREFIX}/{path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {limited.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", limited.install.port), timeout=30) as connection:
        connection.sendall(head.encode() + data[:3])
        meanwhile()
        connection.sendall(data[3:])
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "documents/{id}", {"labels": ["public"]}),
        ("PATCH", "documents/{id}", {"title": "Mine"}),
        ("PUT", "documents/{id}/content", {"text": "Other words."}),
        ("POST", "documents/{id}/index", {"mode": "force"}),
        ("PUT", "collections/attic/documents/{id}", {"mode": "move"}),
        ("PUT", "collections/attic/documents/{id}", {"mode": "copy"}),
    ],
)
def test_what_is_hidden_while_the_body_arrives_is_not_there(owner, limited, document, method, path, body):
    """The client decides how long that takes; whatever it sends then changes and shows nothing."""
    where = f"documents/{document['id']}"
    hidden = {"labels": ["secret"], "metadata": {"note": SECRET}}
    response = late(
        limited,
        method,
        path.format(id=document["id"]),
        body,
        lambda: owner.call("PATCH", f"{PREFIX}/{where}", hidden),
    )
    assert (b" 404 " in response.partition(b"\r\n")[0], SECRET.encode() in response) == (True, False)
    after = owner.get(where).json
    assert (after["labels"], after["collection"], after["title"]) == (["secret"], "shelf", document["title"])
    assert (after["published_generation"], after["index_status"]) == (1, "success")
    assert owner.get("collections/attic/documents").json["documents"] == []


def test_the_bytes_of_a_hidden_document_start_no_run_of_it(install, owner, limited, document):
    """It was cancelled before; whoever has its text by chance is refused and sets nothing in motion."""
    where = f"documents/{document['id']}"
    owner.call("PUT", f"{PREFIX}/{where}/content", {"text": "Second words."})
    owner.post(f"{where}/cancel", {})
    owner.call("PATCH", f"{PREFIX}/{where}", {"labels": ["secret"]})
    before = owner.get(where).json
    said = limited.post("collections/shelf/documents", {"text": "Second words.", "labels": ["public"]})
    assert (said.code, document["id"].encode() in said.raw) == ("same_content", False)
    assert owner.get(where).json == before


def test_a_full_quota_does_not_tell_how_much_there_is(install, owner, limited, document):
    """The totals of the tenant are not those of the key."""
    quotas.set_limits(install.runtime.db, "owner", Quota(documents=1))
    said = limited.post("collections/shelf/documents", {"text": "One more.", "labels": ["public"]})
    assert (said.code, "1" in said.json["error"]["message"]) == ("quota_exceeded", False)


def test_numbers_beyond_bounds_are_refused_by_name(limited, document):
    """As for any other key."""
    said = limited.call("PATCH", f"{PREFIX}/documents/{document['id']}", {"metadata": {"a": 10**400}})
    assert (said.status, said.code) == (400, "bad_metadata")


def test_a_repeated_name_in_a_filter_is_refused():
    """JSON would keep the last one alone, and a key would see more than was meant."""
    with pytest.raises(BadRequestError, match="repeated"):
        filters.read('{"not": {"eq": {"$labels": "secret"}}, "not": {"eq": {"team": "b"}}}')


@pytest.fixture
def on_postgresql(postgresql_url, tmp_path):
    with contextlib.closing(ApiInstall(postgresql_url, tmp_path / "data")) as install:
        yield install


@pytest.mark.postgresql
def test_a_change_of_metadata_keeps_labels_that_were_changed_meanwhile(on_postgresql):
    """Both read the row first; the second writes only what it was asked to. On SQLite writers take turns."""
    client, services = on_postgresql.client, AppServices(on_postgresql.runtime)
    client.collection("shelf")
    body = {"text": "The first words.", "labels": ["public"]}
    document = client.post("collections/shelf/documents", body).json["document"]["id"]

    class Meanwhile(DocumentAccess):
        def check(self, current):
            if current.labels == ("public",):
                client.call("PATCH", f"{PREFIX}/documents/{document}", {"labels": ["secret"]})
            super().check(current)

    collection = services.collections.get("default", "shelf")
    plain = services.documents.request(RequestContext(), collection)
    request = dataclasses.replace(plain, access=Meanwhile())
    seen = services.documents.get("default", document)
    db = on_postgresql.runtime.db
    document_requests.change(db, seen, title=None, options=None, metadata={"a": 1}, request=request)
    after = client.get(f"documents/{document}").json
    assert (after["labels"], after["metadata"]) == (["secret"], {"a": 1})
