"""Bytes are kept whole, once, and for good."""

import concurrent.futures
import errno
import hashlib
import io
import os
import subprocess
import sys
import threading
import time

import pytest

from holdfast.core.errors import BadRequestError, StoreUnavailableError, WorkError
from holdfast.documents import blobs as module
from holdfast.documents.blobs import Blob, LocalBlobs

HELLO = Blob(hashlib.sha256(b"hello").hexdigest(), 5)


@pytest.fixture
def blobs(tmp_path):
    return LocalBlobs(tmp_path / "blobs")


def left_over(blobs):
    return list(blobs._partial.iterdir())


def aged(blobs, digest, seconds):
    then = time.time() - seconds
    os.utime(blobs.path(digest), (then, then))


@pytest.mark.parametrize("source", [b"hello", io.BytesIO(b"hello")], ids=["bytes", "stream"])
def test_what_was_put_can_be_opened(blobs, source):
    """Under its SHA-256, as a stream and as a file."""
    assert blobs.put(source) == HELLO
    assert blobs.exists(HELLO.digest)
    assert blobs.path(HELLO.digest).read_bytes() == b"hello"
    with blobs.open(HELLO.digest) as stream:
        assert stream.read() == b"hello"
    assert left_over(blobs) == []


def test_a_large_stream_is_not_held_in_memory(blobs):
    """It is read in steps, never as a whole."""
    items = []

    class Stream(io.BytesIO):
        def read(self, size=-1):
            items.append(size)
            return super().read(size)

    data = os.urandom(3 * 1024 * 1024)
    assert blobs.put(Stream(data)).digest == hashlib.sha256(data).hexdigest()
    assert all(0 < size <= 1024 * 1024 for size in items)


def test_more_than_the_limit_is_refused_and_leaves_nothing(blobs):
    """The limit itself is allowed."""
    assert blobs.put(b"hello", limit=5) == HELLO
    with pytest.raises(BadRequestError) as caught:
        blobs.put(io.BytesIO(b"hello!"), limit=5)
    assert caught.value.code == "too_large"
    assert left_over(blobs) == []


def test_two_writers_of_the_same_bytes_do_no_harm(blobs):
    """However they interleave, there is one blob and nothing beside it."""
    data = os.urandom(200_000)
    gate = threading.Barrier(8)

    def write(_):
        gate.wait()
        return blobs.put(io.BytesIO(data))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        result = set(pool.map(write, range(8)))
    assert len(result) == 1
    assert blobs.path(result.pop().digest).read_bytes() == data
    assert left_over(blobs) == []


@pytest.mark.parametrize("step", ["write", "fsync", "rename"])
def test_a_full_disk_is_told_and_leaves_nothing(blobs, monkeypatch, step):
    """At whichever step the disk gives up."""

    def refuse(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    if step == "write":
        monkeypatch.setattr(module.os, "fdopen", lambda number, *_a, **_k: _Full(number))
    elif step == "fsync":
        monkeypatch.setattr(module.os, "fsync", refuse)
    else:
        monkeypatch.setattr(module.Path, "rename", refuse)
    with pytest.raises(StoreUnavailableError, match="the disk is full") as caught:
        blobs.put(b"hello")
    assert caught.value.code == "blobs_unavailable"
    assert not blobs.exists(HELLO.digest)
    assert left_over(blobs) == []


class _Full(io.FileIO):
    def __init__(self, number):
        super().__init__(number, "wb")

    def write(self, _data):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_source_that_fails_keeps_its_own_error(blobs):
    """A client that hangs up is not a full disk."""

    class Cut(io.BytesIO):
        def read(self, _size=-1):
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        blobs.put(Cut())
    assert left_over(blobs) == []


def test_what_is_missing_is_said_to_be(blobs):
    """A run that needs it fails with a code, and deleting it again changes nothing."""
    for find in (blobs.path, blobs.open):
        with pytest.raises(WorkError) as caught:
            find(HELLO.digest)
        assert caught.value.code == "blob_missing"
    assert not blobs.exists(HELLO.digest)
    assert not blobs.delete(HELLO.digest)


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_only_a_digest_names_a_blob(blobs, digest):
    """No name leads out of the folder."""
    with pytest.raises(BadRequestError):
        blobs.path(digest)


def test_what_nobody_touched_for_long_is_listed(blobs):
    """Old uploads are found by their age; putting the same bytes again makes them young."""
    young = blobs.put(b"young")
    blobs.put(b"hello")
    aged(blobs, HELLO.digest, 3600)
    assert list(blobs.older(60)) == [HELLO]
    assert set(blobs.older(0)) == {HELLO, young}
    blobs.put(b"hello")
    assert list(blobs.older(60)) == []


def test_a_blob_that_was_put_again_is_not_deleted_for_its_age(blobs):
    """Between the listing and the deleting somebody may have come to need it."""
    blobs.put(b"hello")
    aged(blobs, HELLO.digest, 3600)
    blobs.put(b"hello")
    assert not blobs.delete(HELLO.digest, age=60)
    assert blobs.exists(HELLO.digest)
    assert blobs.delete(HELLO.digest)
    assert not blobs.exists(HELLO.digest)


WRITER = """
import sys
from pathlib import Path
from holdfast.documents.blobs import LocalBlobs
LocalBlobs(Path(sys.argv[1])).put(sys.stdin.buffer)
"""


def test_a_writer_that_is_killed_leaves_no_blob(blobs):
    """Half of an upload is not a document; what it left can be found by its age and discarded."""
    folder = blobs._folder
    with subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdin=subprocess.PIPE) as process:
        process.stdin.write(b"x" * 2_000_000)
        process.stdin.flush()
        while not any(entry.stat().st_size for entry in blobs._partial.iterdir()):
            assert process.poll() is None
        process.kill()
    assert list(blobs.older(0)) == []
    assert blobs.discard_partial(60) == 0
    assert blobs.discard_partial(0) == 1
    assert left_over(blobs) == []


def test_the_folder_of_a_shard_is_made_to_last_once(tmp_path, monkeypatch):
    """A blob in a shard that is known to last flushes that shard alone; one that was made anew, all again."""
    flushed = []
    flush = module._flush
    monkeypatch.setattr(module, "_flush", lambda folder: (flushed.append(folder.name), flush(folder)))
    shelf = LocalBlobs(tmp_path / "shelf")
    alike = [data for data in (b"%d" % n for n in range(2000)) if shard_of(data) == shard_of(b"0")][:3]
    for data in alike[:2]:
        shelf.put(data)
    assert flushed == [shard_of(b"0"), "shelf", shard_of(b"0")]
    for data in alike[:2]:
        shelf.delete(hashlib.sha256(data).hexdigest())
    (tmp_path / "shelf" / shard_of(b"0")).rmdir()
    shelf.put(alike[2])
    assert flushed[3:] == [shard_of(b"0"), "shelf"]


def shard_of(data):
    return hashlib.sha256(data).hexdigest()[:2]
