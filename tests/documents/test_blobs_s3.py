"""Blobs in a bucket, over HTTP to a server that speaks S3: whole, once, and deleted only when old."""

import concurrent.futures
import hashlib
import io
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from holdfast.core.errors import BadRequestError, StoreUnavailableError, WorkError
from holdfast.documents import blobs_s3
from holdfast.documents.blobs import Blob
from holdfast.documents.blobs_s3 import BucketLocation, S3Blobs
from tests.documents import s3_server

HELLO = Blob(hashlib.sha256(b"hello").hexdigest(), 5)
DAY = 86_400.0


@pytest.fixture(scope="module")
def endpoint():
    with s3_server.serving() as address:
        yield address


@pytest.fixture
def where(endpoint):
    return s3_server.made(endpoint)


class Time:
    """The clock of a test, some seconds ahead of everybody's."""

    ahead = 0.0

    def __call__(self):
        return time.time() + self.ahead


@pytest.fixture
def clock():
    return Time()


@pytest.fixture
def machine(where, tmp_path, clock):
    """`machine(name)` is the same bucket as another machine sees it, with a cache of its own."""
    items = []

    def blobs(name="one", cache=1 << 20):
        items.append(S3Blobs(where, tmp_path / name, cache, clock))
        return items[-1]

    yield blobs
    for each in items:
        each.close()


def keys(blobs):
    return [copy.key for copy in blobs._listed("")]


@pytest.mark.parametrize("source", [b"hello", io.BytesIO(b"hello")], ids=["bytes", "stream"])
def test_what_one_machine_puts_another_can_read(machine, source):
    """Under its SHA-256, as a stream and as a file; the same bytes again are no second object."""
    one, two = machine("one"), machine("two")
    assert one.put(source) == HELLO
    assert one.put(b"hello") == HELLO
    assert two.exists(HELLO.digest)
    assert two.path(HELLO.digest).read_bytes() == b"hello"
    with two.open(HELLO.digest) as stream:
        assert stream.read() == b"hello"
    assert [key.rsplit("/", 1)[0] for key in keys(one)] == [f"some/prefix/{HELLO.digest}"]


def test_a_large_upload_is_streamed_and_comes_back_whole(machine):
    """Never as one piece in memory, either way."""
    items = []

    class Stream(io.BytesIO):
        def read(self, size=-1):
            items.append(size)
            return super().read(size)

    data = os.urandom(9_000_000)
    digest = machine("one").put(Stream(data)).digest
    assert digest == hashlib.sha256(data).hexdigest()
    assert all(0 < size <= 1 << 20 for size in items)
    assert machine("two").path(digest).read_bytes() == data


def test_more_than_the_limit_is_refused_and_not_sent(machine):
    """As with a folder."""
    blobs = machine()
    with pytest.raises(BadRequestError) as caught:
        blobs.put(b"hello!", limit=5)
    assert caught.value.code == "too_large"
    assert keys(blobs) == []


def test_many_who_put_the_same_bytes_at_once_make_one_object(machine):
    """However they interleave."""
    blobs, gate = machine(), threading.Barrier(6)

    def write(_):
        gate.wait()
        return blobs.put(b"hello")

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert set(pool.map(write, range(6))) == {HELLO}
    assert len(keys(blobs)) == 1


def test_bytes_that_were_put_again_outlive_the_deletion_of_the_old_ones(machine, clock):
    """The one who deletes looked before the other put; what the other relies on stays."""
    blobs = machine()
    blobs.put(b"hello")
    blobs.put(b"young")
    clock.ahead = DAY + 5
    assert {blob.digest for blob in blobs.older(DAY)} == {HELLO.digest, hashlib.sha256(b"young").hexdigest()}
    seen = list(blobs._copies(HELLO.digest))
    other = machine("other")
    assert len(seen) == 1
    # The bucket's clock does not go ahead with ours: a new copy looks old as well, but has a key of its own.
    assert other.put(b"hello") == HELLO
    assert len(keys(blobs)) == 3
    blobs._client.delete_object(Bucket=blobs._where.bucket, Key=seen[0].key)
    assert machine("third").path(HELLO.digest).read_bytes() == b"hello"


def test_deleting_takes_only_what_is_old(machine, clock):
    """And says whether anything is left; a missing one is said to be missing."""
    blobs = machine()
    blobs.put(b"hello")
    assert not blobs.delete(HELLO.digest, age=60)
    clock.ahead = 120
    assert blobs.delete(HELLO.digest, age=60)
    assert not blobs.delete(HELLO.digest, age=60)
    assert not blobs.exists(HELLO.digest)
    with pytest.raises(WorkError) as caught:
        machine("two").path(HELLO.digest)
    assert caught.value.code == "blob_missing"


def test_the_listing_goes_on_where_it_was_left(machine, clock, monkeypatch):
    """By digest, over more than one page of the bucket's own listing, and past what is not ours."""
    monkeypatch.setattr(blobs_s3, "PAGE", 3)
    blobs = machine()
    items = sorted(blobs.put(b"%d" % number).digest for number in range(7))
    blobs._client.put_object(Bucket=blobs._where.bucket, Key="some/prefix/readme.txt", Body=b"x")
    clock.ahead = 60
    assert [blob.digest for blob in blobs.older(30)] == items
    assert [blob.digest for blob in blobs.older(30, items[2])] == items[3:]
    assert list(blobs.older(90)) == []


def test_the_cache_lets_go_of_what_was_used_longest_ago(machine):
    """Within its bound, but not of what was asked for just now; what is gone is fetched again."""
    blobs = machine(cache=100_000)
    items = [blobs.put(os.urandom(40_000)).digest for _ in range(4)]
    folder = blobs._cache
    assert all(folder.exists(digest) for digest in items)
    for age, digest in enumerate(items):
        then = time.time() - 3600 + age
        os.utime(folder.path(digest), (then, then))
    blobs.path(items[0])
    blobs.put(os.urandom(40_000))
    assert [folder.exists(digest) for digest in items] == [True, False, False, False]
    assert blobs.path(items[2]).stat().st_size == 40_000


def test_a_copy_that_is_not_what_it_says_is_not_used(machine):
    """Somebody wrote to the bucket by hand."""
    blobs = machine()
    blobs._client.put_object(Bucket=blobs._where.bucket, Key=f"{blobs._key(HELLO.digest)}1", Body=b"other")
    with pytest.raises(WorkError):
        blobs.path(HELLO.digest)


def test_a_bucket_that_is_not_there_is_told(where, tmp_path):
    """Nobody is at the address, or there is no such bucket."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    for position in (
        BucketLocation("none", "", where.endpoint, None, "key", "secret"),
        BucketLocation("none", "", f"http://127.0.0.1:{port}", None, "key", "secret"),
    ):
        blobs = S3Blobs(position, tmp_path / "cache")
        with pytest.raises(StoreUnavailableError) as caught:
            blobs.put(b"hello")
        assert caught.value.code == "blobs_unavailable"
        assert "secret" not in caught.value.message
        blobs.close()


@pytest.mark.parametrize(
    "url", ["s3://", "http://bucket", "s3://key:secret@bucket", "s3://bucket?colour=red", "s3://bucket#x"]
)
def test_an_address_that_names_no_bucket_is_refused(url):
    """With the form that it should have."""
    with pytest.raises(BadRequestError, match="s3://BUCKET"):
        blobs_s3.place(url)


def test_an_address_names_bucket_prefix_server_and_region():
    """What is left out is left to the client."""
    result = blobs_s3.place("s3://bucket/a/b/?endpoint=http://127.0.0.1:9000&region=here", "k", "s")
    assert result == BucketLocation("bucket", "a/b/", "http://127.0.0.1:9000", "here", "k", "s")
    assert blobs_s3.place("s3://bucket") == BucketLocation("bucket")


FORKS = """
import os, sys
from pathlib import Path
from holdfast.documents.blobs_s3 import S3Blobs, BucketLocation
blobs = S3Blobs(BucketLocation(sys.argv[1], "", sys.argv[2], None, "key", "secret"), Path(sys.argv[3]))
digest = blobs.put(b"from the parent").digest
pid = os.fork()
if not pid:
    blobs._cache.delete(digest)
    os._exit(0 if blobs.path(digest).read_bytes() == b"from the parent" else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_a_child_of_a_process_that_used_the_bucket_can_use_it_too(where, tmp_path):
    """Workers fork after the sweep of their parent has been at the bucket."""
    program = [sys.executable, "-c", FORKS, where.bucket, where.endpoint, str(tmp_path / "cache")]
    assert subprocess.run(program, timeout=60, check=False).returncode == 0
