"""Files that are no bundles, or lie about what is in them: a clear error, and nothing is left behind."""

import io
import json
import struct
import zipfile

import pytest
from sqlalchemy import func, select

from holdfast.store.base.schema import calls, documents, heads
from tests.api.install import ApiInstall
from tests.moving.bundle_files import changed, exported, listed, packed, pieces, told

PART = "parts/00001"


@pytest.fixture
def install(sqlite_url, tmp_path):
    """What is wrong with a file is found before any database is asked."""
    installation = ApiInstall(sqlite_url, tmp_path / "data", most_import=1_000_000)
    yield installation
    installation.close()


@pytest.fixture
def bundle(install):
    install.client.indexed("The lighthouse keeper oils the great lamp before dusk.")
    return exported(install.client)


def left(install, tenant="other"):
    """What there is of the tenant: documents, calls, and documents at work."""
    tables = ((documents, documents.c.tenant), (calls, calls.c.tenant), (heads, heads.c.tenant))
    more = {heads: heads.c.kind == "index"}

    def body(tx):
        return [
            tx.execute(
                select(func.count()).select_from(table).where(column == tenant, more.get(table, True))
            ).scalar_one()
            for table, column in tables
        ]

    return install.runtime.db.read(body)


def later(bundle):
    return {**bundle, "format": 2}


AT_ONCE = {
    "text": (lambda _: b"This is a letter, not a bundle.", "bad_bundle"),
    "empty": (lambda _: b"", "bad_bundle"),
    "another zip": (lambda _: packed({"letter.txt": b"Dear all"}), "bad_bundle"),
    "cut in half": (lambda given: given[: len(given) // 2], "bad_bundle"),
    "a path": (lambda given: packed({**pieces(given), "../../etc/passwd": b"root"}), "bad_bundle"),
    "one part short": (
        lambda given: packed({k: v for k, v in pieces(given).items() if "vectors" not in k}),
        "bad_bundle",
    ),
    "manifest is a list": (lambda given: packed({**pieces(given), "manifest.json": b"[1]"}), "bad_bundle"),
    "deep json": (lambda given: packed({**pieces(given), "manifest.json": b"[" * 100_000}), "bad_bundle"),
    "a later format": (lambda given: changed(given, "manifest.json", later), "newer_bundle"),
    "a billion parts": (
        lambda given: changed(given, "manifest.json", lambda it: {**it, "parts": 10**9}),
        "bad_bundle",
    ),
    "a bad name": (
        lambda given: changed(
            given, "manifest.json", lambda it: {**it, "collection": {**it["collection"], "id": "../up"}}
        ),
        "bad_collection",
    ),
    "bad options": (
        lambda given: changed(
            given,
            "manifest.json",
            lambda it: {**it, "collection": {**it["collection"], "options": {"chunk_size": -1}}},
        ),
        None,
    ),
}


def test_what_plainly_is_no_bundle_is_refused_before_anything_is_kept(bundle, install):
    """400 with a code; no job, no collection, no blob."""
    other = install.key("other")
    shelf = len(list(install.runtime.shelf.older(-10.0)))
    for name, (spoil, code) in AT_ONCE.items():
        said = other.upload("imports", spoil(bundle), "shelf.zip")
        assert said.status == 400, (name, said.raw)
        assert code is None or said.code == code, (name, said.raw)
    assert other.get("collections").json["collections"] == []
    assert other.get("jobs").json["jobs"] == []
    assert len(list(install.runtime.shelf.older(-10.0))) == shelf
    assert left(install) == [0, 0, 0]


def with_lines(member, change):
    return lambda given: changed(given, f"{PART}/{member}", change)


def with_bytes(member, change):
    return lambda given: packed(
        {**pieces(given), f"{PART}/{member}": change(pieces(given)[f"{PART}/{member}"])}
    )


INSIDE = {
    "bytes of another document": with_bytes("content.bin", lambda raw: raw[:8] + b"X" + raw[9:]),
    "content cut off": with_bytes("content.bin", lambda raw: raw[:12]),
    "content of terabytes": with_bytes("content.bin", lambda raw: struct.pack("<Q", 1 << 45) + raw[8:]),
    "more content": with_bytes("content.bin", lambda raw: raw + b"more"),
    "vectors cut off": with_bytes("vectors.bin", lambda raw: raw[:-4]),
    "vectors that are no numbers": with_bytes("vectors.bin", lambda raw: b"\xff" * len(raw)),
    "a vector of the wrong size": with_lines("chunks.jsonl", lambda it: {**it, "vector": 7}),
    "a vector of gigabytes": with_lines("chunks.jsonl", lambda it: {**it, "vector": 1 << 32}),
    "a chunk without text": with_lines("chunks.jsonl", lambda it: {**it, "text": None}),
    "a page that cannot be": with_lines("chunks.jsonl", lambda it: {**it, "page": -3}),
    "fewer chunks than it says": with_lines("documents.jsonl", lambda it: {**it, "chunks": 2}),
    "no chunks": with_lines("documents.jsonl", lambda it: {**it, "chunks": 0}),
    "a digest that is a path": with_lines("documents.jsonl", lambda it: {**it, "digest": "../" * 20}),
    "a title that is a number": with_lines("documents.jsonl", lambda it: {**it, "title": 7}),
    "a title that no database keeps": with_lines("documents.jsonl", lambda it: {**it, "title": "\0\ud800"}),
    "no way of indexing": with_lines("documents.jsonl", lambda it: {**it, "index": None}),
    "a wrong way of indexing": with_lines(
        "documents.jsonl", lambda it: {**it, "index": {**it["index"], "chunk_size": "all"}}
    ),
    "unknown options": with_lines("documents.jsonl", lambda it: {**it, "options": {"shell": "rm"}}),
    "a line that is no JSON": with_bytes("documents.jsonl", lambda raw: b"{" + raw),
    "documents that it does not count": with_bytes("documents.jsonl", lambda raw: b""),
}


def test_what_is_wrong_inside_fails_the_job_and_leaves_nothing(bundle, install):
    """It was read to its end before anything was written: no document, no call, and no empty collection."""
    other = install.key("other")
    for name, spoil in INSIDE.items():
        said = other.upload("imports", spoil(bundle), "shelf.zip")
        assert said.status == 202, (name, said.raw)
        install.work()
        job = told(other, said)
        assert job["state"] == "failed", name
        assert job["error"]["code"] in {"bad_bundle", "too_large", "bad_option", "bad_digest"}, (
            name,
            job["error"],
        )
        assert job["error"]["category"] == "content", (name, job["error"])
        assert other.get("collections/shelf").status == 404, name
        assert left(install) == [0, 0, 0], name


@pytest.fixture
def edited_bundle(install):
    """A document of three chunks, the first switched off, the second with another text."""
    document = install.client.indexed("One.---Two.---Three.", options={"delimiter": "---"})["id"]
    for number, body in ((0, {"enabled": False}), (1, {"text": "Better."})):
        chunk = install.client.get(f"documents/{document}/chunks").json["chunks"][number]["id"]
        assert (
            install.client.call("PATCH", f"/api/v1/documents/{document}/chunks/{chunk}", body).status == 202
        )
        install.work()
    return exported(install.client)


def with_edits(**values):
    return with_lines("edits.jsonl", lambda it: {**it, **values})


EDITS = {
    "a text that is a number": with_edits(text=7),
    "a text that is empty": with_edits(text=""),
    "an original that is a list": with_edits(original=["x"]),
    "no original": with_edits(original=None),
    "enabled is a word": with_edits(enabled="yes"),
    "a page that is a truth": with_edits(page=True),
    "a context of a megabyte": with_edits(context="x" * 1_000_000),
    "an actor that no database keeps": with_edits(actor="\0"),
    "places that are a text": with_edits(at="0"),
    "a place that is a path": with_edits(at=[["../../etc/passwd", None, True, "m"]]),
    "a place before the first": with_edits(at=[[-1, None, True, "m"]]),
    "a place that is a truth": with_edits(at=[[True, None, True, "m"]]),
    "a chunk that is not there": with_edits(at=[[99, None, True, "m"]]),
    "a place far away": with_edits(at=[[2**31 - 1, None, False, "m"]]),
    "one place of two edits": with_edits(at=[[0, None, False, "m"]]),
    "ten thousand places": with_edits(at=[[0, None, False, "m"]] * 10_000),
    "the same edit twice": with_lines("edits.jsonl", lambda it: {**it, "original": "One.", "context": ""}),
    "a line that is no JSON": with_bytes("edits.jsonl", lambda raw: b"{" + raw),
    "a line that is a list": with_bytes("edits.jsonl", lambda raw: b"[]\n" + raw),
    "a deep line": with_bytes("edits.jsonl", lambda raw: b"[" * 100_000),
    "an edit too many": with_bytes("edits.jsonl", lambda raw: raw + raw.splitlines()[0] + b"\n"),
    "an edit too few": with_bytes("edits.jsonl", lambda raw: raw.splitlines()[0] + b"\n"),
    "edits by the billion": with_lines("documents.jsonl", lambda it: {**it, "edits": 10**9}),
}


def test_edits_that_are_none_fail_the_job_and_leave_nothing(edited_bundle, install):
    """Wrong types, huge values, chunks that are not there, the same edit twice: a clear code."""
    other = install.key("other")
    for name, spoil in EDITS.items():
        said = other.upload("imports", spoil(edited_bundle), "shelf.zip")
        assert said.status == 202, (name, said.raw)
        install.work()
        job = told(other, said)
        assert (job["state"], (job["error"] or {}).get("code")) == ("failed", "bad_bundle"), name
        assert left(install) == [0, 0, 0], name


def test_edits_below_another_path_are_no_bundle(edited_bundle, install):
    """A member has exactly its name, and a part that the manifest counts."""
    edits = pieces(edited_bundle)[f"{PART}/edits.jsonl"]
    for name in ("parts/../edits.jsonl", "edits.jsonl", "parts/00002/edits.jsonl", f"/{PART}/edits.jsonl"):
        spoiled = packed({**pieces(edited_bundle), name: edits})
        said = install.key("other").upload("imports", spoiled, "shelf.zip")
        assert (said.status, said.code) == (400, "bad_bundle"), name


def test_damage_that_the_checksum_finds(bundle, install):
    """A byte was changed on the way."""
    at = bundle.index(b"The lighthouse keeper")
    damaged = bundle[:at] + b"X" + bundle[at + 1 :]
    other = install.key("other")
    said = other.upload("imports", damaged, "shelf.zip")
    install.work()
    assert (told(other, said)["error"]["code"], left(install)) == ("bad_bundle", [0, 0, 0])


def test_a_collection_that_was_there_stays_when_an_import_fails(bundle, install):
    """With what is in it."""
    other = install.key("other")
    other.indexed("Mine.", to="shelf")
    said = other.upload("imports", INSIDE["content cut off"](bundle), "shelf.zip")
    install.work()
    assert told(other, said)["state"] == "failed"
    assert len(listed(other, "shelf")) == 1


def test_a_bundle_that_would_expand_without_end_is_refused(bundle, install):
    """By its own directory, before a byte of it is unpacked."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in pieces(bundle).items():
            archive.writestr(name, b"\0" * (64 << 20) if name.endswith("vectors.bin") else content)
    said = install.key("other").upload("imports", file.getvalue(), "bomb.zip")
    assert (said.status, said.code) == (413, "too_large")


def test_a_request_without_a_file_or_with_wrong_fields(bundle, install):
    """400 in the one shape, 401 and 403 before anything is read."""
    other, reader = install.key("other"), install.key("other", "read")
    assert other.post("imports", {}).code == "bad_request"
    assert other.upload("imports", bundle, collection="a/b").status == 400
    assert other.upload("imports", bundle, priority="high").status == 400
    assert other.upload("imports", bundle, shell="rm").status == 400
    assert reader.upload("imports", bundle).status == 403
    install.client.key = None
    assert install.client.upload("imports", bundle).status == 401


def test_an_upload_that_is_larger_than_allowed(install):
    """413 at the gate."""
    said = install.client.upload("imports", b"x" * 1_200_000)
    assert (said.status, said.code) == (413, "too_large")


def test_the_same_key_gives_the_same_answer_and_another_file_a_conflict(bundle, install):
    """As on every POST."""
    other = install.key("other")
    key = {"Idempotency-Key": "bring"}
    first = other.upload("imports", bundle, "a.zip", headers=key)
    again = other.upload("imports", bundle, "a.zip", headers=key)
    assert (first.status, first.json) == (again.status, again.json)
    said = other.upload("imports", packed({"a": b"b"}), "a.zip", headers=key)
    assert (said.status, said.code) == (409, "idempotency_conflict")
    twice = other.upload("imports", bundle, "a.zip")
    assert (twice.status, twice.code) == (409, "duplicate")
    assert json.loads(first.raw)["job"]["kind"] == "import"
