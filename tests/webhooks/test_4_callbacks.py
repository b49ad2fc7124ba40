"""A callback that can never be made is refused with the request, whatever it would be about."""

import pytest
from sqlalchemy import func, select

from holdfast.store.base.schema import runs
from tests.api.install import ApiInstall
from tests.moving.bundle_files import exported

INSIDE = {"url": "http://127.0.0.1:9/told"}


@pytest.fixture
def houses(database_url, tmp_path):
    """An installation that posts to nobody inside the network, and one that may."""
    items = []

    def opened(*, private):
        items.append(ApiInstall(database_url, tmp_path / "data", webhook_private=private))
        return items[-1]

    yield opened
    for each in items:
        each.close()


def asked(client, bundle, callback):
    """The answers to a job, an export and an import with this callback."""
    return [
        client.post("collections/shelf/jobs", {"kind": "qa", "callback": callback}),
        client.post("collections/shelf/export", {"callback": callback}),
        client.upload("imports", bundle, "shelf.zip", collection="new", callback_url=callback["url"]),
    ]


def count(install):
    return install.runtime.db.read(lambda tx: tx.execute(select(func.count()).select_from(runs)).scalar_one())


def test_a_callback_inside_the_network_is_refused_with_the_request(houses):
    """Of a job, of an export and of an import alike: 400 `url_forbidden`, and nothing is left behind."""
    install = houses(private=False)
    install.client.indexed("The lighthouse keeper oils the great lamp before dusk.")
    bundle = exported(install.client)
    before = count(install)
    for said in asked(install.client, bundle, INSIDE):
        assert (said.status, said.code) == (400, "url_forbidden"), said.raw
        assert "HOLDFAST_WEBHOOK_PRIVATE" in said.json["error"]["message"]
    assert count(install) == before
    assert install.client.get("collections/new").status == 404


def test_where_it_is_allowed_each_of_them_calls_back(houses, receiver):
    """A job, an export and an import tell the address that they were given."""
    install = houses(private=True)
    install.client.indexed("The lighthouse keeper oils the great lamp before dusk.")
    bundle = exported(install.client)
    for said in asked(install.client, bundle, {"url": receiver.url}):
        assert said.status == 202, said.raw
    install.work()
    kinds = [came.event["job"]["kind"] for came in receiver.came]
    assert sorted(kinds) == ["export", "import", "qa"]
