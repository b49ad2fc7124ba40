"""An archive and a file of it are published at the same moment, and neither waits in a circle."""

import threading

import pytest
from sqlalchemy import text

from holdfast.chaos.waiting import until
from holdfast.store.base import rows
from tests.indexing.install import WISH, IndexingInstall
from tests.indexing.test_9_members import MOON, TIDE, archive, children

WAITING = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
COUNTER = text("SELECT publish_seq FROM holdfast_collections WHERE id = 'shelf' FOR UPDATE NOWAIT")


@pytest.fixture
def install(postgresql_url, tmp_path, meter, parser):
    installation = IndexingInstall(postgresql_url, tmp_path / "data", meter, parser)
    yield installation
    installation.close()


@pytest.mark.postgresql
@pytest.mark.parametrize("change", ["publish", "delete"])
def test_an_archive_waits_for_its_file_without_holding_the_collection(install, change):
    """A file that holds its head may still raise the counter of the collection, which it needs to publish."""
    box = install.indexed(archive(a=TIDE, b=MOON))
    child = install.document({each.title: each.id for each in children(install, box)}["b.txt"])
    install.put(box.id, archive(a=TIDE), "papers.zip")
    other = install.worker("other")
    play = other.work_off if change == "publish" else lambda: install.client().delete(WISH, box.id)
    thread, watcher = threading.Thread(target=play), install.worker("watcher").db

    def body(tx):
        tx.one(rows.HEAD_FOR_CHANGE, {"head_id": child.head_id})
        thread.start()
        until(lambda: watcher.read(lambda seen: seen.execute(WAITING).scalar()), 60, "a wait for a lock")
        tx.execute(COUNTER)  # fails at once if the archive holds it

    install.db.write("by_hand", body)
    thread.join(60)
    assert not thread.is_alive()
    assert install.find("moon") == []
