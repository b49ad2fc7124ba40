"""The power fails: what was accepted and what was paid is on the disk, what was done is done again for free.

A commit that did not wait for the disk may be lost with the machine. So at every fault point the worst disk
there could be is taken: everything after the last commit that waited is gone.
"""

import dataclasses
import shutil
from pathlib import Path

import pytest

from holdfast import faults
from holdfast.core.states import Status
from holdfast.store.base.database import Database
from tests.indexing.install import IndexingInstall

TEXT = "\n\n".join(f"Paragraph {number} tells of harbour {number} and its light." * 8 for number in range(9))
POINTS = [
    *(
        "claim.commit",
        "claim.committed",
        "intend.commit",
        "intend.committed",
        "send.commit",
        "send.committed",
    ),
    *("send.first_byte", "send.begun", "send.answered", "send.heard"),
    *("settle.commit", "settle.committed", "finish.commit", "finish.committed"),
]
FREE = "wordllama-256"
AT_ONCE = ["send_at_once.commit", "send_at_once.committed", "send.begun", "send.heard", "settle.commit"]


class Disk:
    """How much of SQLite's write-ahead log is sure to be on the disk."""

    def __init__(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = Path(url.removeprefix("sqlite:///"))
        self.sure = 0
        self._relaxed = False
        write = Database.write

        def watched(db, name, body, *, relaxed=False):
            self._relaxed = relaxed
            answer = write(db, name, body, relaxed=relaxed)
            self.reached(f"{name}.committed")
            return answer

        monkeypatch.setattr(Database, "write", watched)

    @property
    def log(self) -> Path:
        return self.file.with_name(f"{self.file.name}-wal")

    def reached(self, point: str) -> None:
        if point.endswith(".committed") and not self._relaxed and self.log.exists():
            self.sure = self.log.stat().st_size

    def worst(self, folder: Path) -> str:
        """The address of the database as it may be found after the power is back."""
        folder.mkdir()
        shutil.copyfile(self.file, folder / self.file.name)
        (folder / self.log.name).write_bytes(self.log.read_bytes()[: self.sure])
        return f"sqlite:///{folder / self.file.name}"


@pytest.fixture
def on_board(meter, monkeypatch):
    """The meter takes its orders as a provider in this process does: intended and marked sent at once."""
    provider, profile = meter.provider, dataclasses.replace(meter.profile(), in_process=True)
    monkeypatch.setattr(meter, "provider", lambda: provider(profile))


@pytest.mark.parametrize("point", POINTS)
def test_after_a_power_cut_the_document_is_indexed_and_nothing_is_paid_twice(
    point, sqlite_url, tmp_path, meter, parser, monkeypatch
):
    """G4, G5: the request, the order under way and the results are there; no key is made a second time."""
    requested, needed = survives(point, sqlite_url, tmp_path, meter, parser, monkeypatch)
    assert requested == needed


@pytest.mark.usefixtures("on_board")
@pytest.mark.parametrize("point", AT_ONCE)
def test_after_a_power_cut_an_order_that_was_marked_at_once_is_known(
    point, sqlite_url, tmp_path, meter, parser, monkeypatch
):
    """G5: the mark waited for the disk, and its order with it."""
    requested, needed = survives(point, sqlite_url, tmp_path, meter, parser, monkeypatch)
    assert requested == needed


def survives(point, sqlite_url, tmp_path, meter, parser, monkeypatch, **choices):
    """The power is cut at the point; with what is left on the disk the document is indexed.

    Answers how many inputs the provider was asked for, and how many are needed.
    """
    disk = Disk(sqlite_url, monkeypatch)
    before = IndexingInstall(sqlite_url, tmp_path / "data", meter, parser, **choices)
    document = before.upload(TEXT, "harbours.txt").document

    def cut(name: str) -> None:
        disk.reached(name)
        if name == point:
            raise faults.Crash

    with pytest.raises(faults.Crash), faults.armed(cut):
        before.work()
    after = IndexingInstall(disk.worst(tmp_path / "after"), tmp_path / "data", meter, parser, **choices)
    before.close()
    after.pass_time(3600.0)
    after.engine.run_until_idle()
    view = after.document(document.id)
    assert view.status is Status.SUCCESS
    requested, needed = after.paid(), len(after.texts(view))
    after.close()
    assert needed > 1
    return requested, needed


def test_relaxed_commits_are_not_waited_for(sqlite_url, tmp_path, meter, parser, monkeypatch):
    """Only the request, the mark before the first byte and the settled order wait for the disk."""
    waited = waited_for(sqlite_url, tmp_path, meter, parser, monkeypatch)
    assert waited == ["make_collection", "add_documents", "send", "settle"]


@pytest.mark.usefixtures("on_board")
def test_a_mark_made_at_once_is_waited_for(sqlite_url, tmp_path, meter, parser, monkeypatch):
    """It is the mark before the first byte, whoever answers, where that costs something."""
    waited = waited_for(sqlite_url, tmp_path, meter, parser, monkeypatch)
    assert waited == ["make_collection", "add_documents", "send_at_once", "settle"]


@pytest.mark.usefixtures("on_board")
def test_a_mark_of_what_is_free_is_not_waited_for(sqlite_url, tmp_path, meter, parser, monkeypatch):
    """Nobody outside hears of it, and to do it again costs nothing; its results are waited for."""
    waited = waited_for(sqlite_url, tmp_path, meter, parser, monkeypatch, model=FREE)
    assert waited == ["make_collection", "add_documents", "settle"]


@pytest.mark.usefixtures("on_board")
@pytest.mark.parametrize("point", AT_ONCE)
def test_after_a_power_cut_what_is_free_is_done_again(
    point, sqlite_url, tmp_path, meter, parser, monkeypatch
):
    """G4: the order may be forgotten; the document is indexed all the same."""
    requested, needed = survives(point, sqlite_url, tmp_path, meter, parser, monkeypatch, model=FREE)
    assert needed <= requested <= 2 * needed


def waited_for(sqlite_url, tmp_path, meter, parser, monkeypatch, **choices):
    """The names of the transactions that wait for the disk until a document is indexed."""
    waited: list[str] = []
    write = Database.write

    def watched(db, name, body, *, relaxed=False):
        def noting(tx):
            mode = tx.connection.exec_driver_sql("PRAGMA synchronous").scalar()
            waited.extend([name] if mode == 2 else [])
            return body(tx)

        return write(db, name, noting, relaxed=relaxed)

    monkeypatch.setattr(Database, "write", watched)
    install = IndexingInstall(sqlite_url, tmp_path / "data", meter, parser, **choices)
    waited.clear()
    install.indexed(TEXT, "harbours.txt")
    install.close()
    return waited
