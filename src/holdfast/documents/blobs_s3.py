"""Blobs in a bucket of Amazon S3 or a compatible server, with a local cache.

An object is written completely or not at all, so no rename is needed. What a bucket lacks is a lock: between
the check of an object's age and its deletion, another process may put the same bytes again. So each object is
a *copy*, `<digest>/<hour>`: putting bytes whose newest copy is older than `FRESH` adds a copy, and deleting
removes only old copies, never one that was just relied on.

Parsers need a file, so bytes are fetched into a cache of limited size; the most recently used stay. Ages
compare the server's clock with ours: they may differ by hours before a copy is deleted too soon.

The client is botocore's, created in each process because a worker forks. (obstore's runtime does not survive
a fork; its next call hangs.)
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, urlsplit

from holdfast.core.errors import BadRequestError, StoreUnavailableError, WorkError
from holdfast.documents.blobs import IDENTITY, Blob, LocalBlobs, digest_checked

FRESH = 3600.0
# What was requested this recently may be about to be opened, and stays in the cache regardless of its size.
IN_USE = 600.0
CACHE = 1 << 30
# Bytes added to the cache between two checks of its size.
LOOK_AFTER = 64 << 20
PAGE = 1000
_MISSING = frozenset({"404", "NoSuchKey", "NotFound"})


@dataclass(frozen=True, slots=True)
class BucketLocation:
    """The bucket and its keys; without keys, botocore's own look-up applies."""

    bucket: str
    prefix: str = ""
    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = None
    secret_key: str | None = None


def place(url: str, access_key: str | None = None, secret_key: str | None = None) -> BucketLocation:
    """The location in `s3://BUCKET/PREFIX?endpoint=URL&region=NAME`; BadRequestError for anything else."""
    parts = urlsplit(url)
    query = parse_qs(parts.query, keep_blank_values=True)
    unknown = set(query) - {"endpoint", "region"}
    if parts.scheme != "s3" or not parts.netloc or "@" in parts.netloc or unknown or parts.fragment:
        message = (
            "HOLDFAST_BLOBS_URL should look like "
            "s3://BUCKET/PREFIX?endpoint=http://HOST:PORT&region=NAME, without keys"
        )
        raise BadRequestError(message, code="bad_blobs_url")
    prefix = parts.path.strip("/")
    return BucketLocation(
        parts.netloc,
        f"{prefix}/" if prefix else "",
        query["endpoint"][0] if "endpoint" in query else None,
        query["region"][0] if "region" in query else None,
        access_key,
        secret_key,
    )


@dataclass(frozen=True, slots=True)
class _Copy:
    key: str
    digest: str
    size: int
    age: float


class S3Blobs:
    """See `blobs.Blobs`; `cache` limits the folder's size, except for files in use.

    Putting the same bytes again within an hour does not renew their age.
    """

    def __init__(
        self, where: BucketLocation, folder: Path, cache: int = CACHE, clock: Callable[[], float] = time.time
    ) -> None:
        self._where = where
        self._cache = LocalBlobs(folder)
        self._most = cache
        self._clock = clock
        self._since_look = LOOK_AFTER
        self._clients: dict[int, Any] = {}
        _botocore()

    def put(self, source: bytes | BinaryIO, limit: int | None = None) -> Blob:
        """See `Blobs.put`. The bytes pass through the cache, because the digest is known only at the end."""
        blob = self._cache.put(source, limit)
        self._came(blob.size)
        if any(copy.age < FRESH for copy in self._copies(blob.digest)):
            return blob
        # Two writers of the same bytes within one hour write the same object.
        key = f"{self._key(blob.digest)}{int(self._clock() // FRESH)}"
        with _translated(), self._cache.open(blob.digest) as file:
            self._client.put_object(Bucket=self._where.bucket, Key=key, Body=file, ContentLength=blob.size)
        return blob

    def draft(self) -> BinaryIO:
        """See `Blobs.draft`. It is in the cache, and uploaded from there."""
        return self._cache.draft()

    def open(self, digest: str) -> BinaryIO:
        """See `Blobs.open`."""
        return self.path(digest).open("rb")

    def path(self, digest: str) -> Path:
        """See `Blobs.path`. The file stays for ten minutes after the last request for it."""
        with contextlib.suppress(WorkError, FileNotFoundError):
            cached = self._cache.path(digest)
            os.utime(cached)
            return cached
        for copy in self._copies(digest):
            if self._fetched(copy):
                return self._cache.path(digest)
        raise WorkError(f"the bytes of document content {digest} are missing", code="blob_missing")

    def exists(self, digest: str) -> bool:
        """See `Blobs.exists`."""
        return any(True for _ in self._copies(digest))

    def delete(self, digest: str, *, age: float = 0.0) -> bool:
        """See `Blobs.delete`. The cache shrinks by itself."""
        copies = list(self._copies(digest))
        old = [copy for copy in copies if copy.age >= age]
        for copy in old:
            with _translated():
                self._client.delete_object(Bucket=self._where.bucket, Key=copy.key)
        return bool(old) and len(old) == len(copies)

    def older(self, age: float, after: str = "") -> Iterator[Blob]:
        """See `Blobs.older`. The bucket lists by key, so the copies of a blob come one after another."""
        last: _Copy | None = None
        # "/" sorts before "0", so all copies of this blob are skipped.
        for copy in self._listed(self._where.prefix, f"{self._where.prefix}{after}0" if after else ""):
            if last is not None and last.digest == copy.digest:
                last = min(last, copy, key=lambda one: one.age)
                continue
            if last is not None and last.age >= age:
                yield Blob(last.digest, last.size)
            last = copy
        if last is not None and last.age >= age:
            yield Blob(last.digest, last.size)

    def discard_partial(self, age: float) -> int:
        """See `Blobs.discard_partial`: those of this machine's cache."""
        return self._cache.discard_partial(age)

    def identity(self) -> str | None:
        """See `Blobs.identity`."""
        text: str | None = None
        with _translated():
            body = self._client.get_object(Bucket=self._where.bucket, Key=self._identity)["Body"]
            with contextlib.closing(body):
                text = body.read(1024).decode("ascii", errors="replace").strip()
        return text or None

    def identify(self, name: str) -> None:
        """See `Blobs.identify`."""
        with _translated():
            self._client.put_object(
                Bucket=self._where.bucket, Key=self._identity, Body=f"{name}\n".encode("ascii")
            )

    @property
    def _identity(self) -> str:
        return f"{self._where.prefix}{IDENTITY}"

    def close(self) -> None:
        """Close this process's connections."""
        client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    def _fetched(self, copy: _Copy) -> bool:
        """Fetch a copy into the cache; False if it is gone by now, or has the wrong digest."""
        with _translated() as request:
            body = self._client.get_object(Bucket=self._where.bucket, Key=copy.key)["Body"]
            with contextlib.closing(body):
                blob = self._cache.put(body)
        if request.missing:
            return False
        self._came(blob.size)
        return blob.digest == copy.digest

    def _came(self, size: int) -> None:
        self._since_look += size
        if self._since_look >= min(LOOK_AFTER, self._most // 8):
            self._since_look = 0
            self._cache.shrink(self._most, age=IN_USE)
            self._cache.discard_partial(86_400.0)

    def _key(self, digest: str) -> str:
        return f"{self._where.prefix}{digest_checked(digest)}/"

    def _copies(self, digest: str) -> Iterator[_Copy]:
        return self._listed(self._key(digest))

    def _listed(self, prefix: str, after: str = "") -> Iterator[_Copy]:
        """The copies below a prefix; other objects are ignored."""
        following = {"StartAfter": after} if after else {}
        while True:
            with _translated():
                page = self._client.list_objects_v2(
                    Bucket=self._where.bucket, Prefix=prefix, MaxKeys=PAGE, **following
                )
            now = self._clock()
            for each in page.get("Contents", ()):
                digest, _, hour = each["Key"].removeprefix(self._where.prefix).partition("/")
                if hour.isdigit() and len(digest) == 64:
                    yield _Copy(each["Key"], digest, each["Size"], now - each["LastModified"].timestamp())
            if not page.get("IsTruncated"):
                return
            following = {"ContinuationToken": page["NextContinuationToken"]}

    @property
    def _client(self) -> Any:
        pid = os.getpid()
        if pid not in self._clients:
            self._clients = {pid: _client(self._where)}  # the parent's connections are not ours to close
        return self._clients[pid]


def _botocore() -> Any:
    try:
        import botocore.config  # noqa: PLC0415 (an extra)
        import botocore.session  # noqa: PLC0415
    except ModuleNotFoundError as error:
        message = "blobs in a bucket need an extra; install it with: pip install 'holdfast[s3]'"
        raise BadRequestError(message, code="driver_missing") from error
    return botocore


def _client(where: BucketLocation) -> Any:
    """A client with timeouts, and without checksums that only Amazon's own servers support."""
    library = _botocore()
    config = library.config.Config(
        connect_timeout=5,
        read_timeout=60,
        retries={"mode": "standard", "total_max_attempts": 4},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path"} if where.endpoint else {},
    )
    return library.session.get_session().create_client(
        "s3",
        endpoint_url=where.endpoint,
        region_name=where.region or "us-east-1",
        aws_access_key_id=where.access_key,
        aws_secret_access_key=where.secret_key,
        config=config,
    )


@dataclass(slots=True)
class _BucketRequest:
    missing: bool = False


@contextlib.contextmanager
def _translated() -> Iterator[_BucketRequest]:
    """Translates the server's errors; `missing` is set if the object does not exist."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 (an extra)

    request = _BucketRequest()
    try:
        yield request
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in _MISSING:
            request.missing = True
            return
        raise _unavailable(error) from error
    except BotoCoreError as error:
        raise _unavailable(error) from error


def _unavailable(error: Exception) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"the bucket of HOLDFAST_BLOBS_URL did not respond ({error}); check its URL and keys, then try again",
        code="blobs_unavailable",
    )
