"""A real worker is killed in the middle of an import: another goes on, nothing is there twice or paid for."""

import hashlib
import io
import json
import struct

import pytest
from sqlalchemy import func, select

from holdfast import bootstrap
from holdfast.chaos.waiting import until
from holdfast.core.states import LIVE, Status
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from holdfast.store.base.schema import chunks, documents, heads
from tests.live_install import mill as running
from tests.moving.bundle_files import packed, pieces

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(300)]
PARTS, PER_PART = 6, 20
MINE = RequestContext("other")


@pytest.fixture
def mill(database_url, monkeypatch, tmp_path, meter):
    """An installation with a metered provider and a collection of one document."""
    with running(
        monkeypatch,
        tmp_path,
        [Upload(b"The first of many.", "0.txt")],
        database_url=database_url,
        embedding_provider="openai",
        embedding_base_url=meter.base_url,
        worker_concurrency=1,
    ) as created:
        yield created


def many(runtime):
    """The bundle of the collection, as if it had many documents."""
    carried, jobs = bootstrap.AppServices(runtime).transfer, bootstrap.AppServices(runtime).jobs
    shelf = bootstrap.AppServices(runtime).collections.get("default", "shelf")
    run_id = carried.export(RequestContext(), shelf).run_id
    runtime.engine.run_until_idle()
    file = carried.file(jobs.view("default", run_id))
    with file.content:
        one = pieces(file.content.read())
    about, chunk = (json.loads(one[f"parts/00001/{name}.jsonl"]) for name in ("documents", "chunks"))
    vector = one["parts/00001/vectors.bin"]
    manifest = json.loads(one["manifest.json"])
    created = {}
    for part in range(1, PARTS + 1):
        texts = [f"Number {number} of part {part}.".encode() for number in range(PER_PART)]
        digests = [hashlib.sha256(text).hexdigest() for text in texts]
        created[f"parts/{part:05d}/documents.jsonl"] = lines({**about, "digest": each} for each in digests)
        created[f"parts/{part:05d}/chunks.jsonl"] = lines({**chunk, "text": each.decode()} for each in texts)
        created[f"parts/{part:05d}/vectors.bin"] = vector * PER_PART
        created[f"parts/{part:05d}/content.bin"] = b"".join(
            struct.pack("<Q", len(text)) + text + struct.pack("<Q", 0) for text in texts
        )
    total = PARTS * PER_PART
    counted = {**manifest, "parts": PARTS, "documents": total, "chunks": total, "vectors": total}
    return packed({**created, "manifest.json": json.dumps(counted).encode()})


def lines(records):
    return b"".join(json.dumps(each).encode() + b"\n" for each in records)


@pytest.mark.g3
@pytest.mark.g4
@pytest.mark.g5
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_worker_killed_in_the_middle_of_an_import(mill, meter):
    """Every document is there once and whole, and the provider was asked for nothing."""
    runtime, worker = mill
    bundle = many(runtime)
    paid = meter.totals().charges
    run_id = bootstrap.AppServices(runtime).transfer.bring(MINE, io.BytesIO(bundle)).run_id
    ready = select(func.count()).select_from(heads).where(heads.c.tenant == "other", heads.c.visible)
    mine = ready.where(heads.c.kind == "index")
    first = worker("first")

    def there(query=mine):
        return runtime.db.read(lambda tx: tx.execute(query).scalar_one())

    until(lambda: there() >= 3, 90, "no document has come")
    first.kill()
    assert there() < PARTS * PER_PART
    worker("second")
    jobs = bootstrap.AppServices(runtime).jobs
    until(lambda: jobs.view("other", run_id).job.run.status not in LIVE, 120, "the import does not end")
    assert jobs.view("other", run_id).job.run.status is Status.SUCCESS
    until(lambda: there() == PARTS * PER_PART, 60, "a document is missing")
    live = select(func.count()).select_from(documents).where(documents.c.tenant == "other")
    rows = (
        select(func.count())
        .select_from(chunks.join(heads, heads.c.id == chunks.c.head_id))
        .where(heads.c.tenant == "other", chunks.c.generation == heads.c.published_generation)
    )
    assert (there(live), there(rows)) == (PARTS * PER_PART, PARTS * PER_PART)
    assert meter.totals().charges == paid
