"""Bytes on their way to the shelf are written once, and leave nothing when they do not get there."""

import errno
import hashlib
import os

import pytest

from holdfast.core.errors import BadRequestError, StoreUnavailableError
from holdfast.documents import blob_writer
from holdfast.documents.blobs import Blob, LocalBlobs

LARGE = os.urandom(3 * blob_writer.IN_MEMORY)


@pytest.fixture
def blobs(tmp_path):
    return LocalBlobs(tmp_path / "blobs")


def left_over(blobs):
    return list(blobs._partial.iterdir())


def written(blobs, data, step=700_000):
    draft = blobs.draft()
    for start in range(0, len(data), step):
        draft.write(data[start : start + step])
    draft.seek(0)
    return draft


@pytest.mark.parametrize("data", [b"", b"hello", LARGE], ids=["empty", "small", "large"])
def test_what_was_written_is_kept_under_its_digest(blobs, data):
    """And can still be read from the draft, which leaves nothing else behind."""
    with written(blobs, data) as draft:
        blob = blobs.put(draft)
        draft.seek(0)
        assert draft.read() == data
    assert blob == Blob(hashlib.sha256(data).hexdigest(), len(data))
    assert blobs.path(blob.digest).read_bytes() == data
    assert left_over(blobs) == []


def test_a_large_one_is_moved_and_not_written_again(blobs):
    """What is on the shelf is the very file that was written to."""
    with written(blobs, LARGE) as draft:
        (position,) = left_over(blobs)
        number = position.stat().st_ino
        blob = blobs.put(draft)
    assert blobs.path(blob.digest).stat().st_ino == number


def test_bytes_that_are_there_already_stay_as_they_are(blobs):
    """The second draft of them goes away; and putting the same draft twice is putting it once."""
    with written(blobs, LARGE) as first, written(blobs, LARGE) as second:
        assert blobs.put(first) == blobs.put(first) == blobs.put(second)
    assert left_over(blobs) == []


def test_a_draft_that_is_not_put_goes_away(blobs):
    """Also one that is too large, however it came to be that."""
    with written(blobs, LARGE):
        assert len(left_over(blobs)) == 1
    with written(blobs, LARGE) as draft, pytest.raises(BadRequestError) as caught:
        blobs.put(draft, limit=len(LARGE) - 1)
    assert caught.value.code == "too_large"
    assert left_over(blobs) == []
    assert list(blobs.older(-60.0)) == []


def test_what_was_not_written_in_order_is_copied(blobs):
    """The digest that was reckoned meanwhile would be wrong."""
    with written(blobs, LARGE) as draft:
        draft.write(b"another beginning")
        draft.seek(0)
        blob = blobs.put(draft)
        draft.seek(0)
        assert blob.digest == hashlib.sha256(draft.read()).hexdigest()
    assert left_over(blobs) == []


def test_a_draft_of_another_shelf_is_copied(blobs, tmp_path):
    """A file cannot be moved to where it may be on another disk."""
    with written(LocalBlobs(tmp_path / "other"), LARGE) as draft:
        assert blobs.put(draft).size == len(LARGE)


def test_a_disk_that_is_full_is_told_as_such(blobs, monkeypatch):
    """Whoever writes may come again; nothing is left."""
    draft = blobs.draft()

    def full(*_args, **_more):
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(blob_writer.tempfile, "mkstemp", full)
    with draft, pytest.raises(StoreUnavailableError) as caught:
        draft.write(LARGE)
    assert caught.value.code == "blobs_unavailable"
    assert left_over(blobs) == []
