"""A source that is a bucket, or what is below a prefix of it, on a server that speaks S3."""

import gzip
import os
import sys
from types import SimpleNamespace

import pytest

from holdfast.documents import blobs_s3
from holdfast.documents.blobs_s3 import BucketLocation
from holdfast.documents.sources import s3
from holdfast.documents.sources.source import SourceError, SourceLimits, SourceSpec
from holdfast.documents.sources.source_types import open_source
from tests.documents import s3_server

KEYS = {"access_key_id": "key", "secret_access_key": "secret"}
ODD = ["docs/a b+c&d=e%20.txt", "docs/ünï/🙂.md", "docs//two", "docs/../up", "docs/<x>\"'.txt", "docs/~.-_"]


@pytest.fixture(scope="module")
def server():
    """One server, and one client to fill it, for all tests; each test has a bucket of its own."""
    with s3_server.serving() as endpoint:
        client = blobs_s3._client(BucketLocation("", "", endpoint, None, "key", "secret"))
        yield SimpleNamespace(endpoint=endpoint, client=client)
        client.close()


@pytest.fixture
def bucket(server, opened):
    """A fresh bucket: `put(key, data)`, and `source(**options)` that lists it."""
    name = f"b{os.urandom(6).hex()}"
    server.client.create_bucket(Bucket=name)

    def put(key, data=b"x", **more):
        server.client.put_object(Bucket=name, Key=key, Body=data, **more)

    def source(limits=None, **options):
        options = {"bucket": name, "endpoint": server.endpoint, **KEYS, **options}
        return opened("s3", options, **(limits or {}))

    return SimpleNamespace(name=name, put=put, source=source)


def keys(bucket, **options):
    return [
        item.external_id.removeprefix(f"s3://{bucket.name}/")
        for item in bucket.source(**options).list("").items
    ]


def test_what_is_below_the_prefix_is_listed(bucket):
    """With the ETag and size as version; what only marks a folder is no document."""
    bucket.put("docs/a.txt", b"one")
    bucket.put("docs/sub/", b"")
    bucket.put("docs/sub_$folder$", b"")
    bucket.put("other/b.txt")
    listing = bucket.source(prefix="docs/").list("")
    (item,) = listing.items
    assert (item.external_id, item.name, item.url) == (f"s3://{bucket.name}/docs/a.txt", "a.txt", None)
    assert item.version == "f97c5d29941bfb1b2fdab0874906ab82 3"
    assert (listing.state, listing.unchanged, listing.complete) == ("", False, True)


def test_keys_of_any_characters_are_listed_and_fetched(bucket, content):
    """As they are: each is asked for by the very name that it has."""
    for key in ODD:
        bucket.put(key, key.encode())
    source = bucket.source()
    items = list(source.list("").items)
    assert sorted(item.external_id for item in items) == sorted(f"s3://{bucket.name}/{key}" for key in ODD)
    assert sorted(content(source, item)[0].decode() for item in items) == sorted(ODD)


def test_an_unchanged_object_is_not_sent_again(bucket, content):
    """Its version is what the listing says, and 304 means unchanged."""
    bucket.put("a", b"one", ContentType="text/plain")
    source = bucket.source()
    (item,) = source.list("").items
    data, fetched = content(source, item)
    assert (data, fetched.version, fetched.name, fetched.content_type) == (
        b"one",
        item.version,
        "a.txt",
        "text/plain",
    )
    assert source.fetch(item, item.version) is None
    bucket.put("a", b"two")
    assert content(source, item, item.version)[0] == b"two"


def test_an_object_that_is_stored_compressed_keeps_its_version(bucket, content):
    """Its size differs from that of what is fetched, its ETag does not."""
    bucket.put("a.txt", gzip.compress(b"words"), ContentEncoding="gzip")
    source = bucket.source()
    (item,) = source.list("").items
    data, fetched = content(source, item)
    assert (data, fetched.version) == (b"words", item.version)


def test_a_listing_is_read_page_by_page(bucket, monkeypatch):
    """More than a page of objects, and no more than the limit."""
    monkeypatch.setattr(s3, "PAGE", 3)
    names = [f"a/{number}" for number in range(10)]
    for name in names:
        bucket.put(name)
    assert keys(bucket) == names
    assert keys(bucket, include=["a/*"], exclude=["4", "a/5"]) == [*names[:4], *names[6:]]
    with pytest.raises(SourceError, match="more than 9 objects") as caught:
        list(bucket.source({"items": 9}).list("").items)
    assert caught.value.code == "too_many_items"


def test_an_object_that_is_too_large_is_refused(bucket, content):
    """By itself: the others can be fetched."""
    bucket.put("a", b"x" * 2000)
    source = bucket.source({"bytes": 1000})
    with pytest.raises(SourceError, match="larger than the limit"):
        content(source, next(iter(source.list("").items)))


def test_a_bucket_that_does_not_exist_is_reported(refused, server):
    """In words, not in XML."""
    error = refused("s3", {"bucket": "no-such-bucket", "endpoint": server.endpoint, **KEYS})
    assert (error.code, "does not exist" in error.message) == ("bad_source", True)


@pytest.mark.parametrize(
    ("status", "headers", "code", "part"),
    [
        (403, {}, "access_denied", "check its keys"),
        (301, {"Location": "http://127.0.0.1:1/"}, "bad_source", "correct region or endpoint"),
        (400, {}, "bad_source", "correct region or endpoint"),
        (503, {}, "unreachable", "status 503"),
        (200, {}, "bad_source", "does not speak S3"),
    ],
)
def test_a_refusal_says_what_to_do(site, refused, status, headers, code, part):
    """Keys, region, or wait; and a redirect is never followed."""
    site.page("/b/", b"<html/>", status=status, **headers)
    error = refused("s3", {"bucket": "b", "endpoint": site.url, **KEYS})
    assert (error.code, part in error.message) == (code, True), error.message


def test_a_listing_that_repeats_itself_ends(site, refused):
    """A server that names the same next page again and again is not asked for ever."""
    site.page("/b/", b"<ListBucketResult><NextContinuationToken>x</NextContinuationToken></ListBucketResult>")
    assert refused("s3", {"bucket": "b", "endpoint": site.url}).message.endswith("repeats itself")


def test_a_listing_that_is_cut_without_a_next_page_is_not_taken_for_whole(site, refused):
    """What is not listed would count as gone."""
    contents = b"<IsTruncated>true</IsTruncated><Contents><Key>a.txt</Key><Size>3</Size></Contents>"
    site.page("/b/", b"<ListBucketResult>" + contents + b"</ListBucketResult>")
    error = refused("s3", {"bucket": "b", "endpoint": site.url})
    assert (error.code, "is cut" in error.message) == ("bad_source", True)


@pytest.mark.parametrize(
    ("named", "allowed"), [("c", False), ("b", False), ("c@{url}", False), ("b@{url}", True)]
)
def test_keys_of_the_installation_are_for_endpoints_that_it_names(site, opened, monkeypatch, named, allowed):
    """Otherwise a request without keys is not signed, and no token of a session is sent."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"):
        monkeypatch.setenv(f"AWS_{name}", "installation")
    site.page("/b/", b"<ListBucketResult/>")
    options = {"bucket": "b", "endpoint": site.url}
    source = opened("s3", options, buckets=(named.format(url=site.url),))
    assert list(source.list("").items) == []
    headers = {name.lower(): value for name, value in site.asked[0][1].items()}
    assert ("installation" in headers.get("authorization", "")) is allowed
    assert ("x-amz-security-token" in headers) is allowed


def test_keys_of_the_installation_are_for_buckets_of_amazon_that_it_names():
    """A name alone is enough for them."""
    for bucket, allowed in (("b", True), ("c", False)):
        source = open_source(SourceSpec("s3", {"bucket": bucket}), SourceLimits(buckets=("b",)))
        assert (source._find_credentials is not None) is allowed


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({}, "option bucket of the source is missing"),
        ({"bucket": "s3://b/x"}, "option bucket of the source should be the name"),
        ({"bucket": "b", "region": "x/y"}, "option region"),
        ({"bucket": "b", "endpoint": "b.example"}, "option endpoint"),
        ({"bucket": "b", "access_key_id": "a"}, "option secret_access_key of the source is missing"),
        ({"bucket": "b", "session_token": "a"}, "option access_key_id of the source is missing"),
    ],
)
def test_an_option_that_is_wrong_is_named(opened, options, part):
    """Before anything is connected to."""
    with pytest.raises(SourceError) as caught:
        opened("s3", options)
    assert (caught.value.code, part in caught.value.message) == ("bad_source", True), caught.value.message


def test_a_missing_extra_is_named(monkeypatch):
    """In one line, where keys need it."""
    monkeypatch.setitem(sys.modules, "botocore", None)
    with pytest.raises(SourceError, match=r"needs the s3 extra: pip install \"holdfast\[s3\]\""):
        open_source(SourceSpec("s3", {"bucket": "b", **KEYS}), SourceLimits())


def test_amazon_is_the_default():
    """By region; a bucket with dots has no certificate of its own."""
    for name, base in [
        ("b", "https://b.s3.eu-west-1.amazonaws.com/"),
        ("b.c", "https://s3.eu-west-1.amazonaws.com/b.c/"),
    ]:
        source = open_source(SourceSpec("s3", {"bucket": name, "region": "eu-west-1"}), SourceLimits())
        assert source._location.base == base
