"""What the sweep does for documents: whole again without paying, and no bytes that nobody names."""

import os
import re
import time

import pytest
from sqlalchemy import delete, update

from holdfast import bootstrap, settings
from holdfast.service import maintenance
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from holdfast.store.base.schema import calls, chunks
from holdfast.store.library import integrity as stored
from holdfast.store.views import reads

TEXT = "\n\n".join(
    f"Paragraph {number} tells of anchors, ropes and the sea." for number in range(40)
).encode()
WISH = RequestContext()
OTHER = RequestContext("other")


@pytest.fixture
def install(database_url, tmp_path, monkeypatch):
    """An installation with an empty collection."""
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", database_url)
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(tmp_path))
    with bootstrap.open_runtime(settings.load()) as runtime:
        services = bootstrap.AppServices(runtime)
        services.collections.make(WISH, "books")
        yield runtime, services


@pytest.fixture
def indexed(install):
    runtime, services = install
    taking = services.documents.add(WISH, "books", [Upload(TEXT, "a.txt")])[0]
    runtime.engine.run_until_idle()
    return runtime, services, taking.document.id


def drift(runtime):
    return maintenance.Drift(
        runtime.db, runtime.engine.host, runtime.engine.parts.sender, runtime.engine.parts.patience
    )


def repaired(runtime, services, document_id):
    runtime.engine.run_until_idle()
    document = services.documents.get("default", document_id)
    shown = reads.visible_chunks(runtime.db, document.head_id)
    return document, len(shown.chunks)


@pytest.mark.g3
def test_chunks_that_vanished_come_back_and_nothing_is_paid(indexed):
    """Somebody deleted rows: a new generation is requested, made of what the ledger has."""
    runtime, services, document_id = indexed
    before = services.documents.get("default", document_id)
    runtime.db.write("by_hand", lambda tx: tx.execute(delete(chunks).where(chunks.c.position == 0)))
    assert drift(runtime)() == 1
    document, shown = repaired(runtime, services, document_id)
    assert (document.generation, shown) == (before.generation + 1, before.chunks)
    tasks = reads.tasks_of(runtime.db, document.run_id)
    assert sum(task.spent.paid_calls for task in tasks) == 0
    assert ("repair", "not_whole") in [
        (noted.verb, noted.reason) for noted in reads.story(runtime.db, document.head_id).journal
    ]


def test_vectors_that_vanished_are_made_again(indexed):
    """A ledger that lost rows is the one thing that must be paid for again."""
    runtime, services, document_id = indexed
    runtime.db.write("by_hand", lambda tx: tx.execute(delete(calls)))
    assert drift(runtime)() == 1
    document, shown = repaired(runtime, services, document_id)
    assert shown == document.chunks
    assert drift(runtime)() == 0


def test_a_call_of_another_tenant_is_no_vector_of_this_one(indexed):
    """A row of the ledger counts for its own tenant alone, whatever else that tenant has published."""
    runtime, services, document_id = indexed
    services.collections.make(OTHER, "books")
    services.documents.add(OTHER, "books", [Upload(TEXT, "a.txt")])
    runtime.engine.run_until_idle()
    taken = update(calls).where(calls.c.tenant == "default").values(tenant=OTHER.tenant)
    runtime.db.write("by_hand", lambda tx: tx.execute(taken))
    gaps, _ = stored.look(runtime.db, after=0, limit=100)
    whole = services.documents.get("default", document_id)
    assert [(gap.tenant, gap.missing_vectors) for gap in gaps] == [("default", whole.chunks)]


def test_the_look_for_gaps_reads_each_table_once(indexed):
    """A table named again inside a condition would be gone through for every chunk."""
    runtime, _, _ = indexed
    compiled = str(stored.LOOK.compile(dialect=runtime.db.engine.dialect))
    read = re.findall(r"(?:FROM|JOIN) (\w[\w, ]*?)(?= (?:LEFT|JOIN|ON)|\s*\n)", compiled)
    assert sorted(read) == [
        f"holdfast_{name}" for name in ("calls", "chunks", "chunks", "documents", "heads")
    ]


def test_what_is_whole_is_left_alone(indexed):
    """No repair where nothing is missing, however often one looks."""
    runtime, services, document_id = indexed
    look = drift(runtime)
    assert [look(), look(), look()] == [0, 0, 0]
    assert services.documents.get("default", document_id).generation == 1


def test_bytes_that_nobody_names_go_after_a_day(indexed):
    """An upload whose row never came is thrown away; what a document needs stays."""
    runtime, services, document_id = indexed
    lost = runtime.shelf.put(b"begun and never named")
    in_use = services.documents.get("default", document_id).digest
    old = time.time() - 2 * maintenance.KEPT_UNNAMED
    for digest in (lost.digest, in_use):
        os.utime(runtime.shelf.path(digest), (old, old))
    assert maintenance.Shelf(runtime.db, runtime.shelf)() == 1
    assert (runtime.shelf.exists(lost.digest), runtime.shelf.exists(in_use)) == (False, True)


def test_the_sweep_does_both(install):
    """The duties are among those that a sweeper wins."""
    runtime, _ = install
    won = runtime.engine.sweep().won
    assert {"drift", "shelf"} <= set(won)


def test_halves_of_uploads_that_a_dead_process_left_go_after_a_day(install):
    """One that is being written stays, however long the shelf has been there."""
    runtime, _library = install
    drafts = [runtime.shelf.draft() for _ in range(2)]
    for draft in drafts:
        draft.write(b"x" * 2_000_000)
    old, young = (draft.path for draft in drafts)
    then = time.time() - maintenance.KEPT_UNNAMED - 60
    os.utime(old, (then, then))
    assert maintenance.Shelf(runtime.db, runtime.shelf)() == 1
    assert (old.exists(), young.exists()) == (False, True)
    for draft in drafts:
        draft.close()
