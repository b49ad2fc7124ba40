"""The objects of a bucket below a prefix, in Amazon S3 or a compatible server.

botocore signs the requests; they are sent by `documents.fetch`, because botocore would resolve the endpoint
again after it was checked and follow redirects by itself. Without keys a request is not signed, which public
buckets accept; the keys of the installation are used only for buckets that its operator has named, or anybody
who may add a source could read the documents of all tenants. They sign requests to an endpoint only if the
operator has named it with the bucket: it would see the session token, and could replay what was signed.
"""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from holdfast import extras
from holdfast.clock import boot_time
from holdfast.core.text import is_plain
from holdfast.documents.fetch import RequestDetails, StatusError, Validators
from holdfast.documents.sources import xml_events
from holdfast.documents.sources.downloads import Download, Downloader
from holdfast.documents.sources.options import SourceOptions
from holdfast.documents.sources.patterns import PathFilter
from holdfast.documents.sources.source import FetchedItem, Listing, SourceError, SourceItem, SourceLimits
from holdfast.documents.sources.xml_events import LimitedText, local_name

PAGE = 1000
MOST_PAGE = 16 * 1024 * 1024
MOST_FIELD = 8192
# The whole of a listing takes at most so many times the limit of one exchange.
LISTING_EXCHANGES = 20
DEFAULT_REGION = "us-east-1"
_UNRESERVED = "-_.~"
_ELSEWHERE = frozenset({301, 302, 303, 307, 308, 400})


@dataclass(frozen=True, slots=True)
class BucketPrefix:
    """What is listed, and where; `base` is the URL of the bucket, which ends in a slash."""

    bucket: str
    prefix: str
    base: str
    region: str


@dataclass(frozen=True, slots=True)
class BucketObject:
    """One object in a listing."""

    key: str
    etag: str
    size: int


class BucketObjects:
    """See `Source`."""

    def __init__(
        self,
        location: BucketPrefix,
        credentials: Callable[[], Any] | None,
        paths: PathFilter,
        limits: SourceLimits,
    ) -> None:
        """`credentials` signs the requests; it is called at the first one, and may have to ask a server."""
        self._location = location
        self._find_credentials = credentials
        self._credentials: Any = None
        self._paths = paths
        self._limits = limits
        self._downloader = Downloader(dataclasses.replace(limits, redirects=0))

    def list(self, state: str) -> Listing:  # noqa: ARG002 (a bucket has none)
        """See `Source.list`. The bucket is read a thousand objects at a time."""
        return Listing(self._items())

    def fetch(self, item: SourceItem, version: str) -> FetchedItem | None:
        """See `Source.fetch`."""
        key = item.external_id.removeprefix(f"s3://{self._location.bucket}/")
        etag = version.rpartition(" ")[0]
        download = self._get(quote(key, f"/{_UNRESERVED}"), known=Validators(f'"{etag}"') if etag else None)
        if download is None:
            return None
        response = download.response
        fetched = _version(response.validators.etag or "", response.size)
        # Of content that is stored compressed the listing has another size.
        is_listed = fetched.rpartition(" ")[0] in {"", item.version.rpartition(" ")[0]}
        name, content_type = response.name, response.content_type
        return FetchedItem(download.content, item.version if is_listed else fetched, name, content_type)

    def _items(self) -> Iterator[SourceItem]:
        count = 0
        for each in self._objects():
            if _is_folder(each) or not is_plain(each.key) or not self._paths.accepts(each.key):
                continue
            count += 1
            if count > self._limits.items:
                raise SourceError(
                    "too_many_items",
                    f"the bucket has more than {self._limits.items:,} objects below"
                    f" {self._location.prefix!r}; choose some with prefix or include",
                )
            name = each.key.rstrip("/").rpartition("/")[2]
            version = _version(each.etag, each.size)
            yield SourceItem(f"s3://{self._location.bucket}/{each.key}", version, name or each.key)

    def _objects(self) -> Iterator[BucketObject]:
        deadline = boot_time() + LISTING_EXCHANGES * self._limits.seconds
        token = ""
        while True:
            query = {"encoding-type": "url", "list-type": "2", "max-keys": str(PAGE)}
            query |= {"prefix": self._location.prefix}
            query |= {"continuation-token": token} if token else {}
            download = self._get("", query, left=deadline - boot_time(), most_bytes=MOST_PAGE)
            page = _ListingHandler(self._location.bucket)
            if download is not None:
                with download.content as content:
                    for _ in xml_events.read(content, page, "the listing of the bucket"):
                        yield from page.take()
            if not page.next_token:
                if page.is_truncated:
                    message = "the listing of the bucket is cut and does not say how it continues"
                    raise SourceError("bad_source", message)
                return
            if page.next_token == token:
                raise SourceError("bad_source", "the listing of the bucket repeats itself")
            token = page.next_token

    def _get(
        self,
        path: str,
        query: dict[str, str] | None = None,
        *,
        known: Validators | None = None,
        left: float | None = None,
        most_bytes: int | None = None,
    ) -> Download | None:
        if left is not None and left <= 0:
            raise SourceError("unreachable", "the bucket took too long to list; choose a longer prefix")
        pairs = (f"{name}={quote(value, _UNRESERVED)}" for name, value in sorted((query or {}).items()))
        url = self._location.base + path + ("?" + "&".join(pairs) if query else "")
        details = RequestDetails(self._signature(url))
        try:
            return self._downloader.get(url, known, details=details, most_bytes=most_bytes, seconds=left)
        except SourceError as error:
            raise self._explained(error) from error

    def _signature(self, url: str) -> tuple[tuple[str, str], ...]:
        if self._find_credentials is None:
            return ()
        if self._credentials is None:
            self._credentials = self._find_credentials()
        auth, request = _botocore("auth"), _botocore("awsrequest").AWSRequest(method="GET", url=url)
        auth.S3SigV4Auth(self._credentials, "s3", self._location.region).add_auth(request)
        return tuple((str(name), str(value)) for name, value in request.headers.items())

    def _explained(self, error: SourceError) -> SourceError:
        """What a status means for a bucket."""
        status = error.__cause__.status if isinstance(error.__cause__, StatusError) else 0
        bucket = self._location.bucket
        if status in _ELSEWHERE:
            message = f"the bucket {bucket} is elsewhere (status {status}); correct region or endpoint"
            return SourceError("bad_source", message)
        if status in {401, 403}:
            message = f"the bucket {bucket} refused access (status {status}); check its keys and their rights"
            return SourceError("access_denied", message)
        if status == 404:
            return SourceError("bad_source", f"the bucket {bucket}, or an object of it, does not exist")
        return error


def _version(etag: str, size: int) -> str:
    etag = etag.removeprefix("W/").strip('"')
    return f"{etag} {size}" if etag else ""


def _is_folder(each: BucketObject) -> bool:
    """True for the empty objects by which tools show folders."""
    return each.size == 0 and each.key.endswith(("/", "_$folder$"))


class _ListingHandler:
    """Collects the objects of one page of a listing, and the token of the next page."""

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket
        self._objects: list[BucketObject] = []
        self._fields: dict[str, LimitedText] = {}
        self._current: LimitedText | None = None
        self._token: LimitedText | None = None
        self._truncated: LimitedText | None = None

    @property
    def is_truncated(self) -> bool:
        """True if the server says that the listing goes on."""
        return str(self._truncated or "").strip().lower() == "true"

    @property
    def next_token(self) -> str:
        """Empty if this page is the last."""
        return str(self._token or "").strip()

    def take(self) -> list[BucketObject]:
        """The objects since the last call."""
        taken, self._objects = self._objects, []
        return taken

    def start(self, depth: int, name: str, _attributes: dict[str, str]) -> None:
        name, self._current = local_name(name), None
        if depth == 1 and name != "ListBucketResult":
            raise SourceError("bad_source", f"what answers for the bucket {self._bucket} does not speak S3")
        if depth == 2 and name == "Contents":
            self._fields = {}
        elif depth == 2 and name == "NextContinuationToken":
            self._current = self._token = LimitedText(MOST_FIELD)
        elif depth == 2 and name == "IsTruncated":
            self._current = self._truncated = LimitedText(MOST_FIELD)
        elif depth == 3 and name in {"Key", "ETag", "Size"}:
            self._current = self._fields[name] = LimitedText(MOST_FIELD)

    def text(self, text: str) -> None:
        if self._current is not None:
            self._current.add(text)

    def end(self, depth: int, name: str) -> None:
        self._current = None
        if depth == 2 and local_name(name) == "Contents":
            key, etag, size = (str(self._fields.get(field, "")) for field in ("Key", "ETag", "Size"))
            is_number = size.isascii() and size.isdigit() and len(size) < 20
            if key and not self._fields["Key"].is_cut:
                # Spaces are plus signs in this encoding, and plus signs are escaped.
                plain_key = unquote(key.replace("+", " "))
                self._objects.append(BucketObject(plain_key, etag[:200], int(size) if is_number else 0))


def _botocore(module: str) -> Any:
    return extras.LazyModule(f"botocore.{module}")


def from_options(options: SourceOptions, limits: SourceLimits) -> BucketObjects:
    """The options: `bucket`, `prefix`, `endpoint`, `region`, keys; `include` and `exclude`, patterns."""
    bucket, prefix = options.text("bucket"), options.text("prefix", "")
    if not all(letter.isascii() and (letter.isalnum() or letter in "-._") for letter in bucket):
        raise options.error("bucket", "should be the name of a bucket, not a URL")
    region = options.text("region", DEFAULT_REGION)
    if not all(letter.isascii() and (letter.isalnum() or letter == "-") for letter in region):
        raise options.error("region", "should be the name of a region, like eu-central-1")
    endpoint = options.url("endpoint", "")
    credentials = _credentials(options, _allowed_as(bucket, endpoint), limits)
    paths = PathFilter(options.patterns("include"), options.patterns("exclude"))
    options.check_unknown()
    location = BucketPrefix(bucket, prefix, _base(bucket, endpoint, region), region)
    return BucketObjects(location, credentials, paths, limits)


def _allowed_as(bucket: str, endpoint: str) -> str:
    """How an operator names the bucket to allow the keys of the installation for it."""
    return f"{bucket}@{endpoint.rstrip('/')}" if endpoint else bucket


def _credentials(options: SourceOptions, allowed_as: str, limits: SourceLimits) -> Callable[[], Any] | None:
    """Those of the options, or of the installation if it allows that for the bucket; None for neither."""
    access_key, secret_key = options.text("access_key_id", ""), options.text("secret_access_key", "")
    session_token = options.text("session_token", "")
    if bool(access_key) != bool(secret_key) or (session_token and not access_key):
        missing = "secret_access_key" if access_key else "access_key_id"
        raise options.error(missing, "is missing; access_key_id and secret_access_key belong together")
    if not access_key and allowed_as not in {each.rstrip("/") for each in limits.buckets}:
        return None
    extras.require(("s3",), "a source of type s3 with keys")
    if access_key:
        keys = (access_key, secret_key, session_token or None)
        return lambda: _botocore("credentials").Credentials(*keys)
    return _installation_credentials


def _installation_credentials() -> Any:
    credentials = _botocore("session").Session().get_credentials()
    if credentials is None:
        raise SourceError("access_denied", "the source has no keys, and neither has the installation")
    return credentials


def _base(bucket: str, endpoint: str, region: str) -> str:
    if not endpoint:
        if "." in bucket:  # no certificate covers more than one label
            return f"https://s3.{region}.amazonaws.com/{bucket}/"
        return f"https://{bucket}.s3.{region}.amazonaws.com/"
    parts = urlsplit(endpoint)
    # As it is signed: without a port that goes without saying.
    ending = {"http": ":80", "https": ":443"}[parts.scheme]
    return f"{parts.scheme}://{parts.netloc.removesuffix(ending)}{parts.path.rstrip('/')}/{bucket}/"
